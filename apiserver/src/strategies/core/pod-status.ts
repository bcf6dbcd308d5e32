// What may be written to the status of a Pod.
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  internalError,
  invalidError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, deepEqual, memberOf, objectAt } from "../../json.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { addressProblems, familyOf } from "../../validation/addresses.js";
import { checkDomain, checkLabel, checkQualifiedName } from "../../validation/fields.js";
import { checkKept } from "../../validation/immutable-fields.js";
import { checkProfileAnnotations, checkProfilesKept } from "../pod-template/profile-annotations.js";
import { checkContainerStatuses } from "./container-status.js";

const OWN_CONDITIONS = ["PodScheduled", "Ready", "Initialized"];
const NOT_NEGATIVE = "must be a non-negative integer";

/** Checks the status of a Pod. */
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

// Addresses that are there may stay, though they are wrong; two are one of each family.
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
