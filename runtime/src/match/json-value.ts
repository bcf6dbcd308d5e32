// Values as JSON carries them, and whether the API server stores two of them as the same, however they are written.
import { isJsonObject, isSameQuantity, type JsonObject, type JsonValue } from "@gen-operator/schema";
import type { SchemaNode } from "./schema-node.js";

/** Returns a value as JSON carries it; undefined if it does not. */
export function plainOf(value: unknown): JsonValue | undefined {
  const text = JSON.stringify(value) as string | undefined;
  return text === undefined ? undefined : (JSON.parse(text) as JsonValue);
}

/** Tells whether a value is JSON as it is: nothing in it goes missing, or becomes something else. */
export function isPlain(value: unknown): boolean {
  if (value === null || typeof value === "string" || typeof value === "boolean" || Number.isFinite(value)) return true;
  const prototype: unknown = value === undefined ? undefined : Object.getPrototypeOf(value);
  if (prototype === Array.prototype) return Array.from(value as unknown[]).every(isPlain);
  return prototype === Object.prototype && Object.values(value as object).every(isPlain);
}

/** Compares a leaf: a scalar, or a list or map that is owned as a whole. */
export function isSameValue(desired: JsonValue, live: JsonValue | undefined, schema: SchemaNode): boolean {
  if (desired === live) return true;
  if (live === undefined || live === null) return false;
  if (Array.isArray(desired) && Array.isArray(live))
    return live.length === desired.length && desired.every((item, at) => isSameValue(item, live[at], schema.items));
  if (isJsonObject(desired) && isJsonObject(live)) return isSameObject(desired, live, schema);
  return isSameScalar(desired, live, schema);
}

/** Tells whether the API server stores two scalars as the same: times, quantities and bytes can be spelled in several ways. */
export function isSameScalar(desired: JsonValue, live: JsonValue, schema: SchemaNode): boolean {
  if (desired === live) return true;
  const areTexts = typeof desired === "string" && typeof live === "string";
  if (schema.isTime) return areTexts && isSameTime(desired, live);
  if (schema.isBytes) return areTexts && isSameBytes(desired, live);
  return schema.isQuantity && isSameQuantity(desired, live);
}

// Go ignores line breaks in base64, as `base64` and YAML write them.
function isSameBytes(desired: string, live: string): boolean {
  const text = desired.replace(/[\r\n]/g, "");
  const isBase64 = text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
  return isBase64 && Buffer.from(text, "base64").equals(Buffer.from(live, "base64"));
}

// https://kubernetes.io/docs/concepts/services-networking/service/, https://kubernetes.io/docs/concepts/storage/persistent-volumes/
const ALLOCATED: ReadonlySet<string> = new Set([
  ...["clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"],
  ...["volumeName", "nodeName", "serviceAccountName"],
]);

/**
 * Tells whether a field is empty in the desired object, and the API server has filled it in: an address or a port that it allocates and keeps, or
 * a default. It cannot tell an empty value from an absent one.
 */
export function isFilledByServer(
  name: string,
  { desired, live, schema }: { desired: JsonValue; live: JsonValue | undefined; schema: SchemaNode },
): boolean {
  if (!schema.dropsEmpty || !isEmptyValue(desired) || typeof live !== typeof desired) return false;
  return ALLOCATED.has(name) || (schema.default !== undefined && isSameValue(schema.default, live, schema));
}

function isSameObject(desired: JsonObject, live: JsonObject, schema: SchemaNode): boolean {
  if (!isOfJson(desired)) return false;
  for (const [name, value] of Object.entries(desired)) {
    const child = schema.property(name);
    if (!isSameValue(value, live[name], child) && !isLeftOut(value, live[name], child)) return false;
  }
  return Object.keys(live).every(
    (name) => Object.hasOwn(desired, name) || isFilledIn(live[name]!, schema.property(name)),
  );
}

// Inside an atomic value the API server omits empty fields that Go cannot tell from absent ones, or fills in the default instead.
function isLeftOut(value: JsonValue, live: JsonValue | undefined, schema: SchemaNode): boolean {
  if (!schema.dropsEmpty || !isEmptyValue(value)) return false;
  return (live ?? null) === null || (schema.default !== undefined && isSameValue(schema.default, live, schema));
}

// A field inside an atomic value that we did not send is a default of the schema, or an explicit null.
function isFilledIn(value: JsonValue, schema: SchemaNode): boolean {
  if (value === null && schema.isBuiltin) return true;
  return schema.default !== undefined && isSameValue(schema.default, value, schema);
}

/** Tells whether a value is one that Go leaves out: zero, empty or null. */
export function isEmptyValue(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (isJsonObject(value)) return Object.keys(value).length === 0 && isOfJson(value);
  return value === null || value === "" || value === 0 || value === false;
}

/** Tells whether an object becomes JSON as it is, and not by a `toJSON` of its class. */
export function isOfJson(object: JsonObject): boolean {
  const prototype: unknown = Object.getPrototypeOf(object);
  // Nearly all objects are of no class, and cannot have a toJSON of one.
  return prototype === Object.prototype || typeof object["toJSON"] !== "function";
}

// https://www.rfc-editor.org/rfc/rfc3339#section-5.6, as Go reads it
const TIMESTAMP = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:[.,](\d+))?(Z|[+-]\d{2}:\d{2})$/;

/** Tells whether a time is stored as `live` by the API server: in UTC, of a Time the whole seconds, and of a MicroTime the microseconds. */
export function isSameTime(desired: string, live: string): boolean {
  const [wanted, stored] = [TIMESTAMP.exec(desired), TIMESTAMP.exec(live)];
  if (wanted === null || stored === null || secondsOf(wanted) !== secondsOf(stored)) return false;
  // A MicroTime without all of its six digits is refused.
  return stored[2] === undefined || wanted[2] === stored[2];
}

function secondsOf([, local, , zone]: RegExpExecArray): number {
  return Date.parse(`${local}${zone}`);
}
