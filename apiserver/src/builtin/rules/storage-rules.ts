// Claims, classes and capacities of storage.
import { compareQuantities } from "@gen-operator/schema";
import { forbiddenError, invalidError, requiredError, type FieldError } from "../../errors/field-error.js";
import { deepEqual, memberOf, objectAt, type JsonObject, type JsonValue } from "../../json.js";
import { textAt } from "../read-path.js";
import {
  checkDomain,
  checkGivenDomain,
  checkImmutable,
  checkLabelSelector,
  checkOneOf,
  checkRequired,
} from "./field-rules.js";
import { checkProvisioner } from "./storage/driver-rules.js";

const OTHER_MODES = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"];
const CLAIM_RULE =
  "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

/** Checks a PersistentVolumeClaim. */
export function checkClaim(claim: JsonObject, old: JsonObject | undefined): FieldError[] {
  const spec = objectAt(claim, "spec") ?? {};
  const oldSpec = objectAt(old, "spec");
  const isBound = textAt(claim, "status.phase") === "Bound";
  return [
    ...checkClaimSpec("spec", spec),
    ...(oldSpec === undefined ? [] : checkGrowth(claim, storageOf(spec), storageOf(oldSpec))),
    ...(oldSpec === undefined ||
    deepEqual(fixedPart(spec, { isBound, old: oldSpec }), fixedPart(oldSpec, { isBound, old: oldSpec }))
      ? []
      : [forbiddenError("spec", CLAIM_RULE)]),
    ...(oldSpec === undefined || memberOf(spec, "volumeMode") === memberOf(oldSpec, "volumeMode")
      ? []
      : [invalidError("volumeMode", memberOf(spec, "volumeMode") ?? null, "field is immutable")]),
  ];
}

/** Checks the spec of a claim, or of a template of claims. */
export function checkClaimSpec(path: string, spec: JsonObject): FieldError[] {
  const storage = storageOf(spec);
  const given = memberOf(spec, "accessModes");
  const modes = Array.isArray(given) ? given : [];
  const isShared = modes.includes("ReadWriteOncePod") && modes.some((mode) => OTHER_MODES.includes(String(mode)));
  return [
    ...(modes.length > 0 ? [] : [requiredError(`${path}.accessModes`, "at least 1 access mode is required")]),
    ...checkLabelSelector(`${path}.selector`, objectAt(spec, "selector")),
    ...modes.flatMap((mode) => checkOneOf(`${path}.accessModes`, mode, [...OTHER_MODES, "ReadWriteOncePod"])),
    ...(isShared
      ? [forbiddenError(`${path}.accessModes`, "may not use ReadWriteOncePod with other access modes")]
      : []),
    ...(storage === undefined ? [requiredError(`${path}.resources[storage]`)] : []),
    ...(storage !== undefined && (compareQuantities(String(storage), "0") ?? 1) <= 0
      ? [invalidError(`${path}.resources[storage]`, storage, "must be greater than zero")]
      : []),
    ...checkGivenDomain(`${path}.storageClassName`, textAt(spec, "storageClassName")),
    ...checkOneOf(`${path}.volumeMode`, memberOf(spec, "volumeMode"), ["Block", "Filesystem"]),
    ...["dataSource", "dataSourceRef"].flatMap((key) => checkDataSource(`${path}.${key}`, objectAt(spec, key))),
    ...checkGivenDomain(`${path}.volumeAttributesClassName`, textAt(spec, "volumeAttributesClassName")),
  ];
}

function checkDataSource(path: string, source: JsonObject | undefined): FieldError[] {
  if (source === undefined) return [];
  const [kind, group] = [textAt(source, "kind"), textAt(source, "apiGroup")];
  const detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
  return [
    ...checkRequired(`${path}.name`, memberOf(source, "name")),
    ...checkRequired(`${path}.kind`, kind),
    ...(group === "" && kind !== "PersistentVolumeClaim" ? [invalidError(path, kind, detail)] : []),
    ...checkGivenDomain(`${path}.apiGroup`, group),
  ];
}

function storageOf(spec: JsonObject): JsonValue | undefined {
  return memberOf(objectAt(objectAt(spec, "resources"), "requests"), "storage");
}

// A claim may ask for less than before, but not for less than it has.
function checkGrowth(claim: JsonObject, now: JsonValue | undefined, before: JsonValue | undefined): FieldError[] {
  const has = memberOf(objectAt(objectAt(claim, "status"), "capacity"), "storage") ?? "0";
  const [size, old] = [String(now ?? "0"), String(before ?? "0")];
  const isSmaller = (compareQuantities(size, old) ?? 0) < 0;
  if (!isSmaller || (compareQuantities(size, String(has)) ?? 1) > 0) return [];
  return [forbiddenError("spec.resources.requests.storage", "field can not be less than status.capacity")];
}

// A volume and a class may be set once; the storage of a bound claim may grow.
function fixedPart(spec: JsonObject, { isBound, old }: { isBound: boolean; old: JsonObject }): JsonObject {
  const { volumeAttributesClassName, ...fixed } = spec;
  for (const key of ["volumeName", "storageClassName"]) if (memberOf(old, key) === undefined) delete fixed[key];
  if (!isBound) return volumeAttributesClassName === undefined ? fixed : spec;
  const resources = objectAt(spec, "resources") ?? {};
  const { storage: _, ...requests } = objectAt(resources, "requests") ?? {};
  return { ...fixed, resources: { ...resources, requests } };
}

/** Checks a StorageClass. */
export function checkStorageClass(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  return [
    ...(old === undefined ? checkProvisioner("provisioner", textAt(object, "provisioner")) : []),
    ...checkOneOf("reclaimPolicy", memberOf(object, "reclaimPolicy"), ["Delete", "Retain"]),
    ...checkOneOf("volumeBindingMode", memberOf(object, "volumeBindingMode"), ["Immediate", "WaitForFirstConsumer"]),
    ...checkImmutable("", { spec: object, old, keys: ["provisioner"] }),
  ];
}

/** Checks a CSIStorageCapacity, and on update that it is about the same storage. */
export function checkStorageCapacity(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const className = textAt(object, "storageClassName");
  const capacity = memberOf(object, "capacity");
  const isNegative = capacity !== undefined && (compareQuantities(String(capacity), "0") ?? 0) < 0;
  return [
    ...checkLabelSelector("nodeTopology", objectAt(object, "nodeTopology")),
    ...checkDomain("storageClassName", className),
    ...(isNegative ? [invalidError("capacity", capacity, "must be greater than or equal to 0")] : []),
    ...checkImmutable("", { spec: object, old, keys: ["nodeTopology", "storageClassName"] }),
  ];
}
