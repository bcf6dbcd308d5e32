// Normalizes an object of a built-in kind as a round trip through its Go type does: drops unknown fields, nulls, and zero values with omitempty;
// writes quantities and times canonically.
import { type JsonObject, type JsonValue, isObject, setMember } from "../json.js";
import { decimalText } from "./decode.js";
import { type Property, type SchemaNode, isQuantity, schemaNode, typeFactsOf } from "./schema-node.js";

// Until the object is stored, Go distinguishes an empty list or map from an absent one. JSON.stringify ignores this symbol; spread copies keep it.
const GIVEN_EMPTY = Symbol("members that were given empty");

interface Marked {
  [GIVEN_EMPTY]?: ReadonlySet<string>;
}

/** Reports whether the client set a field of a struct to an empty list or map, which normalization dropped. */
export function wasGivenEmpty(struct: JsonObject | undefined, key: string): boolean {
  return (struct as Marked | undefined)?.[GIVEN_EMPTY]?.has(key) === true;
}

/** Reports whether the client set any list or map at or below a value to empty, and no default has replaced it. */
export function hasGivenEmpty(value: JsonValue | undefined): boolean {
  if (typeof value !== "object" || value === null) return false;
  const given = [...((value as Marked)[GIVEN_EMPTY] ?? [])];
  return given.some((key) => !Object.hasOwn(value, key)) || Object.values(value).some(hasGivenEmpty);
}

/** Removes the marks of empty lists and maps, in place. Stored objects do not have them. */
export function forgetGivenEmpty(value: JsonValue): void {
  if (typeof value !== "object" || value === null) return;
  delete (value as Marked)[GIVEN_EMPTY];
  Object.values(value).forEach(forgetGivenEmpty);
}

/** Normalizes an object of the named schema in place. Values of the wrong type are kept. */
export function normalise(schemaName: string, object: JsonObject): void {
  const { nullIfUnset = [] } = typeFactsOf(schemaName);
  const empty = nullIfUnset.filter((key) => isEmptyList(object[key]));
  normaliseNode(schemaNode(schemaName), object);
  // Field management distinguishes an empty list from null in these fields, although both are stored and served as null.
  for (const key of empty) object[key] = [];
}

/** Returns a copy in which empty lists that are served as null are null; the object itself if it has none. */
export function withoutEmptyLists(schemaName: string | undefined, object: JsonObject): JsonObject {
  const { nullIfUnset = [] } = typeFactsOf(schemaName);
  const empty = nullIfUnset.filter((key) => isEmptyList(object[key]));
  return empty.length === 0 ? object : { ...object, ...Object.fromEntries(empty.map((key) => [key, null])) };
}

function isEmptyList(value: JsonValue | undefined): boolean {
  return Array.isArray(value) && value.length === 0;
}

function normaliseNode(node: SchemaNode, value: JsonValue): JsonValue | undefined {
  if (value === null) return undefined;
  if (typeof value !== "object") return canonicalText(node, value);
  if (Array.isArray(value)) {
    if (node.isBytes) return Buffer.from(value.map(Number)).toString("base64");
    const { items = node.choice } = node;
    return items === undefined ? value : value.map((item) => normaliseNode(items, item) ?? zeroOf(items));
  }
  if (node.choice !== undefined) normaliseStruct(node.choice, value);
  else if (node.values !== undefined) normaliseMap(node.values, value);
  else if (node.properties.size > 0) normaliseStruct(node, value);
  return value;
}

function canonicalText({ text, isBytes }: SchemaNode, value: string | number | boolean): JsonValue {
  // base64 may contain line breaks.
  if (isBytes && typeof value === "string") return value.replace(/[\r\n]+/g, "");
  if (text === undefined || typeof value === "boolean") return value;
  const canonical = text.canonical(typeof value === "number" ? decimalText(value) : value);
  return "text" in canonical ? canonical.text : value;
}

function normaliseMap(values: SchemaNode, map: JsonObject): void {
  for (const key of Object.keys(map))
    setMember(map, key, normaliseNode(values, map[key] as JsonValue) ?? zeroOf(values));
}

// A null in a list or map decodes to the zero value of its type.
function zeroOf({ name, type }: SchemaNode): JsonValue {
  if (isQuantity(name)) return "0";
  switch (type) {
    case "string":
      return "";
    case "integer":
    case "number":
      return 0;
    case "boolean":
      return false;
    case "object":
      return {};
    default:
      return null;
  }
}

function normaliseStruct({ properties }: SchemaNode, object: JsonObject): void {
  for (const key of Object.keys(object)) {
    const property = properties.get(key);
    const value = property && normaliseNode(property.node, object[key] as JsonValue);
    if (property === undefined || value === undefined || isUnset(property, value)) {
      if (typeof value === "object") markGivenEmpty(object, key);
      delete object[key];
    } else object[key] = value;
  }
}

function markGivenEmpty(struct: Marked, key: string): void {
  struct[GIVEN_EMPTY] = new Set([...(struct[GIVEN_EMPTY] ?? []), key]);
}

function isUnset({ node, keepsZero }: Property, value: JsonValue): boolean {
  // An empty list in a field of any type is kept.
  if (Array.isArray(value)) return value.length === 0 && !keepsZero && node.type !== undefined;
  if (isObject(value)) return node.values !== undefined && Object.keys(value).length === 0;
  if (keepsZero || node.name !== undefined) return false;
  return value === "" || value === 0 || value === false;
}
