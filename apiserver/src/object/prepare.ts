import { hasGivenEmpty } from "../builtin/normal-form.js";
import { objectsAt } from "../builtin/read-path.js";
import type { ServedType } from "../builtin/served-type.js";
import { type JsonObject, type JsonValue, arrayAt, clone, deepEqual, objectAt } from "../json.js";
import { setAtPath, valueAtPath } from "./field-path.js";
import { isNamespace, metadataOf } from "./object-meta.js";

/** Removes what a create does not write, in place: the status of a type that has an endpoint for it. */
export function wipeReset(type: ServedType, object: JsonObject): void {
  const { resetOnMain, createsWithStatus } = type.strategy;
  if (resetOnMain.includes(".status") && !createsWithStatus) setAtPath(object, ".status", undefined);
}

/** Returns `object` with everything that an endpoint does not write as it is in `live`. */
export function restoreReset(
  type: ServedType,
  object: JsonObject,
  from: { live: JsonObject; subresource: string },
): JsonObject {
  const { live, subresource } = from;
  if (subresource === "status") return restoreForStatus(type, object, live);
  if (subresource === "") {
    // The finalizers in the spec of a namespace have an endpoint of their own.
    const { resetOnMain } = type.strategy;
    restore(object, live, isNamespace(type) ? [...resetOnMain, ".spec"] : resetOnMain);
  }
  const part = restorePart(object, from);
  if (part !== undefined) return part;
  if (subresource === "finalize") restore(object, live, [".status"]);
  return object;
}

function restoreForStatus(type: ServedType, object: JsonObject, live: JsonObject): JsonObject {
  const { resetOnStatus } = type.strategy;
  if (!resetOnStatus.includes(".metadata")) {
    restore(object, live, resetOnStatus);
    return object;
  }
  const { managedFields } = metadataOf(object);
  const { managedFields: _managedFields, ...own } = metadataOf(live);
  const metadata = { ...own, ...(managedFields === undefined ? {} : { managedFields }) };
  const { status: _, ...rest } = live;
  const { status } = object;
  return { ...clone(rest), metadata: clone(metadata), ...(status === undefined ? {} : { status }) };
}

function restore(object: JsonObject, live: JsonObject, paths: readonly string[]): void {
  for (const path of paths) {
    const value = valueAtPath(live, path);
    setAtPath(object, path, value === undefined ? undefined : clone(value));
  }
}

const CONTAINERS = ["containers", "initContainers"];
const RESIZED = ["resources", "resizePolicy"];

function copyMembers(to: JsonObject, from: JsonObject, keys: readonly string[]): void {
  for (const key of keys) {
    const value = from[key];
    if (value === undefined) delete to[key];
    else to[key] = value;
  }
}

/** What a subresource writes of its object: brings that of `object` into a copy of `live`. */
type PartOf = (next: JsonObject, object: JsonObject) => void;

// By the name of the subresource.
const PARTS: Record<string, PartOf> = {
  ephemeralcontainers(next, object) {
    const containers = arrayAt(objectAt(object, "spec"), "ephemeralContainers");
    const { ephemeralContainers: _, ...spec } = objectAt(next, "spec") ?? {};
    next["spec"] = { ...spec, ...(containers === undefined ? {} : { ephemeralContainers: containers }) };
  },
  resize(next, object) {
    const [spec, given] = [objectAt(next, "spec") ?? {}, objectAt(object, "spec") ?? {}];
    copyMembers(spec, given, ["resources"]);
    for (const list of CONTAINERS) {
      const containers = objectsAt(object, `spec.${list}`);
      const own = objectsAt(next, `spec.${list}`);
      // What is called otherwise is refused as it is.
      if (own.some(({ name }, index) => name !== containers[index]?.["name"])) copyMembers(spec, given, [list]);
      else own.forEach((container, index) => copyMembers(container, containers[index] ?? {}, RESIZED));
    }
  },
  approval(next, object) {
    const { conditions: _, ...status } = objectAt(next, "status") ?? {};
    const conditions = arrayAt(objectAt(object, "status"), "conditions");
    next["status"] = { ...status, ...(conditions === undefined ? {} : { conditions }) };
  },
};

/** Returns `live` with what a subresource writes of `object`; `undefined` for a subresource that writes more. */
function restorePart(
  object: JsonObject,
  { live, subresource }: { live: JsonObject; subresource: string },
): JsonObject | undefined {
  const part = PARTS[subresource];
  if (part === undefined) return undefined;
  // A Pod with other containers is refused as it is.
  const isOther = CONTAINERS.some(
    (list) => objectsAt(object, `spec.${list}`).length !== objectsAt(live, `spec.${list}`).length,
  );
  if (subresource === "resize" && isOther) return object;
  const next = clone(live);
  const { managedFields, resourceVersion } = metadataOf(object);
  const kept = { ...(managedFields === undefined ? {} : { managedFields }) };
  next["metadata"] = { ...metadataOf(next), ...kept, ...(resourceVersion === undefined ? {} : { resourceVersion }) };
  part(next, object);
  return next;
}

/** Sets the generation of a new object; types without one keep what the client sent. */
export function setFirstGeneration(type: ServedType, object: JsonObject): void {
  const { generation } = type.strategy;
  if (generation !== "never" && generation !== "spec-from-zero") metadataOf(object)["generation"] = 1;
}

/** Raises the generation of an object that is about to replace `live` through the main endpoint, if its type says so. */
export function raiseGeneration(type: ServedType, object: JsonObject, live: JsonObject): void {
  const isFromZero = type.strategy.generation === "spec-from-zero";
  const generation = metadataOf(live)["generation"] ?? (isFromZero ? 0 : undefined);
  if (generation !== undefined && isRaised(type, object, live))
    metadataOf(object)["generation"] = Number(generation) + 1;
}

function isRaised(type: ServedType, object: JsonObject, live: JsonObject): boolean {
  switch (type.strategy.generation) {
    case "never":
    case "first":
      return false;
    case "spec":
    case "spec-from-zero":
      return !deepEqual(object["spec"], live["spec"]);
    case "spec-as-given":
      return hasGivenEmpty(object["spec"]) || !deepEqual(object["spec"], live["spec"]);
    case "spec-and-annotations":
      return !deepEqual(object["spec"], live["spec"]) || !deepEqual(annotationsOf(object), annotationsOf(live));
    case "outside-metadata-as-given":
      return (
        hasGivenEmpty(outsideMetadata(type, object)) ||
        !deepEqual(outsideMetadata(type, object), outsideMetadata(type, live))
      );
    case "outside-metadata-and-labels":
      return (
        !deepEqual(withoutEmpty(outsideMetadata(type, object)), withoutEmpty(outsideMetadata(type, live))) ||
        !deepEqual(objectAt(metadataOf(object), "labels") ?? {}, objectAt(metadataOf(live), "labels") ?? {})
      );
    case "outside-metadata":
      return !deepEqual(outsideMetadata(type, object), outsideMetadata(type, live));
  }
}

// What is shown as null when it is empty may be there as an empty list.
function withoutEmpty(object: JsonObject): JsonObject {
  const isEmpty = (value: JsonValue) => value === null || (Array.isArray(value) && value.length === 0);
  return Object.fromEntries(Object.entries(object).filter(([, value]) => !isEmpty(value)));
}

function annotationsOf(object: JsonObject): JsonObject {
  return objectAt(metadataOf(object), "annotations") ?? {};
}

function outsideMetadata(type: ServedType, object: JsonObject): JsonObject {
  const rest = { ...object };
  for (const key of ["apiVersion", "kind", "metadata"]) delete rest[key];
  if (type.subresources.some(({ name }) => name === "status")) delete rest["status"];
  return rest;
}
