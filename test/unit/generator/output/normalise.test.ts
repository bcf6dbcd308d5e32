import type { RawSchema } from "#generator/model/project-model.js";
import { assert, suite } from "../../../support/suite.js";
import { printField, printSpec } from "../../../support/projects/print-shapes.js";

const text: RawSchema = { type: "string" };

const types: readonly { title: string; given: RawSchema; want: string }[] = [
  {
    title: "is IntOrString for anyOf with x-kubernetes-int-or-string",
    given: { anyOf: [{ type: "integer" }, { type: "string" }], "x-kubernetes-int-or-string": true },
    want: "IntOrString;",
  },
  {
    title: "is IntOrString for anyOf within allOf",
    given: { allOf: [{ anyOf: [{ type: "integer" }, { type: "string" }] }], "x-kubernetes-int-or-string": true },
    want: "IntOrString;",
  },
  {
    title: "is IntOrString for x-kubernetes-int-or-string alone",
    given: { "x-kubernetes-int-or-string": true },
    want: "IntOrString;",
  },
  {
    title: "is IntOrString for format int-or-string",
    given: { type: "string", format: "int-or-string" },
    want: "IntOrString;",
  },
  {
    title: "is IntOrString in lists and maps",
    given: { type: "array", items: { type: "object", additionalProperties: { "x-kubernetes-int-or-string": true } } },
    want: "readonly { readonly [key: string]: IntOrString }[];",
  },
  {
    title: "is IntOrString or null if nullable",
    given: { "x-kubernetes-int-or-string": true, nullable: true },
    want: "IntOrString | null;",
  },
  {
    title: "is a list of IntOrString or null for nullable items",
    given: { type: "array", items: { "x-kubernetes-int-or-string": true, nullable: true } },
    want: "readonly (IntOrString | null)[];",
  },
  {
    title: "is unknown with x-kubernetes-preserve-unknown-fields",
    given: { "x-kubernetes-preserve-unknown-fields": true },
    want: "unknown;",
  },
  { title: "is unknown for an empty schema", given: {}, want: "unknown;" },
  {
    title: "is an empty object for type object alone",
    given: { type: "object" },
    want: "{ readonly [key: string]: never };",
  },
  {
    title: "is an empty object for additionalProperties: false",
    given: { type: "object", additionalProperties: false },
    want: "{ readonly [key: string]: never };",
  },
  {
    title: "is a map of unknown for an object that preserves unknown fields",
    given: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    want: "{ readonly [key: string]: unknown };",
  },
  {
    title: "is a map of unknown for additionalProperties: true",
    given: { type: "object", additionalProperties: true },
    want: "{ readonly [key: string]: unknown };",
  },
  {
    title: "is a map of unknown for additionalProperties: {}",
    given: { type: "object", additionalProperties: {} },
    want: "{ readonly [key: string]: unknown };",
  },
  {
    title: "is a map for additionalProperties with a type",
    given: { type: "object", additionalProperties: text },
    want: "{ readonly [key: string]: string };",
  },
  {
    title: "is a map of maps for nested additionalProperties",
    given: { type: "object", additionalProperties: { type: "object", additionalProperties: { type: "integer" } } },
    want: "{ readonly [key: string]: { readonly [key: string]: number } };",
  },
  { title: "is a list of unknown without items", given: { type: "array" }, want: "readonly unknown[];" },
  {
    title: "is a list of lists for nested items",
    given: { type: "array", items: { type: "array", items: text } },
    want: "readonly (readonly string[])[];",
  },
  {
    title: "is a list of strings or null for nullable items",
    given: { type: "array", items: { type: "string", nullable: true } },
    want: "readonly (string | null)[];",
  },
  {
    title: "is a list, not a tuple, with minItems and maxItems",
    given: { type: "array", minItems: 1, maxItems: 3, items: text },
    want: "readonly string[];",
  },
  {
    title: "is a list or null if nullable",
    given: { type: "array", nullable: true, items: text },
    want: "readonly string[] | null;",
  },
  {
    title: "is a union of enum values, including the empty string",
    given: { type: "string", enum: ["A", "", "a", 'q"\\'] },
    want: `"A" | "" | "a" | 'q"\\\\';`,
  },
  { title: "is a literal for an enum of one value", given: { type: "string", enum: ["only"] }, want: '"only";' },
  {
    title: "is a union of unique numbers for an integer enum",
    given: { type: "integer", enum: [-2, -1, 0, 301, 301] },
    want: "-2 | -1 | 0 | 301;",
  },
  { title: "is a literal for a boolean enum", given: { type: "boolean", enum: [true] }, want: "true;" },
  {
    title: "excludes null for a nullable enum without null, which the API server rejects",
    given: { type: "string", enum: ["a", "b"], nullable: true },
    want: '"a" | "b";',
  },
  {
    title: "excludes null for a nullable enum that contains null",
    given: { type: "string", enum: ["a", "b", null], nullable: true },
    want: '"a" | "b";',
  },
  {
    title: "is a list of a union for items with an enum",
    given: { type: "array", items: { type: "string", enum: ["a", "b"] } },
    want: 'readonly ("a" | "b")[];',
  },
  {
    title: "excludes enum values of another type",
    given: { type: "integer", enum: [1, "injected"] },
    want: "1;",
  },
  {
    title: "is an empty object for an enum of objects",
    given: { type: "object", enum: [{ a: 1 }] },
    want: "{ readonly [key: string]: never };",
  },
  { title: "is string for date-time", given: { type: "string", format: "date-time" }, want: "string;" },
  { title: "is string or null if nullable", given: { type: "string", nullable: true }, want: "string | null;" },
  { title: "is number for int64", given: { type: "integer", format: "int64" }, want: "number;" },
  {
    title: "ignores branches that only narrow the type",
    given: {
      type: "string",
      anyOf: [{ pattern: "a" }, { pattern: "b" }],
      oneOf: [{ maxLength: 1 }],
      not: { enum: ["x"] },
    },
    want: "string;",
  },
];

suite("type of a field", (test) => {
  for (const { title, given, want } of types)
    test(title, async () => {
      const printed = await printField(given);
      assert.is(printed, want);
    });
});

suite("type of an object", (test) => {
  const lines = (printed: string) => printed.split("\n").map((line) => line.trim());

  test("has fields with defaults as required for readers", async () => {
    const printed = await printSpec({
      type: "object",
      required: ["a"],
      properties: { a: { type: "string", default: "x" }, b: { type: "string", default: "y" } },
    });
    assert.ok(lines(printed).includes("readonly a: string;"));
    assert.ok(lines(printed).includes("readonly b: string;"));
  });

  test("ignores required fields in anyOf branches", async () => {
    const printed = await printSpec({
      type: "object",
      properties: { a: text, b: text },
      anyOf: [{ required: ["a"] }, { required: ["b"] }],
    });
    assert.equal(lines(printed), [
      "readonly spec?: ThingSpec | undefined;",
      "export interface ThingSpec {",
      "readonly a?: string | undefined;",
      "readonly b?: string | undefined;",
      "}",
    ]);
  });

  test("has an index signature if it preserves unknown fields", async () => {
    const printed = await printSpec({
      type: "object",
      properties: { a: text },
      "x-kubernetes-preserve-unknown-fields": true,
    });
    assert.ok(lines(printed).includes("readonly [key: string]: unknown;"));
    assert.ok(lines(printed).includes("readonly a?: string | undefined;"));
  });

  test("has apiVersion, kind, and optional metadata for an embedded resource", async () => {
    const printed = await printSpec({
      type: "object",
      "x-kubernetes-embedded-resource": true,
      "x-kubernetes-preserve-unknown-fields": true,
    });
    for (const line of [
      "readonly apiVersion: string;",
      "readonly kind: string;",
      "readonly metadata?: Partial<ObjectMeta> | undefined;",
      "readonly [key: string]: unknown;",
    ])
      assert.ok(lines(printed).includes(line), line);
  });

  test("has fields that are named like schema keywords", async () => {
    const names = [
      "type",
      "enum",
      "items",
      "required",
      "properties",
      "default",
      "nullable",
      "$ref",
      "format",
      "allOf",
      "description",
      "parameters",
    ];
    const printed = await printSpec({
      type: "object",
      required: ["enum"],
      properties: Object.fromEntries(names.map((name) => [name, text])),
    });
    for (const name of names)
      assert.ok(
        lines(printed).includes(name === "enum" ? "readonly enum: string;" : `readonly ${name}?: string | undefined;`),
        name,
      );
  });

  test("has fields named like Object members as unknown, so that literals are accepted", async () => {
    const properties = JSON.parse(
      '{"hasOwnProperty":{"type":"string"},"toString":{"type":"string"},"constructor":{"type":"object","properties":{"a":{"type":"string"}}},"__proto__":{"type":"string"}}',
    ) as RawSchema;
    const printed = await printSpec({ type: "object", properties });
    for (const line of [
      "readonly hasOwnProperty?: unknown;",
      "readonly toString?: unknown;",
      "readonly constructor?: unknown;",
      "readonly __proto__?: unknown;",
    ])
      assert.ok(lines(printed).includes(line), `${line}\n${printed}`);
  });

  test("quotes names that are not identifiers", async () => {
    const properties = { "foo-bar": text, "3scale": text, "two words": text, class: text, fooBar: text, naïve: text };
    const printed = await printSpec({ type: "object", properties });
    for (const key of ['"foo-bar"', '"3scale"', '"two words"', "class", "fooBar"])
      assert.ok(lines(printed).includes(`readonly ${key}?: string | undefined;`), key);
    assert.match(printed, /na(ï|\\u00EF)ve"?\?: string/);
  });

  test("names nested types by their path, with a hash on collision", async () => {
    const object = { type: "object", properties: { a: text } };
    const printed = await printSpec({
      type: "object",
      properties: {
        "foo-bar": object,
        fooBar: { type: "object", properties: { b: text } },
        list: { type: "array", items: object },
        map: { type: "object", additionalProperties: object },
      },
    });
    const names = [...printed.matchAll(/interface (\w+)/g)].map(([, name]) => name ?? "");
    assert.equal(names.slice(0, 2), ["ThingSpec", "ThingSpecFooBar"]);
    assert.match(names[2] ?? "", /^ThingSpecFooBar_[0-9a-f]{8}$/);
    assert.equal(names.slice(3), ["ThingSpecListItem", "ThingSpecMapValue"]);
  });

  test("limits names to 100 characters, which do not change when other fields are added", async () => {
    const nest = (depth: number, leaf: RawSchema): RawSchema =>
      depth === 0 ? leaf : { type: "object", properties: { [`level${depth}OfNesting`]: nest(depth - 1, leaf) } };
    const leaf = { type: "object", properties: { a: text } };
    const namesOf = (printed: string) => [...printed.matchAll(/interface (\w+)/g)].map(([, name]) => name ?? "");
    const names = namesOf(await printSpec(nest(12, leaf)));
    assert.ok(names.every((name) => name.length <= 100));
    assert.is(new Set(names).size, names.length);
    const more = nest(12, leaf) as { properties: object };
    const after = namesOf(await printSpec({ ...more, properties: { added: leaf, ...more.properties } }));
    assert.equal(
      after.filter((name) => name !== "ThingSpecAdded"),
      names,
    );
  });

  test("uses StatusCondition only for a schema equal to metav1.Condition", async () => {
    const properties = {
      type: text,
      status: { type: "string", enum: ["True", "False", "Unknown"] },
      reason: text,
      message: text,
      lastTransitionTime: { type: "string", format: "date-time" },
      observedGeneration: { type: "integer" },
    };
    const required = ["type", "status", "reason", "message", "lastTransitionTime"];
    const items = { type: "object", properties, required };
    assert.is(await printField({ type: "array", items }), "readonly StatusCondition[];");
    assert.match(
      await printField({ type: "array", items: { ...items, required: ["type"] } }),
      /^readonly ThingSpecItem\[\];/,
    );
    const narrowed = { ...properties, type: { type: "string", enum: ["Ready"] } };
    assert.match(
      await printField({ type: "array", items: { ...items, properties: narrowed } }),
      /^readonly ThingSpecItem\[\];/,
    );
  });
});
