// Claims, classes and capacities of storage.
import { compareQuantities } from "@gen-operator/schema";
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, arrayAt, compareText, deepEqual, memberOf, objectAt } from "../../json.js";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import {
  checkDomain,
  checkGivenDomain,
  checkLabel,
  checkLabelSelector,
  checkOnce,
  checkOneOf,
  checkQualifiedName,
  checkRequired,
  goMap,
} from "../../validation/fields.js";
import { checkKept, checkSelectorKept, checkTextKept } from "../../validation/immutable-fields.js";
import { checkParameters, checkProvisioner } from "../storage/csi-driver.js";

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
    ...(old === undefined ? [] : checkClassAnnotation(claim, old)),
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
    ...checkSourcesAgree(path, spec),
    ...checkGivenDomain(`${path}.volumeAttributesClassName`, textAt(spec, "volumeAttributesClassName")),
  ];
}

function checkDataSource(path: string, source: JsonObject | undefined): FieldError[] {
  if (source === undefined) return [];
  const [kind, group, namespace] = ["kind", "apiGroup", "namespace"].map((key) => textAt(source, key)) as [
    string,
    string,
    string,
  ];
  const detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
  return [
    ...checkRequired(`${path}.name`, memberOf(source, "name")),
    ...checkRequired(`${path}.kind`, kind),
    ...(group === "" && kind !== "PersistentVolumeClaim" ? [invalidError(path, kind, detail)] : []),
    ...checkGivenDomain(`${path}.apiGroup`, group),
    ...(namespace === "" ? [] : checkLabel(`${path}.namespace`, namespace)),
  ];
}

function checkSourcesAgree(path: string, spec: JsonObject): FieldError[] {
  const [source, reference] = [objectAt(spec, "dataSource"), objectAt(spec, "dataSourceRef")];
  if (source === undefined || reference === undefined) return [];
  // Kubernetes shows the path of a member, whose fields JSON does not have.
  if (textAt(reference, "namespace") !== "")
    return [invalidError(path, {}, "may not be specified when dataSourceRef.namespace is specified")];
  const isSame = ["apiGroup", "kind", "name"].every((key) => deepEqual(source[key] ?? null, reference[key] ?? null));
  return isSame ? [] : [invalidError(path, {}, "must match dataSourceRef")];
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

/** Where the class of a claim or a volume was once told. */
export const CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class";

// The class of a claim was once told in an annotation, and may move from there into the spec.
function checkClassAnnotation(claim: JsonObject, old: JsonObject): FieldError[] {
  const [now, before] = [claim, old].map((one) =>
    memberOf(objectAt(objectAt(one, "metadata"), "annotations"), CLASS_ANNOTATION),
  );
  const [given, had] = [claim, old].map((one) => memberOf(objectAt(one, "spec"), "storageClassName"));
  const isMoved =
    before !== undefined && had === undefined && given === before && (now === undefined || now === before);
  if (isMoved || (now ?? "") === (before ?? "")) return [];
  return [invalidError(`metadata.annotations.${CLASS_ANNOTATION}`, now ?? "", "field is immutable")];
}

// A volume and a class may be set once; the storage of a bound claim may grow.
function fixedPart(spec: JsonObject, { isBound, old }: { isBound: boolean; old: JsonObject }): JsonObject {
  const { volumeAttributesClassName, ...fixed } = spec;
  for (const key of ["volumeName", "storageClassName"]) if (memberOf(old, key) === undefined) delete fixed[key];
  if (!isBound) return volumeAttributesClassName === undefined ? fixed : spec;
  const resources = objectAt(spec, "resources") ?? {};
  if (objectAt(resources, "requests") === undefined) return fixed;
  const { storage: _, ...requests } = objectAt(resources, "requests") ?? {};
  return { ...fixed, resources: { ...resources, requests } };
}

/** Checks a StorageClass. */
export function checkStorageClass(object: JsonObject, old: JsonObject | undefined): FieldError[] {
  const policy = memberOf(object, "reclaimPolicy");
  return [
    ...checkProvisioner("provisioner", textAt(object, "provisioner")),
    ...checkParameters("parameters", object, { needsOne: false }),
    ...(policy === "" ? [] : checkOneOf("reclaimPolicy", policy, ["Delete", "Retain"])),
    ...checkOneOf("volumeBindingMode", memberOf(object, "volumeBindingMode"), ["Immediate", "WaitForFirstConsumer"]),
    ...checkTopologies("allowedTopologies", objectsAt(object, "allowedTopologies")),
    ...(old === undefined ? [] : checkClassKept(object, old)),
  ];
}

function checkClassKept(object: JsonObject, old: JsonObject): FieldError[] {
  const shown = (one: JsonObject, key: string) => memberOf(one, key) ?? null;
  const parameters = (one: JsonObject) => {
    const map = objectAt(one, "parameters");
    return map === undefined ? null : goMap(map);
  };
  return [
    ...checkKept("parameters", parameters(object), parameters(old)),
    ...checkTextKept("provisioner", object, old),
    ...["reclaimPolicy", "volumeBindingMode"].flatMap((key) => checkKept(key, shown(object, key), shown(old, key))),
  ];
}

function checkTopologies(path: string, terms: JsonObject[]): FieldError[] {
  // Kubernetes takes a term without labels for as many others as there are terms.
  const seen = terms.map(() => "[]");
  return terms.flatMap((term, index) => {
    const at = `${path}[${index}].matchLabelExpressions`;
    const labels = objectsAt(term, "matchLabelExpressions");
    const keys = labels.map((label) => textAt(label, "key"));
    const byKey = new Map(labels.map((label) => [textAt(label, "key"), [...new Set(valuesOf(label))].sort()]));
    const kind = JSON.stringify([...byKey].sort(([a], [b]) => compareText(a, b)));
    const same = seen.filter((other) => other === kind);
    seen.push(kind);
    return [
      ...labels.flatMap((label, place) => [
        ...checkTopology(`${at}[${place}]`, label),
        ...(keys.indexOf(keys[place] ?? "") < place ? [duplicateError(`${at}[${place}].key`, keys[place] ?? "")] : []),
      ]),
      ...same.map(() => duplicateError(at, "")),
    ];
  });
}

function valuesOf(label: JsonObject): string[] {
  return (arrayAt(label, "values") ?? []).map(String);
}

function checkTopology(path: string, label: JsonObject): FieldError[] {
  const values = valuesOf(label);
  return [
    ...(values.length === 0 ? [requiredError(`${path}.values`)] : []),
    ...checkOnce(`${path}.values`, values),
    ...checkQualifiedName(`${path}.key`, textAt(label, "key")),
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
    ...(old === undefined
      ? []
      : [...checkSelectorKept("nodeTopology", object, old), ...checkTextKept("storageClassName", object, old)]),
  ];
}
