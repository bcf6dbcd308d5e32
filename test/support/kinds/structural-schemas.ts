// Random structural schemas that an API server accepts, and random objects, most of which are valid.
import fc from "../fast-check.js";

export interface RandomSchema {
  readonly [keyword: string]: unknown;
}

/** Field names: common ones, and ones that have a meaning in code. */
const fieldName = fc.oneof(
  {
    arbitrary: fc.constantFrom("name", "size", "mode", "items", "type", "enum", "default", "required", "ports"),
    weight: 4,
  },
  fc.constantFrom(
    "__proto__",
    "constructor",
    "toString",
    "class",
    "a-b",
    "a.b",
    "3x",
    "$ref",
    "x y",
    "größe",
    "*/",
    "'",
  ),
);

const text = fc.oneof(
  fc.constantFrom("", "a", "ab", "abc", "A", "0", "x-1", "😀", "'", '"', "\\"),
  fc.string({ maxLength: 6 }),
);

const nullable = fc.constantFrom({}, {}, {}, { nullable: true });
const documented = fc.constantFrom({}, {}, { description: "What it is. */ @x\n\n- `a`" }, { title: "A title" });

const stringSchema = fc
  .oneof(
    fc.record({ minLength: fc.nat(3), maxLength: fc.integer({ min: 3, max: 6 }) }, { requiredKeys: [] }),
    fc.record({ pattern: fc.constantFrom("^[a-z]+$", "^a", "b$", "[0-9]") }),
    fc
      .uniqueArray(text, { minLength: 1, maxLength: 4 })
      .chain((values) => fc.constantFrom<RandomSchema>({ enum: values }, { enum: values, default: values[0] })),
    fc.record({ default: text }),
  )
  .map((rest): RandomSchema => ({ type: "string", ...rest }));

const integerSchema = fc
  .oneof(
    fc.record(
      { minimum: fc.integer({ min: -5, max: 2 }), maximum: fc.integer({ min: 3, max: 9 }) },
      { requiredKeys: [] },
    ),
    fc.record({ minimum: fc.constant(0), exclusiveMinimum: fc.boolean() }),
    fc.record({ multipleOf: fc.integer({ min: 1, max: 4 }) }),
    fc.uniqueArray(fc.integer({ min: -3, max: 9 }), { minLength: 1, maxLength: 3 }).map((values) => ({ enum: values })),
    fc.record({ default: fc.integer({ min: -9, max: 9 }), format: fc.constantFrom("int32", "int64") }),
  )
  .map((rest): RandomSchema => ({ type: "integer", ...rest }));

const scalar: fc.Arbitrary<RandomSchema> = fc.oneof(
  { arbitrary: stringSchema, weight: 3 },
  { arbitrary: integerSchema, weight: 2 },
  fc.constantFrom<RandomSchema>({ type: "boolean" }, { type: "boolean", default: false }, { type: "number" }),
  fc.constantFrom<RandomSchema>(
    { "x-kubernetes-int-or-string": true },
    { "x-kubernetes-int-or-string": true, anyOf: [{ type: "integer" }, { type: "string" }] },
  ),
);

const counts = fc.constantFrom({}, {}, { maxItems: 3 }, { minItems: 1 });

function objectOf(field: fc.Arbitrary<RandomSchema>): fc.Arbitrary<RandomSchema> {
  return fc.uniqueArray(fc.tuple(fieldName, field), { maxLength: 4, selector: ([name]) => name }).chain((fields) => {
    const names = fields.map(([name]) => name);
    const properties: Record<string, unknown> = {};
    for (const [name, schema] of fields)
      Object.defineProperty(properties, name, { value: schema, enumerable: true, configurable: true, writable: true });
    return fc
      .record({
        required: fc.subarray(names),
        isOpen: fc.constantFrom(false, false, false, true),
      })
      .map(({ required, isOpen }): RandomSchema => ({
        type: "object",
        ...(names.length > 0 ? { properties } : {}),
        ...(required.length > 0 ? { required } : {}),
        ...(isOpen ? { "x-kubernetes-preserve-unknown-fields": true } : {}),
      }));
  });
}

function containerOf(field: fc.Arbitrary<RandomSchema>): fc.Arbitrary<RandomSchema> {
  return fc.oneof(
    { arbitrary: objectOf(field), weight: 3 },
    field.map((additionalProperties): RandomSchema => ({ type: "object", additionalProperties })),
    fc.tuple(field, counts).map(([items, rest]): RandomSchema => ({ type: "array", items, ...rest })),
    objectOf(field).map((item): RandomSchema => ({
      type: "array",
      items: withKey(item),
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["key"],
    })),
    fc.constantFrom<RandomSchema>(
      { type: "array", items: { type: "string" }, "x-kubernetes-list-type": "set" },
      { type: "object" },
      { "x-kubernetes-preserve-unknown-fields": true },
      { type: "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true },
    ),
  );
}

function withKey(item: RandomSchema): RandomSchema {
  const { properties = {}, required = [] } = item as { properties?: object; required?: string[] };
  return { ...item, properties: { ...properties, key: { type: "string" } }, required: [...required, "key"] };
}

function fieldOf(depth: number): fc.Arbitrary<RandomSchema> {
  const plain = depth === 0 ? scalar : fc.oneof({ arbitrary: scalar, weight: 2 }, containerOf(fieldOf(depth - 1)));
  return fc.tuple(plain, nullable, documented).map(([schema, ...rest]) => ({ ...schema, ...rest[0], ...rest[1] }));
}

/** A schema of a kind with a spec, and in some cases a status. */
export const structuralSchema: fc.Arbitrary<RandomSchema> = fc
  .record({
    spec: objectOf(fieldOf(2)),
    status: fc.option(objectOf(fieldOf(1)), { nil: undefined }),
    isRequired: fc.boolean(),
  })
  .map(({ spec, status, isRequired }) => ({
    type: "object",
    ...(isRequired ? { required: ["spec"] } : {}),
    properties: { spec, ...(status === undefined ? {} : { status }) },
  }));

/** Values of other types; one in thirteen values is replaced by one of them. */
const OTHER_VALUES: readonly unknown[] = ["", "a", 0, 1, -1, true, [], {}];

/** Returns values for a schema, most of which are valid: no null, and no duplicates in sets and maps. */
export function valueOf(schema: RandomSchema): fc.Arbitrary<unknown> {
  const usual = usualValueOf(schema);
  return fc.oneof({ arbitrary: usual, weight: 12 }, fc.constantFrom(...OTHER_VALUES));
}

function usualValueOf(schema: RandomSchema): fc.Arbitrary<unknown> {
  const { type, items, properties, additionalProperties } = schema;
  if (Array.isArray(schema["enum"])) return fc.constantFrom(...(schema["enum"] as unknown[]));
  if (schema["x-kubernetes-int-or-string"] === true) return fc.oneof(fc.integer({ min: -9, max: 9 }), text);
  switch (type) {
    case "string":
      return text;
    case "integer":
      return fc.integer({ min: -9, max: 12 });
    case "number":
      return fc.oneof(fc.integer({ min: -9, max: 9 }), fc.constantFrom(0.5, -1.25));
    case "boolean":
      return fc.boolean();
    case "array":
      return fc.uniqueArray(valueOf(items as RandomSchema), { maxLength: 4, selector: keyOf });
    case "object":
      if (additionalProperties !== undefined)
        return fc.dictionary(fc.constantFrom("a", "b", "c d"), valueOf(additionalProperties as RandomSchema));
      return objectValueOf((properties ?? {}) as { readonly [name: string]: RandomSchema }, schema);
    default:
      return fc.constantFrom(...OTHER_VALUES);
  }
}

/** Returns the identity of an item in a set or map list. */
function keyOf(item: unknown): unknown {
  return typeof item === "object" && item !== null && "key" in item ? item.key : JSON.stringify(item);
}

function objectValueOf(
  properties: { readonly [name: string]: RandomSchema },
  { required, "x-kubernetes-embedded-resource": isEmbedded }: RandomSchema,
): fc.Arbitrary<unknown> {
  const base = isEmbedded === true ? { apiVersion: "v1", kind: "X", metadata: { name: "x" } } : {};
  const names = Object.keys(properties);
  const needed = new Set(Array.isArray(required) ? (required as string[]) : []);
  const fields = fc.tuple(
    ...names.map((name) => {
      const value = valueOf(properties[name] ?? {});
      const present = value.map((each) => [name, each] as const);
      return fc.oneof({ arbitrary: present, weight: needed.has(name) ? 20 : 2 }, fc.constant(undefined));
    }),
  );
  // Objects without declared properties get no additional field, because they may contain any fields in practice.
  const extra: readonly (readonly [string, unknown])[] = names.length === 0 ? [] : [["unknown", 1]];
  const unknown = fc.constantFrom<readonly (readonly [string, unknown])[]>([], [], [], [], extra);
  return fc.tuple(fields, unknown).map(([known, more]) => {
    const object: Record<string, unknown> = { ...base };
    for (const field of [...known, ...more])
      if (field !== undefined)
        Object.defineProperty(object, field[0], {
          value: field[1],
          enumerable: true,
          configurable: true,
          writable: true,
        });
    return object;
  });
}
