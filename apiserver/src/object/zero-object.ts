import { builtinSchemas, resolveSchema } from "../builtin/schemas.js";
import { typeFactsOf } from "../builtin/type-facts.js";
import { type JsonObject, type JsonValue, isObject, objectAt } from "../json.js";

const zeros = new Map<string, JsonObject>();

/**
 * Returns what an object of a built-in kind shows when nothing in it is set, such as `spec: {…}` and `status: {}`.
 *
 * A create is recorded as a change of this object, so what it shows has no owner.
 */
export function zeroObjectOf(schemaName: string): JsonObject {
  let zero = zeros.get(schemaName);
  if (zero === undefined) zeros.set(schemaName, (zero = zeroOf(schemaName, builtinSchemas()[schemaName] ?? {})));
  return zero;
}

function zeroOf(name: string | undefined, schema: JsonObject): JsonObject {
  const zero: JsonObject = {};
  const { dropsEmpty = [], nullIfUnset = [] } = typeFactsOf(name);
  const required = new Set(Array.isArray(schema["required"]) ? schema["required"] : []);
  for (const [key, node] of Object.entries(objectAt(schema, "properties") ?? {})) {
    if (!isObject(node) || dropsEmpty.includes(key)) continue;
    const value = zeroMember(node);
    if (value !== undefined) zero[key] = value;
    else if (nullIfUnset.includes(key) || (required.has(key) && isNullable(node))) zero[key] = null;
  }
  return zero;
}

// Defaults such as "TCP" are set by defaulting; those that are empty are what Go shows for a member that is no pointer.
function zeroMember(node: JsonObject): JsonValue | undefined {
  const value = node["default"];
  if (value === "" || value === 0 || value === false) return value;
  if (!isObject(value) || Object.keys(value).length > 0) return undefined;
  const { name, schema } = resolveSchema(node);
  return zeroOf(name, schema);
}

function isNullable(node: JsonObject): boolean {
  const { type } = resolveSchema(node).schema;
  return type === "array" || type === "object";
}
