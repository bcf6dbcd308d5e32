import { canonicalQuantity } from "@gen-operator/schema";
import { normalise } from "../builtin/normal-form.js";
import { type SchemaNode, isQuantity, schemaNode } from "../builtin/schema-node.js";
import type { ServedType } from "../builtin/served-type.js";
import { type JsonObject, type JsonValue, clone, isObject, memberOf, objectAt, setMember } from "../json.js";
import type { DefaultingContext, StructDefaults } from "./strategy.js";
import { strategyOf } from "./table.js";

/**
 * Converts an object of a built-in type to its stored form, in place: drops unknown fields and nulls, canonicalizes quantities, sets defaults, and
 * allocates addresses. Idempotent; defaults that depend on the UID are set only if it is known.
 */
export function defaultBuiltin(type: ServedType, object: JsonObject, context: DefaultingContext): void {
  if (type.schemaName === undefined) return;
  normalise(type.schemaName, object);
  const root = schemaNode(type.schemaName);
  if (!isObject(object["metadata"]) && root.properties.has("metadata")) object["metadata"] = {};
  const strategy = strategyOf(type);
  setDefaults(root, object, strategy.structDefaults);
  strategy.defaults?.(object, context);
}

const API = "io.k8s.api.";

/** Sets defaults recursively, in place; the defaults of a struct are set before those of its fields. */
function setDefaults(node: SchemaNode, value: JsonValue, structDefaults: StructDefaults | undefined): void {
  if (typeof value !== "object" || value === null) return;
  const { items, values, name } = node;
  if (Array.isArray(value)) {
    if (items !== undefined) for (const item of value) setDefaults(items, item, structDefaults);
  } else if (values !== undefined)
    for (const member of Object.values(value)) setDefaults(values, member, structDefaults);
  else if (name !== undefined) {
    if (structDefaults !== undefined && name.startsWith(API)) structDefaults[name.slice(API.length)]?.(value);
    setStructDefaults(node, value, structDefaults);
  }
}

function setStructDefaults(
  { name = "", defaults, properties, facts }: SchemaNode,
  object: JsonObject,
  structDefaults: StructDefaults | undefined,
): void {
  for (const [key, value] of defaults) if (memberOf(object, key) === undefined) object[key] = clone(value);
  for (const key of Object.keys(object)) {
    const node = properties.get(key)?.node;
    if (node === undefined) continue;
    if (isQuantity(node.values?.name) && name.startsWith(CORE)) roundUp(objectAt(object, key) ?? {});
    else setDefaults(node, object[key] as JsonValue, structDefaults);
  }
  for (const key of facts.nullIfUnset ?? []) if (memberOf(object, key) === undefined) setMember(object, key, null);
}

const CORE = "io.k8s.api.core.v1.";
const BELOW_THOUSANDTHS = /^(-?)(\d+)(n|u|e-9|e-6)$/;

// As in Kubernetes, quantities of core resources are rounded up to milli-units.
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
