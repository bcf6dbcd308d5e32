import { followRef, type Definitions } from "./fill-defaults.js";
import type { Schema } from "./schema.js";

const known = new WeakMap<Schema, boolean>();

/** Tells whether a schema has rules anywhere; found out once. Most of a schema has none, and is passed over. */
export function hasRules(schema: Schema, definitions: Definitions): boolean {
  const found = known.get(schema);
  if (found !== undefined) return found;
  // A schema that refers to itself has no other rules there.
  known.set(schema, false);
  const { properties = {}, items, additionalProperties, allOf = [] } = schema;
  const inner = [...Object.values(properties), ...allOf, ...(items === undefined ? [] : [items])];
  if (typeof additionalProperties === "object") inner.push(additionalProperties);
  const has =
    (schema["x-kubernetes-validations"] ?? []).length > 0 ||
    inner.some((each) => hasRules(followRef(each, definitions), definitions));
  known.set(schema, has);
  return has;
}
