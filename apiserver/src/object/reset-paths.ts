import type { ServedType } from "../builtin/served-type.js";
import { clone, type JsonObject } from "../json.js";
import { setAtPath, valueAtPath } from "./field-path.js";
import { isNamespace } from "./finalizers.js";
import { metadataOf } from "./object-meta.js";

/** Removes what a create does not write, in place. */
export function wipeReset(type: ServedType, object: JsonObject): void {
  for (const path of type.strategy.resetOnMain) setAtPath(object, path, undefined);
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
    const paths = isNamespace(type) ? [...type.strategy.resetOnMain, ".spec"] : type.strategy.resetOnMain;
    restore(object, live, paths);
  }
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
  const metadata = { ...metadataOf(live), ...(managedFields === undefined ? {} : { managedFields }) };
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
