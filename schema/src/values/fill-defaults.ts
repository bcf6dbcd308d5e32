import { isJsonObject, setMember, type JsonObject, type JsonValue } from "../json/json.js";
import { followRef, memberSchema, type Definitions, type Schema } from "./schema.js";

/**
 * Returns a value as the API server stores it: nulls of fields that are not nullable are dropped, and absent fields are set to their defaults,
 * recursively.
 *
 * Does not mutate `value`; unchanged parts are shared with the result.
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

// A null that is not nullable counts as absent.
function filledOrNull(value: unknown, schema: Schema, definitions: Definitions): unknown {
  if (value !== null) return fillDefaults(value, schema, definitions);
  const fallback = isNullable(schema, definitions) ? undefined : defaultOf(schema);
  return fallback === undefined ? null : filledDefault(fallback, schema, definitions);
}

// The caller may mutate the result, so copy the default.
function filledDefault(value: JsonValue, schema: Schema, definitions: Definitions): unknown {
  return fillDefaults(structuredClone(value), schema, definitions);
}

// A null default counts as no default.
function defaultOf(schema: Schema): JsonValue | undefined {
  return schema.default ?? undefined;
}

function isNullable(schema: Schema, definitions: Definitions): boolean {
  return followRef(schema, definitions).nullable === true;
}
