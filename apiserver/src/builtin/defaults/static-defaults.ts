import { canonicalQuantity } from "@gen-operator/schema";
import { type JsonObject, type JsonValue, clone, memberOf, objectAt, setMember } from "../../json.js";
import { isQuantity } from "../scalar-text.js";
import { type SchemaNode, schemaNode } from "../schema-node.js";

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

function defaultStruct(
  { name = "", defaults, properties, facts }: SchemaNode,
  object: JsonObject,
  visit: StructVisitor,
): void {
  for (const [key, value] of defaults) if (memberOf(object, key) === undefined) object[key] = clone(value);
  for (const key of Object.keys(object)) {
    const node = properties.get(key)?.node;
    if (node === undefined) continue;
    if (isQuantity(node.values?.name) && name.startsWith(CORE)) roundUp(objectAt(object, key) ?? {});
    else defaultNode(node, object[key] as JsonValue, visit);
  }
  for (const key of facts.nullIfUnset ?? []) if (memberOf(object, key) === undefined) setMember(object, key, null);
}

const CORE = "io.k8s.api.core.v1.";
const BELOW_THOUSANDTHS = /^(-?)(\d+)(n|u|e-9|e-6)$/;

// The core knows no amounts of resources below a thousandth, and rounds up to one.
function roundUp(amounts: JsonObject): void {
  for (const [name, amount] of Object.entries(amounts)) {
    const [, sign = "", digits = "", suffix = ""] = BELOW_THOUSANDTHS.exec(String(amount)) ?? [];
    if (digits === "") continue;
    const parts = suffix === "n" || suffix === "e-9" ? 1_000_000n : 1000n;
    const thousandths = (BigInt(digits) + parts - 1n) / parts;
    const rounded = canonicalQuantity(`${sign}${thousandths}${suffix.startsWith("e") ? "e-3" : "m"}`);
    if ("text" in rounded) setMember(amounts, name, rounded.text);
  }
}
