import type { JsonValue, Schema } from "@gen-operator/runtime/codegen";

/**
 * Builds the smallest value that has the type of a schema, for the user to fill in; undefined if there is none.
 *
 * The value compiles; of patterns it meets the usual ones, and rules are not looked at, so the API server may still ask for more.
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
      return minimalTextOf(schema);
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

// What fields with a pattern usually hold: names, numbers, quantities, durations, versions, times, addresses, hashes, images.
const TEXTS = [
  ...[
    "x",
    "X",
    "a",
    "1",
    "0",
    "1Gi",
    "1s",
    "1h0m0s",
    "1.0",
    "v1",
    "1.0.0",
    "v1.0.0",
    "example.com",
    "https://example.com",
  ],
  ...[
    "2000-01-01T00:00:00Z",
    "2000-01-01",
    "00:00",
    "10.0.0.1",
    "10.0.0.0/8",
    "a/b",
    "/x",
    "* * * * *",
    "a:b",
    "a=b",
    "x@example.com",
  ],
  ...[
    "00000000-0000-0000-0000-000000000000",
    "sha256:" + "0".repeat(64),
    "0".repeat(64),
    "arn:aws:iam::000000000000:role/x",
  ],
];

function minimalTextOf({ pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY }: Schema): string {
  const shortest = "x".repeat(minLength);
  if (pattern === undefined) return shortest;
  const hasLength = (text: string) => text.length >= minLength && text.length <= maxLength;
  try {
    const expression = new RegExp(pattern, "u");
    return [shortest, ...TEXTS].find((text) => hasLength(text) && expression.test(text)) ?? shortest;
  } catch {
    // Patterns are Go's, which JavaScript does not always read.
    return shortest;
  }
}

function minimalListOf({ items, minItems = 0 }: Schema, root: Schema, depth: number): JsonValue | undefined {
  if (minItems === 0) return [];
  const item = items === undefined ? {} : minimalValueOf(items, root, depth + 1);
  return item === undefined ? undefined : Array.from({ length: minItems }, () => item);
}

/** Builds the smallest values of the required fields of an object, without fields that have a default. */
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
