import { objectsAt, textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  internalError,
  invalidError,
  notSupportedError,
  requiredError,
  tooLongError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, arrayAt, deepEqual, memberOf, objectAt } from "../../json.js";
import { addressProblems, familyOf } from "../../validation/addresses.js";
import { checkDomain, checkLabel, checkQualifiedName } from "../../validation/fields.js";
import { checkKept } from "../../validation/immutable-fields.js";
import { checkProfileAnnotations, checkProfilesKept } from "../pod-template/profile-annotations.js";

const OWN_CONDITIONS = ["PodScheduled", "Ready", "Initialized"];
const NOT_NEGATIVE = "must be a non-negative integer";

export function checkPodStatus(pod: JsonObject, live: JsonObject): FieldError[] {
  const [status, before] = [pod, live].map((one) => objectAt(one, "status") ?? {}) as [JsonObject, JsonObject];
  const qosClass = (one: JsonObject) => textAt(one, "qosClass");
  return [
    ...checkProfilesKept(pod, live),
    ...checkProfileAnnotations("metadata.annotations", pod),
    ...objectsAt(status, "conditions").flatMap((one, index) => checkCondition(`status.conditions[${index}]`, one)),
    ...checkNomination(textAt(status, "nominatedNodeName"), textAt(before, "nominatedNodeName"), live),
    ...checkGeneration("status.observedGeneration", status),
    ...checkKept("status.qosClass", qosClass(status), qosClass(before)),
    ...checkClaimStatuses(pod, objectsAt(status, "resourceClaimStatuses")),
    ...checkExtended(pod, objectAt(status, "extendedResourceClaimStatus")),
    ...checkAddresses("podIPs", status, before),
    ...checkHostAddresses(status, before),
    ...checkContainerStatuses(pod, live),
  ];
}

function checkGeneration(field: string, holder: JsonObject): FieldError[] {
  const generation = Number(memberOf(holder, "observedGeneration") ?? 0);
  return generation < 0 ? [invalidError(field, generation, NOT_NEGATIVE)] : [];
}

function checkCondition(path: string, condition: JsonObject): FieldError[] {
  const type = textAt(condition, "type");
  return [
    ...checkGeneration(`${path}.observedGeneration`, condition),
    ...(OWN_CONDITIONS.includes(type) ? [] : checkQualifiedName(`${path}.Type`, type)),
  ];
}

function checkNomination(node: string, before: string, live: JsonObject): FieldError[] {
  const field = "status.nominatedNodeName";
  if (node === "" || node === before) return [];
  const isBound = textAt(live, "spec.nodeName") !== "";
  return [
    ...checkDomain(field, node),
    ...(isBound ? [forbiddenError(field, "may not be set on pods that are already bound to a node")] : []),
  ];
}

function checkClaimStatuses(pod: JsonObject, statuses: JsonObject[]): FieldError[] {
  const claims = objectsAt(pod, "spec.resourceClaims").map((claim) => textAt(claim, "name"));
  const names = statuses.map((status) => textAt(status, "name"));
  return statuses.flatMap((status, index) => {
    const [at, name] = [`status.resourceClaimStatuses[${index}]`, names[index] ?? ""];
    const claim = memberOf(status, "resourceClaimName");
    return [
      ...(claims.includes(name)
        ? []
        : [invalidError(`${at}.name`, name, "must match the name of an entry in `spec.resourceClaims`")]),
      ...(names.indexOf(name) < index ? [duplicateError(`${at}.name`, name)] : []),
      ...(typeof claim === "string" ? checkDomain(`${at}.resourceClaimName`, claim) : []),
    ];
  });
}

const NO_CONTAINER = "must match the name of an entry in spec.initContainers.name or spec.containers.name";

const NO_REQUEST =
  "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests";

function checkExtended(pod: JsonObject, status: JsonObject | undefined): FieldError[] {
  if (status === undefined) return [];
  const path = "status.extendedResourceClaimStatus";
  const mappings = objectsAt(status, "requestMappings");
  const claim = textAt(status, "resourceClaimName");
  const containers = new Map(
    ["initContainers", "containers"].flatMap((list) =>
      objectsAt(pod, `spec.${list}`).map((container) => [textAt(container, "name"), container] as const),
    ),
  );
  return [
    ...(mappings.length === 0
      ? [requiredError(`${path}.requestMappings`, "at least one request mapping is required")]
      : []),
    ...mappings.flatMap((mapping, index) => {
      const at = `${path}.requestMappings[${index}]`;
      const isTwice = mappings.slice(0, index).some((other) => deepEqual(other, mapping));
      const twice = ["containerName", "resourceName", "requestName"];
      return [
        ...checkMapping(at, mapping, containers),
        ...checkLabel(`${path}.requestName`, textAt(mapping, "requestName")),
        ...(isTwice ? twice.map((key) => duplicateError(`${at}.${key}`, textAt(mapping, key))) : []),
      ];
    }),
    ...(claim === "" ? [requiredError(`${path}.resourceClaimName`)] : checkDomain(`${path}.resourceClaimName`, claim)),
  ];
}

function checkMapping(at: string, mapping: JsonObject, containers: ReadonlyMap<string, JsonObject>): FieldError[] {
  const [name, resource] = [textAt(mapping, "containerName"), textAt(mapping, "resourceName")];
  const container = containers.get(name);
  if (container === undefined) return [invalidError(`${at}.containerName`, name, NO_CONTAINER)];
  const requests = objectAt(objectAt(container, "resources"), "requests") ?? {};
  return Object.hasOwn(requests, resource) ? [] : [invalidError(`${at}.resourceName`, resource, NO_REQUEST)];
}

function checkHostAddresses(status: JsonObject, before: JsonObject): FieldError[] {
  const [first] = objectsAt(status, "hostIPs");
  if (first === undefined) return [];
  const address = textAt(first, "ip");
  const isOther = address !== textAt(status, "hostIP");
  return [
    ...(isOther ? [invalidError("status.hostIPs[0].ip", address, "must be equal to `hostIP`")] : []),
    ...checkAddresses("hostIPs", status, before),
  ];
}

// Unchanged invalid addresses are tolerated; two addresses must be of different IP families.
function checkAddresses(key: string, status: JsonObject, before: JsonObject): FieldError[] {
  const [addresses, known] = [status, before].map((one) => objectsAt(one, key).map((item) => textAt(item, "ip"))) as [
    string[],
    string[],
  ];
  const field = `status.${key}`;
  const wrong = addresses.flatMap((address, index) =>
    known.includes(address)
      ? []
      : addressProblems(address).map((detail) => invalidError(`${field}[${index}]`, address, detail)),
  );
  if (addresses.length < 2) return wrong;
  const families = addresses.map(familyOf);
  const broken = families.indexOf(undefined);
  const isPair = broken < 0 && new Set(families).size === 2;
  const cause = `failed to check for dual stack with error:invalid IP[${broken}]: ${addresses[broken]}`;
  const shown = addresses.map((IP) => ({ IP }));
  return [
    ...wrong,
    ...(broken < 0 ? [] : [internalError(field, cause)]),
    ...(isPair && addresses.length === 2
      ? []
      : [invalidError(field, shown, "may specify no more than one IP for each IP family")]),
  ];
}

const ID_RULE = "must be between 0 and 2147483647, inclusive";
const MAX_ID = 2 ** 31 - 1;
const MAX_MESSAGE = 1024;
const HEALTH = ["Healthy", "Unhealthy", "Unknown"];

const KINDS = [
  ["containerStatuses", "containers"],
  ["initContainerStatuses", "initContainers"],
  ["ephemeralContainerStatuses", "ephemeralContainers"],
] as const;

/** Validates the container statuses. */
function checkContainerStatuses(pod: JsonObject, live: JsonObject): FieldError[] {
  return KINDS.flatMap(([list, containers]) => {
    const path = `status.${list}`;
    const statuses = objectsAt(pod, path);
    return [
      ...checkRestarts(path, { statuses, live, containers }),
      ...statuses.flatMap((one, index) => checkUser(`${path}[${index}]`, one, textAt(pod, "spec.os.name"))),
      ...statuses.flatMap((one, index) => {
        const at = `${path}[${index}].allocatedResourcesStatus`;
        if (containers === "ephemeralContainers") return checkNone(at, one);
        return checkAllocated(at, one, objectsAt(pod, `spec.${containers}`));
      }),
    ];
  });
}

interface Restarts {
  readonly statuses: JsonObject[];
  readonly live: JsonObject;
  readonly containers: (typeof KINDS)[number][1];
}

// A terminated container may only restart if its restartPolicy allows it.
function checkRestarts(path: string, { statuses, live, containers }: Restarts): FieldError[] {
  if (containers !== "ephemeralContainers" && allMayRestart(live)) return [];
  return objectsAt(live, path).flatMap((before, index) => {
    const ended = objectAt(objectAt(before, "state"), "terminated");
    const now = statuses.find((one) => textAt(one, "name") === textAt(before, "name"));
    if (ended === undefined || now === undefined || objectAt(objectAt(now, "state"), "terminated") !== undefined)
      return [];
    const container = objectsAt(live, `spec.${containers}`).find(
      (one) => textAt(one, "name") === textAt(before, "name"),
    );
    const code = Number(memberOf(ended, "exitCode") ?? 0);
    const mayRestart =
      containers !== "ephemeralContainers" && container !== undefined && isRestarted(container, live, code);
    return mayRestart
      ? []
      : [forbiddenError(`${path}[${index}].state`, "may not be transitioned to non-terminated state")];
  });
}

function allMayRestart(pod: JsonObject): boolean {
  return ["containers", "initContainers"].some((list) =>
    objectsAt(pod, `spec.${list}`).some((container) =>
      objectsAt(container, "restartPolicyRules").some((rule) => textAt(rule, "action") === "RestartAllContainers"),
    ),
  );
}

function isRestarted(container: JsonObject, pod: JsonObject, code: number): boolean {
  const isMet = (rule: JsonObject) => {
    const codes = objectAt(rule, "exitCodes");
    const isListed = (arrayAt(codes, "values") ?? []).includes(code);
    return codes !== undefined && isListed === (textAt(codes, "operator") === "In");
  };
  const rule = objectsAt(container, "restartPolicyRules").find(isMet);
  if (rule !== undefined && textAt(rule, "action") === "Restart") return true;
  const own = textAt(container, "restartPolicy");
  const policy = own === "" ? textAt(pod, "spec.restartPolicy") : own;
  return policy === "Always" || (policy === "OnFailure" && code !== 0);
}

function checkUser(path: string, status: JsonObject, system: string): FieldError[] {
  const user = objectAt(objectAt(status, "user"), "linux");
  if (user === undefined) return [];
  if (system === "windows") return [forbiddenError(`${path}.user.linux`, "cannot be set for a windows pod")];
  const check = (field: string, id: number) =>
    id < 0 || id > MAX_ID ? [invalidError(`${path}.user.linux.${field}`, id, ID_RULE)] : [];
  return [
    ...["uid", "gid"].flatMap((key) => check(key, Number(memberOf(user, key) ?? 0))),
    ...(arrayAt(user, "supplementalGroups") ?? []).flatMap((group, index) =>
      check(`supplementalGroups[${index}]`, Number(group)),
    ),
  ];
}

function checkNone(field: string, status: JsonObject): FieldError[] {
  return objectsAt(status, "allocatedResourcesStatus").length === 0
    ? []
    : [forbiddenError(field, "must not be specified in container status")];
}

const NO_CLAIM =
  "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";

function checkAllocated(path: string, status: JsonObject, containers: JsonObject[]): FieldError[] {
  const container = containers.find((one) => textAt(one, "name") === textAt(status, "name"));
  const resources = objectAt(container, "resources");
  const claims = objectsAt(resources ?? {}, "claims").map((claim) => {
    const request = textAt(claim, "request");
    return `claim:${textAt(claim, "name")}${request === "" ? "" : `/${request}`}`;
  });
  const known = [...claims, ...Object.keys(objectAt(resources, "requests") ?? {})];
  return objectsAt(status, "allocatedResourcesStatus").flatMap((allocated, index) => {
    const [at, name] = [`${path}[${index}]`, textAt(allocated, "name")];
    const detail = name.startsWith("claim:") ? NO_CLAIM : "must match one of the container's resource requests";
    return [
      ...(container === undefined || known.includes(name) ? [] : [invalidError(`${at}.name`, name, detail)]),
      ...checkHealth(at, objectsAt(allocated, "resources")),
    ];
  });
}

function checkMessage(field: string, message: JsonValue | undefined): FieldError[] {
  if (typeof message !== "string") return [];
  if (message === "") return [requiredError(field, "must be non-empty if specified")];
  return Buffer.byteLength(message) > MAX_MESSAGE ? [tooLongError(field, MAX_MESSAGE)] : [];
}

function checkHealth(path: string, resources: JsonObject[]): FieldError[] {
  const ids = resources.map((resource) => textAt(resource, "resourceID"));
  return resources.flatMap((resource, index) => {
    const [at, health, id] = [`${path}.resources[${index}]`, textAt(resource, "health"), ids[index] ?? ""];
    return [
      ...(HEALTH.includes(health) ? [] : [notSupportedError(`${at}.health`, health, HEALTH)]),
      ...checkMessage(`${at}.message`, memberOf(resource, "message")),
      ...(ids.indexOf(id) < index ? [duplicateError(`${at}.resourceID`, id)] : []),
    ];
  });
}
