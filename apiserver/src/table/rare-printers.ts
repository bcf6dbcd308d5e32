import { at, countAt, objectsAt, textAt } from "../builtin/read-path.js";
import { type JsonObject, type JsonValue, arrayAt, isObject, memberOf, objectAt, stringAt } from "../json.js";
import { ageOf, humanDuration } from "./age.js";
import { type Printer, formatSelector } from "./printer.js";

function age(object: JsonObject, now: Date): string {
  return ageOf(at(object, "metadata.creationTimestamp"), now);
}

export const componentStatusPrinter: Printer = {
  columns: ["Status", "Message", "Error"],
  cells: (object) => {
    const healthy = objectsAt(object, "conditions").find(({ type }) => type === "Healthy");
    if (healthy === undefined) return ["Unknown", "", ""];
    const status = healthy["status"] === "True" ? "Healthy" : "Unhealthy";
    return [status, textAt(healthy, "message"), textAt(healthy, "error")];
  },
};

export const certificateRequestPrinter: Printer = {
  columns: ["Age", "SignerName", "Requestor", "RequestedDuration", "Condition"],
  cells: (object, now) => {
    const seconds = at(object, "spec.expirationSeconds");
    return [
      age(object, now),
      textAt(object, "spec.signerName") || "<none>",
      textAt(object, "spec.username"),
      typeof seconds === "number" ? humanDuration(seconds * 1000) : "<none>",
      certificateStateOf(object),
    ];
  },
};

function certificateStateOf(object: JsonObject): string {
  const types = objectsAt(object, "status.conditions").map(({ type }) => type);
  const decision = types.includes("Denied") ? "Denied" : types.includes("Approved") ? "Approved" : "Pending";
  const isIssued = textAt(object, "status.certificate") !== "";
  return `${decision}${types.includes("Failed") ? ",Failed" : ""}${isIssued ? ",Issued" : ""}`;
}

export const ipAddressPrinter: Printer = {
  columns: ["ParentRef"],
  // kube-apiserver adds a cell with the age, but declares no column for it.
  cells: (object, now) => [parentRefOf(object), age(object, now)],
};

function parentRefOf(object: JsonObject): string {
  const parent = objectAt(objectAt(object, "spec"), "parentRef");
  if (parent === undefined) return "<none>";
  const [group, resource, namespace] = [
    textAt(parent, "group"),
    textAt(parent, "resource"),
    textAt(parent, "namespace"),
  ];
  const kind = `${resource}${group === "" ? "" : `.${group}`}`.toLowerCase();
  return [kind, ...(namespace === "" ? [] : [namespace]), textAt(parent, "name")].join("/");
}

export const serviceCidrPrinter: Printer = {
  columns: ["CIDRs", "Age"],
  cells: (object, now) => [(arrayAt(objectAt(object, "spec"), "cidrs") ?? []).join(","), age(object, now)],
};

export const csiDriverPrinter: Printer = {
  columns: [
    ...["AttachRequired:boolean", "PodInfoOnMount:boolean", "StorageCapacity:boolean", "TokenRequests"],
    ...["RequiresRepublish:boolean", "Modes", "Age"],
  ],
  cells: (object, now) => {
    const spec = objectAt(object, "spec");
    const tokens = arrayAt(spec, "tokenRequests");
    return [
      memberOf(spec, "attachRequired") ?? true,
      memberOf(spec, "podInfoOnMount") ?? false,
      memberOf(spec, "storageCapacity") ?? false,
      tokens === undefined
        ? "<unset>"
        : tokens
            .filter(isObject)
            .map((one) => textAt(one, "audience"))
            .join(","),
      memberOf(spec, "requiresRepublish") ?? false,
      (arrayAt(spec, "volumeLifecycleModes") ?? []).join(",") || "<none>",
      age(object, now),
    ];
  },
};

export const csiNodePrinter: Printer = {
  columns: ["Drivers:integer", "Age"],
  cells: (object, now) => [objectsAt(object, "spec.drivers").length, age(object, now)],
};

export const volumeAttachmentPrinter: Printer = {
  columns: ["Attacher", "PV", "Node", "Attached:boolean", "Age"],
  cells: (object, now) => [
    textAt(object, "spec.attacher"),
    textAt(object, "spec.source.persistentVolumeName"),
    textAt(object, "spec.nodeName"),
    at(object, "status.attached") === true,
    age(object, now),
  ],
};

export const volumeAttributesClassPrinter: Printer = {
  columns: ["DriverName", "Age"],
  cells: (object, now) => [textAt(object, "driverName"), age(object, now)],
};

function paramKindOf(object: JsonObject): string {
  const kind = objectAt(objectAt(object, "spec"), "paramKind");
  return kind === undefined ? "<unset>" : `${textAt(kind, "apiVersion")}/${textAt(kind, "kind")}`;
}

export const validatingPolicyPrinter: Printer = {
  columns: ["Validations:integer", "ParamKind", "Age"],
  cells: (object, now) => [objectsAt(object, "spec.validations").length, paramKindOf(object), age(object, now)],
};

export const mutatingPolicyPrinter: Printer = {
  columns: ["Mutations:integer", "ParamKind", "Age"],
  cells: (object, now) => [objectsAt(object, "spec.mutations").length, paramKindOf(object), age(object, now)],
};

/** Bindings of validating and mutating admission policies. */
export const policyBindingPrinter: Printer = {
  columns: ["PolicyName", "ParamRef", "Age"],
  cells: (object, now) => [textAt(object, "spec.policyName"), paramRefOf(object), age(object, now)],
};

function paramRefOf(object: JsonObject): string {
  const ref = objectAt(objectAt(object, "spec"), "paramRef");
  const name = stringAt(ref, "name") ?? "";
  // The binding does not contain whether the parameter kind is namespaced.
  if (name !== "") return `${(stringAt(ref, "namespace") ?? "") || "*"}/${name}`;
  const selector = memberOf(ref, "selector");
  return selector === undefined ? "<unset>" : formatSelector(selector);
}

export const resourceClaimPrinter: Printer = {
  columns: ["State", "Age"],
  cells: (object, now) => {
    const isDeleted = at(object, "metadata.deletionTimestamp") !== undefined;
    const isAllocated = objectAt(objectAt(object, "status"), "allocation") !== undefined;
    const isReserved = isAllocated && objectsAt(object, "status.reservedFor").length > 0;
    const states = [
      ...(isDeleted ? ["deleted"] : []),
      ...(isAllocated ? ["allocated"] : isDeleted ? [] : ["pending"]),
      ...(isReserved ? ["reserved"] : []),
    ];
    return [states.join(","), age(object, now)];
  },
};

export const resourceSlicePrinter: Printer = {
  columns: ["Node", "Driver", "Pool", "Age"],
  cells: (object, now) => [
    textAt(object, "spec.nodeName"),
    textAt(object, "spec.driver"),
    textAt(object, "spec.pool.name"),
    age(object, now),
  ],
};

export const flowSchemaPrinter: Printer = {
  columns: ["PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL"],
  cells: (object, now) => {
    const dangling = objectsAt(object, "status.conditions").find(({ type }) => type === "Dangling");
    return [
      textAt(object, "spec.priorityLevelConfiguration.name"),
      countAt(object, "spec.matchingPrecedence"),
      textAt(object, "spec.distinguisherMethod.type") || "<none>",
      age(object, now),
      dangling === undefined ? "?" : textAt(dangling, "status"),
    ];
  },
};

export const priorityLevelPrinter: Printer = {
  columns: ["Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age"],
  cells: (object, now) => {
    const orNone = (path: string): JsonValue => at(object, path) ?? "<none>";
    const queuing = "spec.limited.limitResponse.queuing";
    return [
      textAt(object, "spec.type"),
      orNone("spec.limited.nominalConcurrencyShares"),
      ...["queues", "handSize", "queueLengthLimit"].map((key) => orNone(`${queuing}.${key}`)),
      age(object, now),
    ];
  },
};
