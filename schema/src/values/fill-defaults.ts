import { isJsonObject, setMember, type JsonObject, type JsonValue } from "../json/json.js";
import { followRef, memberSchema, type Definitions, type Schema } from "./schema.js";

/**
 * Returns a value as the API server stores it: nulls that a field cannot hold are dropped, absent fields have their defaults, and so have
 * the fields inside these.
 *
 * The value itself is not changed; what needs no change is shared with it.
 */
export function fillDefaults(value: unknown, schema: Schema, definitions: Definitions): unknown {
  const target = followRef(schema, definitions);
  if (Array.isArray(value)) {
    const { items } = target;
    return items === undefined ? value : filledItems(value, items, definitions);
  }
  return isJsonObject(value) ? filledMembers(value, target, definitions) : value;
}

function filledItems(items: readonly unknown[], schema: Schema, definitions: Definitions): readonly unknown[] {
  let changed: unknown[] | undefined;
  items.forEach((item, index) => {
    const filled = filledOrNull(item, schema, definitions);
    if (filled !== item) (changed ??= [...items])[index] = filled;
  });
  return changed ?? items;
}

function filledMembers(object: JsonObject, schema: Schema, definitions: Definitions): object {
  let changed: JsonObject | undefined;
  const copy = () => (changed ??= { ...object });
  for (const name of Object.keys(object)) {
    const member = object[name];
    const inner = memberSchema(schema, name);
    if (inner === undefined || member === undefined) continue;
    const filled = filledOrNull(member, inner, definitions);
    if (filled === null && !isNullable(inner, definitions)) delete copy()[name];
    else if (filled !== member) setMember(copy(), name, filled as JsonValue);
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const value = defaultOf(property);
    if (value === undefined || (Object.hasOwn(object, name) && object[name] !== undefined)) continue;
    setMember(copy(), name, filledDefault(value, property, definitions) as JsonValue);
  }
  return changed ?? object;
}

// A null of what cannot be null counts as absent.
function filledOrNull(value: unknown, schema: Schema, definitions: Definitions): unknown {
  if (value !== null) return fillDefaults(value, schema, definitions);
  const fallback = isNullable(schema, definitions) ? undefined : defaultOf(schema);
  return fallback === undefined ? null : filledDefault(fallback, schema, definitions);
}

// What a caller gets is its own to change.
function filledDefault(value: JsonValue, schema: Schema, definitions: Definitions): unknown {
  return fillDefaults(structuredClone(value), schema, definitions);
}

// A default of null is none.
function defaultOf(schema: Schema): JsonValue | undefined {
  return schema.default ?? undefined;
}

function isNullable(schema: Schema, definitions: Definitions): boolean {
  return followRef(schema, definitions).nullable === true;
}
