import {
  arrayAt,
  clone,
  isObject,
  memberOf,
  objectAt,
  setMember,
  type JsonObject,
  type JsonValue,
} from "../../json.js";
import { resolveSchema } from "../schemas.js";
import { typeFactsOf } from "../type-facts.js";

/** Called for every object of a tree before its defaults are set; may set defaults that depend on other members. */
export type StructVisitor = (schemaName: string, object: JsonObject) => void;

/** Sets what is absent to its default, in place and everywhere below; `visit` comes first at each object. */
export function setDefaults(schemaName: string, object: JsonObject, visit: StructVisitor): void {
  defaultNode({ $ref: `#/components/schemas/${schemaName}` }, object, visit);
}

function defaultNode(node: JsonObject, value: JsonValue, visit: StructVisitor): void {
  const { name, schema } = resolveSchema(node);
  if (Array.isArray(value)) {
    const items = objectAt(schema, "items");
    if (items !== undefined) for (const item of value) defaultNode(items, item, visit);
    return;
  }
  if (!isObject(value)) return;
  const values = objectAt(schema, "additionalProperties");
  if (values !== undefined) for (const member of Object.values(value)) defaultNode(values, member, visit);
  else if (name !== undefined) defaultStruct({ name, schema, object: value, visit });
}

interface Struct {
  name: string;
  schema: JsonObject;
  object: JsonObject;
  visit: StructVisitor;
}

function defaultStruct({ name, schema, object, visit }: Struct): void {
  visit(name, object);
  const facts = typeFactsOf(name);
  for (const [key, value] of Object.entries(facts.defaults ?? {})) {
    if (memberOf(object, key) === undefined) object[key] = clone(value);
  }
  const properties = objectAt(schema, "properties") ?? {};
  const required = arrayAt(schema, "required") ?? [];
  for (const [key, node] of Object.entries(properties)) {
    if (!isObject(node)) continue;
    const standard = memberOf(node, "default");
    const isShown = standard !== undefined && (required.includes(key) || facts.dropsEmpty?.includes(key) !== true);
    if (memberOf(object, key) === undefined && isShown) object[key] = clone(standard);
    const value = memberOf(object, key);
    if (value !== undefined) defaultNode(node, value, visit);
  }
  for (const key of facts.nullIfUnset ?? []) {
    if (memberOf(object, key) === undefined) setMember(object, key, null);
  }
}
