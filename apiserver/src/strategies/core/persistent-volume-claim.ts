import { compareQuantities, parseQuantity } from "@gen-operator/schema";
import { textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, arrayAt, clone, deepEqual, memberOf, objectAt } from "../../json.js";
import {
  checkGivenDomain,
  checkLabel,
  checkLabelSelector,
  checkOneOf,
  checkRequired,
} from "../../validation/fields.js";
import { qualifiedNameProblems } from "../../validation/names.js";
import { isNative } from "../pod-template/resources.js";
import { BILLION, fractionWarnings } from "../shared/resource-requests.js";
import type { Strategy } from "../strategy.js";

export const persistentVolumeClaimStrategy: Strategy = {
  checksMetadata: ["object", "change"],
  returnsDeletedObject: true,
  settlesOnUpdate: "all",
  defaults(claim, { uid }) {
    if (uid !== undefined) protectByFinalizer(claim, "kubernetes.io/pvc-protection");
  },
  dropFields: (claim, old) => settleDataSource(objectAt(claim, "spec") ?? {}, objectAt(old, "spec")),
  validate: checkClaim,
  validateStatus: checkClaimStatus,
  warnings: claimWarnings,
};

const OTHER_MODES = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"];

const CLAIM_RULE =
  "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

function checkClaim(claim: JsonObject, old: JsonObject | undefined): FieldError[] {
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

/** Validates the spec of a claim or of a claim template. */
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
  // kube-apiserver prints an internal struct, whose fields have no JSON tags, so it is `{}`.
  if (textAt(reference, "namespace") !== "")
    return [invalidError(path, {}, "may not be specified when dataSourceRef.namespace is specified")];
  const isSame = ["apiGroup", "kind", "name"].every((key) => deepEqual(source[key] ?? null, reference[key] ?? null));
  return isSame ? [] : [invalidError(path, {}, "must match dataSourceRef")];
}

function storageOf(spec: JsonObject): JsonValue | undefined {
  return memberOf(objectAt(objectAt(spec, "resources"), "requests"), "storage");
}

// The request of a claim may shrink, but not to its capacity or below.
function checkGrowth(claim: JsonObject, now: JsonValue | undefined, before: JsonValue | undefined): FieldError[] {
  const has = memberOf(objectAt(objectAt(claim, "status"), "capacity"), "storage") ?? "0";
  const [size, old] = [String(now ?? "0"), String(before ?? "0")];
  const isSmaller = (compareQuantities(size, old) ?? 0) < 0;
  if (!isSmaller || (compareQuantities(size, String(has)) ?? 1) > 0) return [];
  return [forbiddenError("spec.resources.requests.storage", "field can not be less than status.capacity")];
}

/** Legacy annotation with the class of a claim or volume. */
export const CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class";

// The class may be moved from the legacy annotation to the spec.
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

// The volume and the class may be set once; the storage request of a bound claim may change.
function fixedPart(spec: JsonObject, { isBound, old }: { isBound: boolean; old: JsonObject }): JsonObject {
  const { volumeAttributesClassName, ...fixed } = spec;
  for (const key of ["volumeName", "storageClassName"]) if (memberOf(old, key) === undefined) delete fixed[key];
  if (!isBound) return volumeAttributesClassName === undefined ? fixed : spec;
  const resources = objectAt(spec, "resources") ?? {};
  if (objectAt(resources, "requests") === undefined) return fixed;
  const { storage: _, ...requests } = objectAt(resources, "requests") ?? {};
  return { ...fixed, resources: { ...resources, requests } };
}

const RESIZE_STATES = [
  ...["ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizePending", "NodeResizeInProgress"],
  "NodeResizeInfeasible",
].sort();

function checkClaimStatus(claim: JsonObject): FieldError[] {
  const status = objectAt(claim, "status");
  const modes = arrayAt(objectAt(claim, "spec"), "accessModes") ?? [];
  const [states, sizes] = ["status.allocatedResourceStatuses", "status.allocatedResources"] as const;
  return [
    ...(modes.length === 0 ? [requiredError("Spec.accessModes")] : []),
    ...entriesOf(status, "capacity").flatMap(([name, size]) => checkSize(`status.capacity[${name}]`, size)),
    ...entriesOf(status, "allocatedResourceStatuses").flatMap(([name, state]) => [
      ...checkResourceName(states, name),
      ...(RESIZE_STATES.includes(String(state)) ? [] : [notSupportedError(states, name, RESIZE_STATES)]),
    ]),
    ...entriesOf(status, "allocatedResources").flatMap(([name, size]) => {
      const unknown = checkResourceName(sizes, name);
      return unknown.length > 0 ? unknown : checkSize(`${sizes}[${name}]`, size);
    }),
  ];
}

export function entriesOf(status: JsonObject | undefined, key: string): [string, JsonValue][] {
  return Object.entries(objectAt(status, key) ?? {});
}

function checkSize(field: string, size: JsonValue): FieldError[] {
  if ((compareQuantities(String(size), "0") ?? 0) >= 0) return [];
  const value = parseQuantity(String(size)) ?? 0n;
  return [invalidError(field, Number(value / BILLION), "must be a valid resource quantity")];
}

function checkResourceName(field: string, name: string): FieldError[] {
  const problems = qualifiedNameProblems(name);
  if (problems.length > 0) return problems.map((problem) => invalidError(field, name, problem));
  return isNative(name) && name !== "storage" ? [notSupportedError(field, name, ["storage"])] : [];
}

const OLD_SOURCES = new Set(["PersistentVolumeClaim", "VolumeSnapshot.snapshot.storage.k8s.io"]);

function sourceKind(source: JsonObject): string {
  const [kind, group] = [textAt(source, "kind"), textAt(source, "apiGroup")];
  return group === "" ? kind : `${kind}.${group}`;
}

/** Synchronizes dataSource and dataSourceRef; dataSource supports only claims and snapshots. */
function settleDataSource(spec: JsonObject, old: JsonObject | undefined): void {
  const isElsewhere = textAt(spec, "dataSourceRef.namespace") !== "";
  if (isElsewhere && objectAt(old, "dataSourceRef") === undefined) delete spec["dataSourceRef"];
  const hadSource = ["dataSource", "dataSourceRef"].some((key) => objectAt(old, key) !== undefined);
  const source = objectAt(spec, "dataSource");
  const reference = objectAt(spec, "dataSourceRef");
  const isForgotten = source !== undefined && reference === undefined && !hadSource;
  if (isForgotten && !OLD_SOURCES.has(sourceKind(source))) delete spec["dataSource"];
  else if (source !== undefined && reference === undefined) spec["dataSourceRef"] = clone(source);
  else if (source === undefined && reference !== undefined && textAt(reference, "namespace") === "")
    spec["dataSource"] = clone(reference);
}

/** Adds a finalizer that protects an object in use. */
export function protectByFinalizer(object: JsonObject, finalizer: string): void {
  const metadata = objectAt(object, "metadata") ?? {};
  const finalizers = arrayAt(metadata, "finalizers") ?? [];
  if (!finalizers.includes(finalizer)) metadata["finalizers"] = [...finalizers, finalizer];
}

export function annotationWarnings(
  object: JsonObject,
  deprecated: readonly [key: string, since: string, field: string][],
) {
  const annotations = objectAt(objectAt(object, "metadata"), "annotations");
  return deprecated
    .filter(([key]) => memberOf(annotations, key) !== undefined)
    .map(
      ([key, since, field]) =>
        `metadata.annotations[${key}]: deprecated since ${since}; use "${field}" attribute instead`,
    );
}

/** Returns the warnings for a PersistentVolumeClaim. */
function claimWarnings(claim: JsonObject): string[] {
  return [
    ...annotationWarnings(claim, [[CLASS_ANNOTATION, "v1.8", "storageClassName"]]),
    ...claimSpecWarnings("spec", objectAt(claim, "spec") ?? {}),
  ];
}

/** Returns the warnings for the spec of a claim at `path`. */
export function claimSpecWarnings(path: string, spec: JsonObject): string[] {
  return ["requests", "limits"].flatMap((list) =>
    fractionWarnings(`${path}.resources.${list}`, objectAt(objectAt(spec, "resources"), list), ["storage"]),
  );
}
