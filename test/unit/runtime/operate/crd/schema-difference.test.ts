import fc from "../../../../support/fast-check.js";
import { buildRuntimeSchema } from "#generator/emit/resource/runtime-schema.js";
import type { Schema } from "#runtime/base/resource-definition.js";
import { schemaDifferences, type ClusterSchema } from "#runtime/operate/crd-check.js";
import { runs } from "../../../../support/runs.js";
import { assert, suite } from "../../../../support/suite.js";

const text: Schema = { type: "string" };
const port: Schema = { "x-kubernetes-int-or-string": true };
const open: Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
const anything: Schema = { "x-kubernetes-preserve-unknown-fields": true };
const labels: Schema = { type: "object", additionalProperties: text };

function object(properties: { readonly [name: string]: Schema }, more: Schema = {}): Schema {
  return { type: "object", properties, ...more };
}

function list(items: Schema, more: Schema = {}): Schema {
  return { type: "array", items, ...more };
}

function mapBy(...keys: string[]): Schema {
  return { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys };
}

/** Returns the differences of the field `it` as lines; `compiled` and `found` are its schemas. */
function differencesOf(compiled: Schema, found: Schema, more: Omit<ClusterSchema, "schema"> = {}): string[] {
  const { definitions, ...it } = compiled;
  const root = definitions === undefined ? object({ it }) : object({ it }, { definitions });
  return linesOf(root, { schema: object({ it: found }), ...more });
}

function linesOf(compiled: Schema, cluster: ClusterSchema): string[] {
  return schemaDifferences(compiled, cluster).map(({ path, expected, found }) => `${path}: ${expected} / ${found}`);
}

interface Case {
  readonly title: string;
  readonly compiled: Schema;
  readonly found: Schema;
  readonly differences: readonly string[];
}

const item = object({ name: text, image: text });

const cases: readonly Case[] = [
  {
    title: "a field that is missing is one",
    compiled: object({ a: text, b: object({ c: text }) }),
    found: object({ b: object({}) }),
    differences: ["it.a: string / no such field", "it.b.c: string / no such field"],
  },
  {
    title: "an object that is missing is one, and its fields are not named",
    compiled: object({ a: item }),
    found: object({}),
    differences: ["it.a: object / no such field"],
  },
  {
    title: "a field in the items of a list is named with []",
    compiled: object({ containers: list(item) }),
    found: object({ containers: list(object({ name: text })) }),
    differences: ["it.containers[].image: string / no such field"],
  },
  {
    title: "the values of a map are named with .*",
    compiled: { type: "object", additionalProperties: list(text) },
    found: { type: "object", additionalProperties: list({ type: "integer" }) },
    differences: ["it.*[]: string / integer"],
  },
  {
    title: "a name that is no word is quoted in the path",
    compiled: object({ "example.com/a": text }),
    found: object({}),
    differences: ['it["example.com/a"]: string / no such field'],
  },
  { title: "a field that only the cluster has is none", compiled: object({}), found: item, differences: [] },
  { title: "a field that is kept without being declared is none", compiled: item, found: open, differences: [] },
  {
    title: "a field below one that the cluster declares is one, also where unknown fields are kept above",
    compiled: object({ a: item }),
    found: { ...open, properties: { a: object({ name: text }) } },
    differences: ["it.a.image: string / no such field"],
  },
  { title: "a field that is a key of a map is none", compiled: item, found: labels, differences: [] },
  {
    title: "a field that is a key of a map of another type is one",
    compiled: item,
    found: { type: "object", additionalProperties: { type: "integer" } },
    differences: ["it.name: string / integer", "it.image: string / integer"],
  },
  {
    title: "a map of any keys where the cluster has declared ones is one",
    compiled: labels,
    found: object({ a: text }),
    differences: ["it.*: string / no such field"],
  },
  {
    title: "unknown fields that the cluster drops are one",
    compiled: open,
    found: object({ a: text }),
    differences: ["it: unknown fields kept / unknown fields dropped"],
  },
  {
    title: "a scalar of another type is one",
    compiled: text,
    found: port,
    differences: ["it: string / int-or-string"],
  },
  {
    title: "an integer or string of one type in the cluster is one",
    compiled: port,
    found: { type: "integer" },
    differences: ["it: int-or-string / integer"],
  },
  {
    title: "an integer or string is the same in either spelling",
    compiled: port,
    found: { type: "string", format: "int-or-string" },
    differences: [],
  },
  {
    title: "another type is named alone, whatever is below it",
    compiled: item,
    found: list(text),
    differences: ["it: object / array"],
  },
  { title: "a type where the cluster has any value is none", compiled: text, found: anything, differences: [] },
  {
    title: "any value where the cluster has a type is one",
    compiled: anything,
    found: item,
    differences: ["it: any value / object"],
  },
  {
    title: "null that the cluster refuses is one",
    compiled: { type: "string", nullable: true },
    found: text,
    differences: ["it: nullable / not nullable"],
  },
  {
    title: "null that only the cluster has is none",
    compiled: text,
    found: { type: "string", nullable: true },
    differences: [],
  },
  {
    title: "a list that merges in another way is one",
    compiled: list(item, mapBy("name")),
    found: list(item),
    differences: ["it: list type map by name / list type atomic"],
  },
  {
    title: "a list that the matcher compares as a whole, and the server merges, is one",
    compiled: list(text),
    found: list(text, { "x-kubernetes-list-type": "set" }),
    differences: ["it: list type atomic / list type set"],
  },
  {
    title: "a list type that says what is so anyway is none",
    compiled: list(text),
    found: list(text, { "x-kubernetes-list-type": "atomic" }),
    differences: [],
  },
  {
    title: "other keys of a list are one",
    compiled: list(item, mapBy("name")),
    found: list(item, mapBy("name", "image")),
    differences: ["it: list type map by name / list type map by image and name"],
  },
  {
    title: "the keys of a list in another order are none",
    compiled: list(item, mapBy("image", "name")),
    found: list(item, mapBy("name", "image")),
    differences: [],
  },
  {
    title: "a map that merges in another way is one",
    compiled: object({ a: text }, { "x-kubernetes-map-type": "atomic" }),
    found: object({ a: text }, { "x-kubernetes-map-type": "granular" }),
    differences: ["it: map type atomic / map type granular"],
  },
  {
    title: "what identifies an embedded object is none, as it need not be declared",
    compiled: { ...open, properties: { apiVersion: text, kind: text, metadata: object({ name: text }), spec: item } },
    found: { ...open, "x-kubernetes-embedded-resource": true, properties: { spec: item } },
    differences: [],
  },
  {
    title: "a format, a default or a limit is none",
    compiled: object(
      { a: { type: "integer", format: "int32", default: 1, minimum: 1, enum: [1, 2] } },
      { required: ["a"] },
    ),
    found: object({ a: { type: "integer", format: "int64", default: 2, maximum: 9 } }),
    differences: [],
  },
  {
    title: "a schema that refers to itself is compared as deep as the cluster goes",
    compiled: { $ref: "Node", definitions: { Node: object({ next: { $ref: "Node" }, value: text }) } },
    found: object({ next: object({ next: open }) }),
    differences: ["it.next.value: string / no such field", "it.value: string / no such field"],
  },
];

suite("the difference of two schemas", (test) => {
  for (const { title, compiled, found, differences } of cases)
    test(title, () => {
      assert.equal(differencesOf(compiled, found), [...differences]);
    });

  test("an untyped kind has none", () => {
    assert.equal(linesOf({}, { schema: object({ spec: item }) }), []);
  });

  test("what every kind has is none, declared or not", () => {
    const compiled = object({ apiVersion: text, kind: text, metadata: object({ name: text }), spec: item });
    assert.equal(linesOf(compiled, { schema: object({ spec: item }) }), []);
  });

  test("a definition that keeps all fields lacks none, and its types count", () => {
    const compiled = object({ a: item, b: text });
    const found = object({ a: object({}), b: { type: "integer" } });
    assert.equal(differencesOf(compiled, found, { keepsUnknownFields: true }), ["it.b: string / integer"]);
  });
});

// Structural schemas: what a CustomResourceDefinition may have, as far as it is compared.
const { schema: structural } = fc.letrec<{ schema: Schema }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 4, depthIdentifier: "schema" },
    fc.constantFrom<Schema>(text, port, anything, { type: "integer" }, { type: "boolean", nullable: true }),
    fc
      .record({ items: tie("schema"), more: fc.constantFrom({}, { "x-kubernetes-list-type": "atomic" as const }) })
      .map(({ items, more }) => list(items, more)),
    tie("schema").map((value): Schema => ({ type: "object", additionalProperties: value })),
    fc
      .record({
        properties: fc.dictionary(fc.constantFrom("a", "b", "some-name", "x.y"), tie("schema"), { minKeys: 1 }),
        more: fc.constantFrom<Schema>({}, { nullable: true }, { "x-kubernetes-preserve-unknown-fields": true }),
      })
      .map(({ properties, more }) => object(properties, more)),
  ),
}));

const structuralRoot = fc
  .record({ spec: structural, status: structural })
  .map(({ spec, status }): Schema => object({ spec, status }));

interface Removal {
  readonly path: string;
  /** Whether the object keeps fields that it does not declare. */
  readonly isKept: boolean;
  readonly rest: Schema;
}

/** Returns the schema without a property, for every property that it has at any depth. */
function removalsOf(schema: Schema, path = ""): Removal[] {
  const { properties = {}, items, additionalProperties } = schema;
  const at = (name: string) => (/\./.test(name) ? `${path}["${name}"]` : path === "" ? name : `${path}.${name}`);
  const below = (child: Schema, place: string, rebuild: (rest: Schema) => Schema) =>
    removalsOf(child, place).map((removal) => ({ ...removal, rest: rebuild(removal.rest) }));
  const own = Object.entries(properties).flatMap(([name, child]) => {
    const { [name]: _, ...others } = properties;
    const isKept = schema["x-kubernetes-preserve-unknown-fields"] === true;
    const removed = { path: at(name), isKept, rest: { ...schema, properties: others } };
    return [removed, ...below(child, at(name), (rest) => ({ ...schema, properties: { ...properties, [name]: rest } }))];
  });
  const inItems = items === undefined ? [] : below(items, `${path}[]`, (rest) => ({ ...schema, items: rest }));
  if (typeof additionalProperties !== "object") return [...own, ...inItems];
  return below(additionalProperties, `${path}.*`, (rest) => ({ ...schema, additionalProperties: rest }));
}

suite("the difference of structural schemas", (test) => {
  test("is nothing for what the generator makes of a schema, and this schema", () => {
    const facts = { group: "example.com", version: "v1", kind: "It", plural: "its", scope: "Namespaced" } as const;
    const names = { singular: "it", listKind: "ItList", selectableFields: [] };
    const served = { isStorage: true, isServed: true, isCustom: true, hasStatusSubresource: true };
    fc.assert(
      fc.property(structuralRoot, (schema) => {
        const model = { ...facts, ...names, ...served, schema: { ...schema }, definitions: new Map() };
        assert.equal(linesOf(buildRuntimeSchema(model), { schema }), []);
        assert.equal(linesOf(schema, { schema }), []);
      }),
      { numRuns: runs(300) },
    );
  });

  test("is exactly the one property that is removed, unless the server keeps it undeclared", () => {
    fc.assert(
      fc.property(structuralRoot, (schema) => {
        for (const { path, isKept, rest } of removalsOf(schema)) {
          const paths = schemaDifferences(schema, { schema: rest }).map((each) => each.path);
          assert.equal(paths, isKept ? [] : [path]);
          assert.equal(linesOf(rest, { schema }), []);
        }
      }),
      { numRuns: runs(300) },
    );
  });
});
