import type { RawSchema } from "#generator/model/project-model.js";
import { assert, suite } from "../../../support/suite.js";
import { printField, printSpec } from "../../../support/projects/print-shapes.js";

const text: RawSchema = { type: "string" };

const types: readonly { title: string; given: RawSchema; want: string }[] = [
  {
    title: "a number or text: anyOf and flag",
    given: { anyOf: [{ type: "integer" }, { type: "string" }], "x-kubernetes-int-or-string": true },
    want: "IntOrString;",
  },
  {
    title: "a number or text: allOf",
    given: { allOf: [{ anyOf: [{ type: "integer" }, { type: "string" }] }], "x-kubernetes-int-or-string": true },
    want: "IntOrString;",
  },
  { title: "a number or text: flag alone", given: { "x-kubernetes-int-or-string": true }, want: "IntOrString;" },
  { title: "a number or text: format", given: { type: "string", format: "int-or-string" }, want: "IntOrString;" },
  {
    title: "numbers or texts in lists and maps",
    given: { type: "array", items: { type: "object", additionalProperties: { "x-kubernetes-int-or-string": true } } },
    want: "readonly { readonly [key: string]: IntOrString }[];",
  },
  {
    title: "a nullable number or text",
    given: { "x-kubernetes-int-or-string": true, nullable: true },
    want: "IntOrString | null;",
  },
  {
    title: "a list of nullable references",
    given: { type: "array", items: { "x-kubernetes-int-or-string": true, nullable: true } },
    want: "readonly (IntOrString | null)[];",
  },
  { title: "anything", given: { "x-kubernetes-preserve-unknown-fields": true }, want: "unknown;" },
  { title: "an empty schema", given: {}, want: "unknown;" },
  {
    title: "an object of which nothing is said",
    given: { type: "object" },
    want: "{ readonly [key: string]: never };",
  },
  {
    title: "an object that allows no fields",
    given: { type: "object", additionalProperties: false },
    want: "{ readonly [key: string]: never };",
  },
  {
    title: "an object that keeps unknown fields",
    given: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    want: "{ readonly [key: string]: unknown };",
  },
  {
    title: "an object of anything",
    given: { type: "object", additionalProperties: true },
    want: "{ readonly [key: string]: unknown };",
  },
  {
    title: "an object of any values",
    given: { type: "object", additionalProperties: {} },
    want: "{ readonly [key: string]: unknown };",
  },
  {
    title: "a map",
    given: { type: "object", additionalProperties: text },
    want: "{ readonly [key: string]: string };",
  },
  {
    title: "a map of maps",
    given: { type: "object", additionalProperties: { type: "object", additionalProperties: { type: "integer" } } },
    want: "{ readonly [key: string]: { readonly [key: string]: number } };",
  },
  { title: "a list without items", given: { type: "array" }, want: "readonly unknown[];" },
  {
    title: "a list of lists",
    given: { type: "array", items: { type: "array", items: text } },
    want: "readonly (readonly string[])[];",
  },
  {
    title: "a list of nullable texts",
    given: { type: "array", items: { type: "string", nullable: true } },
    want: "readonly (string | null)[];",
  },
  {
    title: "a list of limited length, which is no tuple",
    given: { type: "array", minItems: 1, maxItems: 3, items: text },
    want: "readonly string[];",
  },
  {
    title: "a nullable list",
    given: { type: "array", nullable: true, items: text },
    want: "readonly string[] | null;",
  },
  {
    title: "an enum with the empty text",
    given: { type: "string", enum: ["A", "", "a", 'q"\\'] },
    want: `"A" | "" | "a" | 'q"\\\\';`,
  },
  { title: "an enum of one value", given: { type: "string", enum: ["only"] }, want: '"only";' },
  {
    title: "an enum of numbers, some negative",
    given: { type: "integer", enum: [-2, -1, 0, 301, 301] },
    want: "-2 | -1 | 0 | 301;",
  },
  { title: "an enum of booleans", given: { type: "boolean", enum: [true] }, want: "true;" },
  {
    title: "a nullable enum, for which the API server refuses null",
    given: { type: "string", enum: ["a", "b"], nullable: true },
    want: '"a" | "b";',
  },
  {
    title: "a nullable enum that has null",
    given: { type: "string", enum: ["a", "b", null], nullable: true },
    want: '"a" | "b";',
  },
  {
    title: "a list of an enum",
    given: { type: "array", items: { type: "string", enum: ["a", "b"] } },
    want: 'readonly ("a" | "b")[];',
  },
  {
    title: "an enum value of another type, which can never be valid",
    given: { type: "integer", enum: [1, "injected"] },
    want: "1;",
  },
  {
    title: "an enum of objects",
    given: { type: "object", enum: [{ a: 1 }] },
    want: "{ readonly [key: string]: never };",
  },
  { title: "a time, which is text", given: { type: "string", format: "date-time" }, want: "string;" },
  { title: "a nullable text", given: { type: "string", nullable: true }, want: "string | null;" },
  { title: "a long integer", given: { type: "integer", format: "int64" }, want: "number;" },
  {
    title: "branches that only narrow",
    given: {
      type: "string",
      anyOf: [{ pattern: "a" }, { pattern: "b" }],
      oneOf: [{ maxLength: 1 }],
      not: { enum: ["x"] },
    },
    want: "string;",
  },
];

suite("types of fields", (test) => {
  for (const { title, given, want } of types)
    test(title, async () => {
      const printed = await printField(given);
      assert.is(printed, want);
    });
});

suite("types of objects", (test) => {
  const lines = (printed: string) => printed.split("\n").map((line) => line.trim());

  test("a field that has a default is always there for readers, required or not", async () => {
    const printed = await printSpec({
      type: "object",
      required: ["a"],
      properties: { a: { type: "string", default: "x" }, b: { type: "string", default: "y" } },
    });
    assert.ok(lines(printed).includes("readonly a: string;"));
    assert.ok(lines(printed).includes("readonly b: string;"));
  });

  test("branches that demand fields do not open or close the type", async () => {
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

  test("an object with fields that keeps unknown ones has an index signature", async () => {
    const printed = await printSpec({
      type: "object",
      properties: { a: text },
      "x-kubernetes-preserve-unknown-fields": true,
    });
    assert.ok(lines(printed).includes("readonly [key: string]: unknown;"));
    assert.ok(lines(printed).includes("readonly a?: string | undefined;"));
  });

  test("an embedded resource has apiVersion and kind, and may have metadata", async () => {
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

  test("fields named like keywords of schemas are fields", async () => {
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

  test("fields with the names of inherited members do not reject ordinary literals", async () => {
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

  test("names that are no identifiers are quoted and kept", async () => {
    const properties = { "foo-bar": text, "3scale": text, "two words": text, class: text, fooBar: text, naïve: text };
    const printed = await printSpec({ type: "object", properties });
    for (const key of ['"foo-bar"', '"3scale"', '"two words"', "class", "fooBar"])
      assert.ok(lines(printed).includes(`readonly ${key}?: string | undefined;`), key);
    assert.match(printed, /na(ï|\\u00EF)ve"?\?: string/);
  });

  test("nested types are named by their path, and alike paths do not collide", async () => {
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

  test("a name never exceeds 100 characters and stays when unrelated fields are added", async () => {
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

  test("a list of conditions has the runtime's type only if the schema is exactly that of metav1.Condition", async () => {
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
