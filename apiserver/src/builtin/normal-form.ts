// Brings an object of a built-in kind into the form that Kubernetes' own types give it: members that the type does not have, nulls,
// and zeros that mean "absent" are dropped; quantities and times are written canonically.
import { type JsonObject, type JsonValue, isObject, setMember } from "../json.js";
import { decimalText } from "./decode.js";
import { type Property, type SchemaNode, isQuantity, schemaNode, typeFactsOf } from "./schema-node.js";

// Go tells an empty list or map from an absent one until the object is stored. JSON does not show the mark, and copies by spreading keep it.
const GIVEN_EMPTY = Symbol("members that were given empty");

interface Marked {
  [GIVEN_EMPTY]?: ReadonlySet<string>;
}

/** True for a member of a struct that the writer gave as an empty list or map, and that was dropped. */
export function wasGivenEmpty(struct: JsonObject | undefined, key: string): boolean {
  return (struct as Marked | undefined)?.[GIVEN_EMPTY]?.has(key) === true;
}

/** True if the writer gave any list or map at or below a value empty, and no default has filled it. */
export function hasGivenEmpty(value: JsonValue | undefined): boolean {
  if (typeof value !== "object" || value === null) return false;
  const given = [...((value as Marked)[GIVEN_EMPTY] ?? [])];
  return given.some((key) => !Object.hasOwn(value, key)) || Object.values(value).some(hasGivenEmpty);
}

/** Forgets, in place, what was given empty: what is stored has no such thing. */
export function forgetGivenEmpty(value: JsonValue): void {
  if (typeof value !== "object" || value === null) return;
  delete (value as Marked)[GIVEN_EMPTY];
  Object.values(value).forEach(forgetGivenEmpty);
}

/** Normalises an object of the named schema in place; values that do not fit their type stay as they are. */
export function normalise(schemaName: string, object: JsonObject): void {
  const { nullIfUnset = [] } = typeFactsOf(schemaName);
  const empty = nullIfUnset.filter((key) => isEmptyList(object[key]));
  normaliseNode(schemaNode(schemaName), object);
  // An empty list has an owner where an absent one is shown as null, although it is stored, and shown, as absent.
  for (const key of empty) object[key] = [];
}

/** Returns the members of an object with null for empty lists that are shown so; the object itself is not changed. */
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
  // Bytes may be written in lines.
  if (isBytes && typeof value === "string") return value.replace(/[\r\n]+/g, "");
  if (text === undefined || typeof value === "boolean") return value;
  const canonical = text.canonical(typeof value === "number" ? decimalText(value) : value);
  return "text" in canonical ? canonical.text : value;
}

function normaliseMap(values: SchemaNode, map: JsonObject): void {
  for (const key of Object.keys(map))
    setMember(map, key, normaliseNode(values, map[key] as JsonValue) ?? zeroOf(values));
}

// A null in a list or map is the zero value of its type.
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
  // What may be anything is what it is.
  if (Array.isArray(value)) return value.length === 0 && !keepsZero && node.type !== undefined;
  if (isObject(value)) return node.values !== undefined && Object.keys(value).length === 0;
  if (keepsZero || node.name !== undefined) return false;
  return value === "" || value === 0 || value === false;
}
