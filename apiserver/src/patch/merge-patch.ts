import { goTypeOf } from "../errors/go-format.js";
import { badRequest } from "../errors/status-error.js";
import { clone, isObject, memberOf, setMember, type JsonObject, type JsonValue } from "../json.js";

/** Applies a merge patch (RFC 7386) to a copy of `object`; throws a 400 if the patch is no object. */
export function applyMergePatch(object: JsonObject, patch: unknown): JsonObject {
  if (patch === null) throw badRequest("Invalid JSON Patch");
  if (!isObject(patch)) {
    const target = "value of type map[string]interface {}";
    throw badRequest(`error decoding patch: json: cannot unmarshal ${goTypeOf(patch)} into Go ${target}`);
  }
  return merge(object, patch);
}

function merge(live: JsonObject, patch: JsonObject): JsonObject {
  const merged = clone(live);
  for (const [key, value] of Object.entries(patch)) {
    const current = memberOf(live, key);
    if (value === null) delete merged[key];
    else if (isObject(value)) setMember(merged, key, isObject(current) ? merge(current, value) : withoutNulls(value));
    // An array that takes the place of an object keeps the nulls in its items, as in the library that Kubernetes uses.
    else setMember(merged, key, isObject(current) ? clone(value) : withoutNulls(value));
  }
  return merged;
}

function withoutNulls<Value extends JsonValue>(value: Value): Value;
function withoutNulls(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item));
  if (!isObject(value)) return value;
  const kept: JsonObject = {};
  for (const [key, member] of Object.entries(value)) {
    if (member !== null) setMember(kept, key, withoutNulls(member));
  }
  return kept;
}
