import type { JsonValue, Schema } from "@gen-operator/runtime/codegen";

/**
 * Builds the smallest value that has the type of a schema, for the user to fill in; undefined if there is none.
 *
 * Patterns and rules are not looked at: the value compiles, the API server may still ask for more.
 */
export function minimalValueOf(schema: Schema, root: Schema = schema, depth = 0): JsonValue | undefined {
  // A required field that contains itself has no smallest value.
  if (depth > 30) return undefined;
  if (schema.$ref !== undefined) {
    const target = root.definitions?.[schema.$ref];
    return target === undefined ? undefined : minimalValueOf(target, root, depth + 1);
  }
  if (schema.default !== undefined) return schema.default;
  const option = schema.enum?.find((value) => value !== null);
  if (option !== undefined) return option;
  if (schema["x-kubernetes-int-or-string"] === true) return 0;
  if (schema.format === "quantity") return "1";
  switch (schema.type) {
    case "string":
      return "x".repeat(schema.minLength ?? 0);
    case "integer":
    case "number":
      return (schema.minimum ?? 0) + (schema.exclusiveMinimum === true ? 1 : 0);
    case "boolean":
      return false;
    case "array":
      return minimalListOf(schema, root, depth);
    case "object":
      return minimalFieldsOf(schema, root, depth);
    default:
      return {};
  }
}

function minimalListOf({ items, minItems = 0 }: Schema, root: Schema, depth: number): JsonValue | undefined {
  if (minItems === 0) return [];
  const item = items === undefined ? {} : minimalValueOf(items, root, depth + 1);
  return item === undefined ? undefined : Array.from({ length: minItems }, () => item);
}

/** Builds the smallest value of the required fields of an object; those that have a default are left out. */
export function minimalFieldsOf(
  schema: Schema,
  root: Schema = schema,
  depth = 0,
): { [name: string]: JsonValue } | undefined {
  const implied = schema["x-kubernetes-embedded-resource"] === true ? { apiVersion: "", kind: "", metadata: {} } : {};
  const fields: { [name: string]: JsonValue } = { ...implied };
  for (const name of schema.required ?? []) {
    const field = schema.properties?.[name];
    if (field === undefined || field.default !== undefined) continue;
    const value = minimalValueOf(field, root, depth + 1);
    if (value === undefined) return undefined;
    fields[name] = value;
  }
  return fields;
}
