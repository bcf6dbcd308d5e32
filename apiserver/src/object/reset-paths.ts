import { objectsAt } from "../builtin/read-path.js";
import type { ServedType } from "../builtin/served-type.js";
import { arrayAt, clone, objectAt, type JsonObject } from "../json.js";
import { setAtPath, valueAtPath } from "./field-path.js";
import { isNamespace } from "./finalizers.js";
import { metadataOf } from "./object-meta.js";

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
