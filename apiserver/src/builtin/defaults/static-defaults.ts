import { clone, memberOf, setMember, type JsonObject, type JsonValue } from "../../json.js";
import { schemaNode, type SchemaNode } from "../schema-node.js";

/** Called for every object of a tree before its defaults are set; may set defaults that depend on other members. */
export type StructVisitor = (schemaName: string, object: JsonObject) => void;

/** Sets what is absent to its default, in place and everywhere below; `visit` comes first at each object. */
export function setDefaults(schemaName: string, object: JsonObject, visit: StructVisitor): void {
  defaultNode(schemaNode(schemaName), object, visit);
}

function defaultNode(node: SchemaNode, value: JsonValue, visit: StructVisitor): void {
  if (typeof value !== "object" || value === null) return;
  const { items, values, name } = node;
  if (Array.isArray(value)) {
    if (items !== undefined) for (const item of value) defaultNode(items, item, visit);
  } else if (values !== undefined) for (const member of Object.values(value)) defaultNode(values, member, visit);
  else if (name !== undefined) {
    visit(name, value);
    defaultStruct(node, value, visit);
  }
}

function defaultStruct({ defaults, properties, facts }: SchemaNode, object: JsonObject, visit: StructVisitor): void {
  for (const [key, value] of defaults) if (memberOf(object, key) === undefined) object[key] = clone(value);
  for (const key of Object.keys(object)) {
    const node = properties.get(key)?.node;
    if (node !== undefined) defaultNode(node, object[key] as JsonValue, visit);
  }
  for (const key of facts.nullIfUnset ?? []) if (memberOf(object, key) === undefined) setMember(object, key, null);
}
