import fc from "../../../../support/fast-check.js";
import { buildRuntimeSchema } from "#generator/emit/resource/runtime-schema.js";
import type { Schema } from "#runtime/base/kubernetes-object.js";
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
    title: "reports a missing field",
    compiled: object({ a: text, b: object({ c: text }) }),
    found: object({ b: object({}) }),
    differences: ["it.a: string / no such field", "it.b.c: string / no such field"],
  },
  {
    title: "reports a missing object without its fields",
    compiled: object({ a: item }),
    found: object({}),
    differences: ["it.a: object / no such field"],
  },
  {
    title: "uses [] for the items of a list in a path",
    compiled: object({ containers: list(item) }),
    found: object({ containers: list(object({ name: text })) }),
    differences: ["it.containers[].image: string / no such field"],
  },
  {
    title: "uses .* for the values of a map in a path",
    compiled: { type: "object", additionalProperties: list(text) },
    found: { type: "object", additionalProperties: list({ type: "integer" }) },
    differences: ["it.*[]: string / integer"],
  },
  {
    title: "quotes a name with special characters in a path",
    compiled: object({ "example.com/a": text }),
    found: object({}),
    differences: ['it["example.com/a"]: string / no such field'],
  },
  { title: "ignores a field that only the cluster has", compiled: object({}), found: item, differences: [] },
  {
    title: "ignores an undeclared field if unknown fields are preserved",
    compiled: item,
    found: open,
    differences: [],
  },
  {
    title: "reports a missing field below a declared one, also if unknown fields are preserved above",
    compiled: object({ a: item }),
    found: { ...open, properties: { a: object({ name: text }) } },
    differences: ["it.a.image: string / no such field"],
  },
  { title: "ignores a field that is a valid key of a map", compiled: item, found: labels, differences: [] },
  {
    title: "reports a field that is a key of a map of another type",
    compiled: item,
    found: { type: "object", additionalProperties: { type: "integer" } },
    differences: ["it.name: string / integer", "it.image: string / integer"],
  },
  {
    title: "reports a map if the cluster has declared fields instead",
    compiled: labels,
    found: object({ a: text }),
    differences: ["it.*: string / no such field"],
  },
  {
    title: "reports unknown fields that the cluster drops",
    compiled: open,
    found: object({ a: text }),
    differences: ["it: unknown fields kept / unknown fields dropped"],
  },
  {
    title: "reports a scalar of another type",
    compiled: text,
    found: port,
    differences: ["it: string / int-or-string"],
  },
  {
    title: "reports an int-or-string that is an integer in the cluster",
    compiled: port,
    found: { type: "integer" },
    differences: ["it: int-or-string / integer"],
  },
  {
    title: "treats both spellings of int-or-string as equal",
    compiled: port,
    found: { type: "string", format: "int-or-string" },
    differences: [],
  },
  {
    title: "reports only the type if it differs, and no fields below it",
    compiled: item,
    found: list(text),
    differences: ["it: object / array"],
  },
  {
    title: "ignores a typed field that may have any value in the cluster",
    compiled: text,
    found: anything,
    differences: [],
  },
  {
    title: "reports a field of any value that is typed in the cluster",
    compiled: anything,
    found: item,
    differences: ["it: any value / object"],
  },
  {
    title: "reports a nullable field that is not nullable in the cluster",
    compiled: { type: "string", nullable: true },
    found: text,
    differences: ["it: nullable / not nullable"],
  },
  {
    title: "ignores a field that is nullable only in the cluster",
    compiled: text,
    found: { type: "string", nullable: true },
    differences: [],
  },
  {
    title: "reports a list with another list type",
    compiled: list(item, mapBy("name")),
    found: list(item),
    differences: ["it: list type map by name / list type atomic"],
  },
  {
    title: "reports a list without a list type that is a set in the cluster",
    compiled: list(text),
    found: list(text, { "x-kubernetes-list-type": "set" }),
    differences: ["it: list type atomic / list type set"],
  },
  {
    title: "treats list type atomic as the default",
    compiled: list(text),
    found: list(text, { "x-kubernetes-list-type": "atomic" }),
    differences: [],
  },
  {
    title: "reports a list with other map keys",
    compiled: list(item, mapBy("name")),
    found: list(item, mapBy("name", "image")),
    differences: ["it: list type map by name / list type map by image and name"],
  },
  {
    title: "ignores the order of map keys of a list",
    compiled: list(item, mapBy("image", "name")),
    found: list(item, mapBy("name", "image")),
    differences: [],
  },
  {
    title: "reports a map with another map type",
    compiled: object({ a: text }, { "x-kubernetes-map-type": "atomic" }),
    found: object({ a: text }, { "x-kubernetes-map-type": "granular" }),
    differences: ["it: map type atomic / map type granular"],
  },
  {
    title: "ignores undeclared apiVersion, kind and metadata of an embedded resource",
    compiled: { ...open, properties: { apiVersion: text, kind: text, metadata: object({ name: text }), spec: item } },
    found: { ...open, "x-kubernetes-embedded-resource": true, properties: { spec: item } },
    differences: [],
  },
  {
    title: "ignores formats, defaults, enums, limits and required fields",
    compiled: object(
      { a: { type: "integer", format: "int32", default: 1, minimum: 1, enum: [1, 2] } },
      { required: ["a"] },
    ),
    found: object({ a: { type: "integer", format: "int64", default: 2, maximum: 9 } }),
    differences: [],
  },
  {
    title: "compares a recursive schema as deep as the schema of the cluster",
    compiled: { $ref: "Node", definitions: { Node: object({ next: { $ref: "Node" }, value: text }) } },
    found: object({ next: object({ next: open }) }),
    differences: ["it.next.value: string / no such field", "it.value: string / no such field"],
  },
];

suite("schemaDifferences", (test) => {
  for (const { title, compiled, found, differences } of cases)
    test(title, () => {
      assert.equal(differencesOf(compiled, found), [...differences]);
    });

  test("returns nothing for an untyped kind", () => {
    assert.equal(linesOf({}, { schema: object({ spec: item }) }), []);
  });

  test("ignores apiVersion, kind and metadata, whether they are declared or not", () => {
    const compiled = object({ apiVersion: text, kind: text, metadata: object({ name: text }), spec: item });
    assert.equal(linesOf(compiled, { schema: object({ spec: item }) }), []);
  });

  test("reports no missing fields if the definition preserves unknown fields, but other types", () => {
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

suite("schemaDifferences of structural schemas", (test) => {
  test("returns nothing for a schema and its generated runtime schema", () => {
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

  test("returns exactly the one removed property, unless unknown fields are preserved", () => {
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
