// Printers of common kinds without Pods or networks: configuration, access, storage, quotas, and classes. The others are in rare-printers.ts.
import { at, countAt, objectsAt, textAt } from "../builtin/read-path.js";
import { type JsonObject, type JsonValue, compareText, memberOf, objectAt, stringAt } from "../json.js";
import { ageOf } from "./age.js";
import type { Printer } from "./printer.js";

const CREATED = "metadata.creationTimestamp";
const ACCESS_MODES: [mode: string, short: string][] = [
  ["ReadWriteOnce", "RWO"],
  ["ReadOnlyMany", "ROX"],
  ["ReadWriteMany", "RWX"],
  ["ReadWriteOncePod", "RWOP"],
];

function age(object: JsonObject, now: Date): string {
  return ageOf(at(object, CREATED), now);
}

function sizeAt(object: JsonObject, key: string): number {
  return Object.keys(objectAt(object, key) ?? {}).length;
}

export const configMapPrinter: Printer = {
  columns: ["Data", "Age"],
  cells: (object, now) => [sizeAt(object, "data") + sizeAt(object, "binaryData"), age(object, now)],
};

export const secretPrinter: Printer = {
  columns: ["Type", "Data", "Age"],
  cells: (object, now) => [textAt(object, "type"), sizeAt(object, "data"), age(object, now)],
};

export const namespacePrinter: Printer = {
  columns: ["Status", "Age"],
  cells: (object, now) => [textAt(object, "status.phase"), age(object, now)],
};

/** Kinds without columns other than Age. */
export const agePrinter: Printer = { columns: ["Age"], cells: (object, now) => [age(object, now)] };

export const leasePrinter: Printer = {
  columns: ["Holder", "Age"],
  cells: (object, now) => [textAt(object, "spec.holderIdentity"), age(object, now)],
};

/** RoleBindings and ClusterRoleBindings. */
export const roleBindingPrinter: Printer = {
  columns: ["Role", "Age", "Users*", "Groups*", "ServiceAccounts*"],
  cells: (object, now) => {
    const subjects = objectsAt(object, "subjects");
    const named = (kind: string) => subjects.filter((subject) => subject["kind"] === kind);
    const join = (kind: string) =>
      named(kind)
        .map((subject) => stringAt(subject, "name") ?? "")
        .join(", ");
    const accounts = named("ServiceAccount").map((one) => `${textAt(one, "namespace")}/${textAt(one, "name")}`);
    const role = `${textAt(object, "roleRef.kind")}/${textAt(object, "roleRef.name")}`;
    return [role, age(object, now), join("User"), join("Group"), accounts.join(", ")];
  },
};

export const disruptionBudgetPrinter: Printer = {
  columns: ["Min Available", "Max Unavailable", "Allowed Disruptions:integer", "Age"],
  cells: (object, now) => [
    textAt(object, "spec.minAvailable") || "N/A",
    textAt(object, "spec.maxUnavailable") || "N/A",
    countAt(object, "status.disruptionsAllowed"),
    age(object, now),
  ],
};

export const quotaPrinter: Printer = {
  columns: ["Request", "Limit", "Age"],
  cells: (object, now) => {
    const hard = objectAt(objectAt(object, "status"), "hard") ?? {};
    const used = objectAt(objectAt(object, "status"), "used") ?? {};
    const texts = (areLimits: boolean) =>
      Object.keys(hard)
        .filter((name) => name.startsWith("limits") === areLimits)
        .sort(compareText)
        .map((name) => `${name}: ${String(used[name] ?? "0")}/${String(hard[name])}`)
        .join(", ");
    return [texts(false), texts(true), age(object, now)];
  },
};

function accessModesOf(modes: JsonValue | undefined): string {
  const given = Array.isArray(modes) ? modes : [];
  return ACCESS_MODES.flatMap(([mode, short]) => (given.includes(mode) ? [short] : [])).join(",");
}

function phaseOf(object: JsonObject): string {
  const isTerminating = memberOf(objectAt(object, "metadata"), "deletionTimestamp") !== undefined;
  return isTerminating ? "Terminating" : textAt(object, "status.phase");
}

export const claimPrinter: Printer = {
  columns: [
    ...["Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age"],
    "VolumeMode*",
  ],
  cells: (object, now) => {
    const volume = textAt(object, "spec.volumeName");
    const isBound = volume !== "";
    return [
      phaseOf(object),
      volume,
      isBound ? textAt(object, "status.capacity.storage") : "",
      isBound ? accessModesOf(at(object, "status.accessModes")) : "",
      textAt(object, "spec.storageClassName"),
      textAt(object, "spec.volumeAttributesClassName") || "<unset>",
      age(object, now),
      textAt(object, "spec.volumeMode") || "<unset>",
    ];
  },
};

export const volumePrinter: Printer = {
  columns: [
    ...["Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass", "VolumeAttributesClass"],
    ...["Reason", "Age", "VolumeMode*"],
  ],
  cells: (object, now) => {
    const claim = objectAt(objectAt(object, "spec"), "claimRef");
    return [
      textAt(object, "spec.capacity.storage"),
      accessModesOf(at(object, "spec.accessModes")),
      textAt(object, "spec.persistentVolumeReclaimPolicy"),
      phaseOf(object),
      claim === undefined ? "" : `${textAt(claim, "namespace")}/${textAt(claim, "name")}`,
      textAt(object, "spec.storageClassName"),
      textAt(object, "spec.volumeAttributesClassName") || "<unset>",
      textAt(object, "status.reason"),
      age(object, now),
      textAt(object, "spec.volumeMode") || "<unset>",
    ];
  },
};

/** StorageClasses; the name of the default class has a suffix. */
export const storageClassPrinter: Printer = {
  columns: ["Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"],
  name: (object) => {
    const annotations = objectAt(objectAt(object, "metadata"), "annotations");
    const isDefault = memberOf(annotations, "storageclass.kubernetes.io/is-default-class") === "true";
    return `${textAt(object, "metadata.name")}${isDefault ? " (default)" : ""}`;
  },
  cells: (object, now) => [
    textAt(object, "provisioner"),
    textAt(object, "reclaimPolicy"),
    textAt(object, "volumeBindingMode"),
    at(object, "allowVolumeExpansion") === true,
    age(object, now),
  ],
};

export const priorityClassPrinter: Printer = {
  columns: ["Value:integer", "Global-Default:boolean", "Age", "PreemptionPolicy"],
  cells: (object, now) => [
    countAt(object, "value"),
    at(object, "globalDefault") === true,
    age(object, now),
    textAt(object, "preemptionPolicy"),
  ],
};

export const runtimeClassPrinter: Printer = {
  columns: ["Handler", "Age"],
  cells: (object, now) => [textAt(object, "handler"), age(object, now)],
};

export const webhookPrinter: Printer = {
  columns: ["Webhooks:integer", "Age"],
  cells: (object, now) => [objectsAt(object, "webhooks").length, age(object, now)],
};

export const apiServicePrinter: Printer = {
  columns: ["Service", "Available", "Age"],
  cells: (object, now) => {
    const service = objectAt(objectAt(object, "spec"), "service");
    const available = objectsAt(object, "status.conditions").find((one) => one["type"] === "Available");
    const reason = stringAt(available, "reason") ?? "";
    const status = stringAt(available, "status") ?? "Unknown";
    return [
      service === undefined ? "Local" : `${textAt(service, "namespace")}/${textAt(service, "name")}`,
      status === "True" || reason === "" ? status : `${status} (${reason})`,
      age(object, now),
    ];
  },
};
