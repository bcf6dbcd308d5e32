// Brings an object of a built-in kind into the form that Kubernetes' own types give it: members that the type does not have, nulls,
// and zeros that mean "absent" are dropped; quantities and times are written canonically.
import { isObject, memberOf, objectAt, setMember, type JsonObject, type JsonValue } from "../json.js";
import { decimalText } from "./decode.js";
import { isQuantity, textTypeOf } from "./scalar-text.js";
import { childNode, resolveSchema } from "./schemas.js";
import { typeFactsOf } from "./type-facts.js";

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
  normaliseNode({ $ref: `#/components/schemas/${schemaName}` }, object);
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

function normaliseNode(node: JsonObject, value: JsonValue): JsonValue | undefined {
  const { name, schema } = resolveSchema(node);
  if (value === null) return undefined;
  if (typeof value !== "object") return canonicalText(name, value);
  if (Array.isArray(value)) {
    if (schema["format"] === "byte") return Buffer.from(value.map(Number)).toString("base64");
    const items = objectAt(schema, "items");
    return items === undefined ? value : value.map((item) => normaliseNode(items, item) ?? zeroOf(items));
  }
  if (objectAt(schema, "additionalProperties") !== undefined) normaliseMap(schema, value);
  else if (objectAt(schema, "properties") !== undefined) normaliseStruct({ name, schema, object: value });
  return value;
}

function canonicalText(name: string | undefined, value: string | number | boolean): JsonValue {
  const type = textTypeOf(name);
  if (type === undefined || typeof value === "boolean") return value;
  const canonical = type.canonical(typeof value === "number" ? decimalText(value) : value);
  return "text" in canonical ? canonical.text : value;
}

function normaliseMap(schema: JsonObject, map: JsonObject): void {
  for (const [key, member] of Object.entries(map)) {
    const node = childNode(schema, key) as JsonObject;
    setMember(map, key, normaliseNode(node, member) ?? zeroOf(node));
  }
}

// A null in a list or map is the zero value of its type.
function zeroOf(node: JsonObject): JsonValue {
  const { name, schema } = resolveSchema(node);
  if (isQuantity(name)) return "0";
  switch (schema["type"]) {
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

interface Struct {
  name: string | undefined;
  schema: JsonObject;
  object: JsonObject;
}

function normaliseStruct({ name, schema, object }: Struct): void {
  const facts = typeFactsOf(name);
  for (const [key, member] of Object.entries(object)) {
    const node = objectAt(objectAt(schema, "properties"), key);
    const value = node === undefined ? undefined : normaliseNode(node, member);
    if (value === undefined || isUnset(node as JsonObject, value, facts.keepsZero?.includes(key) === true)) {
      if (typeof value === "object") markGivenEmpty(object, key);
      delete object[key];
    } else object[key] = value;
  }
}

function markGivenEmpty(struct: Marked, key: string): void {
  struct[GIVEN_EMPTY] = new Set([...(struct[GIVEN_EMPTY] ?? []), key]);
}

function isUnset(node: JsonObject, value: JsonValue, keepsZero: boolean): boolean {
  if (Array.isArray(value)) return value.length === 0 && !keepsZero;
  if (isObject(value)) return Object.keys(value).length === 0 && isMapNode(node);
  if (keepsZero || resolveSchema(node).name !== undefined) return false;
  return value === "" || value === 0 || value === false;
}

function isMapNode(node: JsonObject): boolean {
  return memberOf(resolveSchema(node).schema, "additionalProperties") !== undefined;
}
