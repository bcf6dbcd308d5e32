// Random structural schemas, with values of which most are valid.
import fc, { type Arbitrary } from "../fast-check.js";
import { intOrString, some, word } from "./random-values.js";

/** A schema with values for it. */
export interface Shape {
  schema: Record<string, unknown>;
  value: Arbitrary<unknown>;
}

type Shapes = Arbitrary<Shape>;

const text: Shapes = fc
  .constantFrom<Shape>(
    { schema: {}, value: word },
    { schema: { maxLength: 2, minLength: 1 }, value: fc.constantFrom("a", "ab", "abc", "") },
    { schema: { enum: ["a", "b"] }, value: word },
    { schema: { pattern: "^[ab]+$" }, value: fc.constantFrom("a", "bb", "c") },
    { schema: { default: "d" }, value: fc.constantFrom("a", "d") },
    { schema: { nullable: true }, value: fc.constantFrom("a", null) },
    { schema: { nullable: true, default: "d" }, value: fc.constantFrom("a", null) },
    { schema: { format: "date-time" }, value: fc.constantFrom("2020-01-01T00:00:00Z", "x") },
    { schema: { format: "byte" }, value: fc.constantFrom("YQ==", "?") },
    { schema: rules("self == oldSelf", "immutable"), value: word },
    { schema: rules("self != 'x'"), value: word },
  )
  .map(withType("string", { maxLength: 20 }));

const integer: Shapes = fc
  .constantFrom<Shape>(
    { schema: {}, value: fc.constantFrom(0, 1, 2) },
    { schema: { maximum: 2 }, value: fc.constantFrom(0, 2, 3) },
    { schema: { minimum: 1, default: 2 }, value: fc.constantFrom(0, 1, 2) },
    { schema: { format: "int32" }, value: fc.constantFrom(1, 2147483648) },
    { schema: rules("self >= oldSelf", "never less"), value: fc.constantFrom(0, 1, 2) },
    { schema: rules("!oldSelf.hasValue() || self >= oldSelf.value()", "", true), value: fc.constantFrom(0, 1, 2) },
  )
  .map(withType("integer"));

const other: Shapes = fc.constantFrom<Shape>(
  { schema: { type: "boolean" }, value: fc.boolean() },
  { schema: { type: "boolean", default: true }, value: fc.boolean() },
  { schema: { type: "number", minimum: 0.5 }, value: fc.constantFrom(0.5, 1, 0.25) },
  { schema: { "x-kubernetes-int-or-string": true }, value: intOrString },
  {
    schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    value: fc.constantFrom<unknown>({}, { a: 1 }, { a: { b: [null] } }),
  },
  {
    schema: { "x-kubernetes-preserve-unknown-fields": true },
    value: fc.constantFrom<unknown>(1, "x", [1], { a: null }),
  },
  {
    schema: { type: "object", "x-kubernetes-embedded-resource": true, properties: { spec: { type: "object" } } },
    value: fc.constantFrom<unknown>(
      { apiVersion: "v1", kind: "T", metadata: { name: "a", odd: 1 }, spec: { x: 1 } },
      { apiVersion: "v1", kind: "T" },
      { kind: "T" },
    ),
  },
);

const scalar: Shapes = fc.oneof(text, integer, other);

function withType(type: string, limits: object = {}): (shape: Shape) => Shape {
  return ({ schema, value }) => ({ schema: { type, ...limits, ...schema }, value });
}

function rules(rule: string, message = "", isOptional = false): Record<string, unknown> {
  const told = message === "" ? {} : { message };
  return { "x-kubernetes-validations": [{ rule, ...told, ...(isOptional ? { optionalOldSelf: true } : {}) }] };
}

const plain = (type: string) => ({ type, ...(type === "string" ? { maxLength: 20 } : {}) });

/** Returns schemas with at most this number of levels. */
function shape(depth: number): Shapes {
  if (depth === 0) return scalar;
  return fc.oneof(
    { weight: 4, arbitrary: scalar },
    { weight: 2, arbitrary: list(depth) },
    { weight: 2, arbitrary: randomObject(depth) },
    { weight: 1, arbitrary: map(depth) },
  );
}

function list(depth: number): Shapes {
  const set = fc.constantFrom("string", "integer").map((type) => ({
    schema: { type: "array", items: plain(type), "x-kubernetes-list-type": "set", maxItems: 4 },
    value: fc.array<unknown>(type === "string" ? word : fc.constantFrom<unknown>(1, 2), { maxLength: 3 }),
  }));
  const atomic = shape(depth - 1).map(({ schema, value }) => ({
    schema: { type: "array", items: schema, maxItems: 3 },
    value: fc.array(value, { maxLength: 3 }),
  }));
  const keyed = fc
    .tuple(properties(depth - 1), fc.boolean(), fc.boolean())
    .map(([members, hasDefault, hasRule]): Shape => {
      const k = { ...plain("string"), ...(hasDefault ? { default: "k" } : {}) };
      const item = members.schemaOf({ k }, hasDefault ? [] : ["k"]);
      const key = hasDefault ? fc.constantFrom({}, { k: "a" }, { k: "k" }) : fc.constantFrom({ k: "a" }, { k: "b" });
      return {
        schema: {
          ...{ type: "array", items: item, maxItems: 3 },
          ...{ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"] },
          ...(hasRule ? rules("self.size() < 3 || self.exists(item, item.k == 'a')") : {}),
        },
        value: fc.array(
          fc.tuple(key, members.value).map(([named, rest]) => ({ ...rest, ...named })),
          { maxLength: 3 },
        ),
      };
    });
  return fc.oneof(set, atomic, keyed);
}

function map(depth: number): Shapes {
  return fc.tuple(shape(depth - 1), fc.boolean()).map(([{ schema, value }, isAtomic]) => ({
    schema: {
      ...{ type: "object", additionalProperties: schema, maxProperties: 4 },
      ...(isAtomic ? { "x-kubernetes-map-type": "atomic" } : {}),
    },
    value: fc.dictionary(fc.constantFrom("a", "b", "c.d/e"), value, { maxKeys: 2 }),
  }));
}

/** The properties of an object. */
interface Members {
  schemaOf(more: Record<string, unknown>, required: string[]): Record<string, unknown>;
  value: Arbitrary<object>;
}

const NAMES = ["p", "q", "r", "s", "t"];

function properties(depth: number): Arbitrary<Members> {
  return fc.array(shape(depth), { minLength: 1, maxLength: 4 }).map((shapes) => {
    const named = shapes.map((each, index) => [NAMES[index] as string, each] as const);
    const own = Object.fromEntries(named.map(([name, { schema }]) => [name, schema]));
    return {
      schemaOf: (more, required) => ({
        ...{ type: "object", properties: { ...more, ...own } },
        ...(required.length === 0 ? {} : { required }),
      }),
      value: some(Object.fromEntries(named.map(([name, { value }]) => [name, value]))),
    };
  });
}

const OBJECT_FACTS = [
  {},
  {},
  {},
  { "x-kubernetes-map-type": "atomic" },
  rules("!has(self.p) || has(self.p)"),
  rules("has(self.p) || !has(oldSelf.p)", "p stays"),
  { required: ["p"] },
  { "x-kubernetes-preserve-unknown-fields": true },
];

/** Returns object schemas with random properties. */
export function randomObject(depth: number): Shapes {
  return fc.tuple(properties(depth - 1), fc.constantFrom(...OBJECT_FACTS)).map(([members, facts]) => ({
    schema: { ...members.schemaOf({}, []), ...facts },
    value: members.value,
  }));
}
