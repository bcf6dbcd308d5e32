/** Any value that JSON can hold. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;

/** A JSON object; the order of its members is kept but never means anything. */
export type JsonObject = { [key: string]: JsonValue };

/** Tells whether a value is a JSON object: neither null nor a list. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the object's own member; names such as "constructor" are never inherited. */
export function memberOf<Value>(
  object: { readonly [name: string]: Value } | undefined,
  name: string,
): Value | undefined {
  return object !== undefined && Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Sets the object's own member, whatever its name; a plain assignment to "__proto__" would not. */
export function setMember(object: JsonObject, name: string, value: JsonValue): void {
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Copies a value deeply. */
export function clone<Value extends JsonValue>(value: Value): Value {
  return cloneAny(value) as Value;
}

function cloneAny(value: JsonValue): JsonValue {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(cloneAny);
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) setMember(copy, key, cloneAny(value[key] as JsonValue));
  return copy;
}

/** Tells whether both are the same JSON value; the order of members does not matter, an absent value equals only itself. */
export function deepEqual(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => deepEqual(item, b[index]));
  }
  if (Array.isArray(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  for (const key of keys) {
    if (!Object.hasOwn(b, key) || !deepEqual(a[key], b[key])) return false;
  }
  return true;
}

/**
 * How deeply values may be nested. A kube-apiserver takes 10,000 levels; what walks over a value here needs the stack of the thread, which holds
 * about 2,500.
 */
export const MAX_DEPTH = 1_000;

/** Tells whether a value is nested too deeply. */
export function isTooDeep(value: JsonValue): boolean {
  let level: JsonValue[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return true;
    level = level.flatMap(childrenOf);
  }
  return false;
}

function childrenOf(value: JsonValue): JsonValue[] {
  if (typeof value !== "object" || value === null) return [];
  const children = Array.isArray(value) ? value : Object.values(value);
  return children.filter((child) => typeof child === "object" && child !== null);
}
