import { applyMergePatch as mergeObjects } from "@gen-operator/schema";
import { goTypeOf } from "../errors/go-format.js";
import { badRequest } from "../errors/status-error.js";
import { isObject, type JsonObject } from "../json.js";

/** Applies a merge patch (RFC 7386) to a copy of `object`; throws a 400 if the patch is no object. */
export function applyMergePatch(object: JsonObject, patch: unknown): JsonObject {
  if (patch === null) throw badRequest("Invalid JSON Patch");
  if (!isObject(patch)) {
    const target = "value of type map[string]interface {}";
    throw badRequest(`error decoding patch: json: cannot unmarshal ${goTypeOf(patch)} into Go ${target}`);
  }
  return mergeObjects(object, patch);
}
