import { clone, isJsonObject, memberOf, setMember, type JsonObject, type JsonValue } from "./json.js";

/** Applies a merge patch (RFC 7386) to a copy of `object`, as Kubernetes 1.36 does. */
export function applyMergePatch(live: JsonObject, patch: JsonObject): JsonObject {
  const merged = clone(live);
  for (const [key, value] of Object.entries(patch)) {
    const current = memberOf(live, key);
    if (value === null) delete merged[key];
    else if (isJsonObject(value))
      setMember(merged, key, isJsonObject(current) ? applyMergePatch(current, value) : withoutNulls(value));
    // An array that takes the place of an object keeps the nulls in its items, as in the library that Kubernetes uses.
    else setMember(merged, key, isJsonObject(current) ? clone(value) : withoutNulls(value));
  }
  return merged;
}

function withoutNulls<Value extends JsonValue>(value: Value): Value;
function withoutNulls(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item));
  if (!isJsonObject(value)) return value;
  const kept: JsonObject = {};
  for (const [key, member] of Object.entries(value)) {
    if (member !== null) setMember(kept, key, withoutNulls(member));
  }
  return kept;
}
