import type { Change } from "#generator/diff/change.js";
import { collectInto } from "#generator/diff/change.js";
import { compareSchemas } from "#generator/diff/compare-schemas.js";
import type { RawSchema } from "#generator/model/project-model.js";
import { assert, suite } from "../../../support/suite.js";

function changesOf(before: RawSchema, after: RawSchema): Change[] {
  const changes: Change[] = [];
  compareSchemas(before, after, collectInto(changes, "v1"));
  return changes;
}

const object = (properties: Record<string, RawSchema>, required: string[] = []): RawSchema => ({
  type: "object",
  properties,
  ...(required.length === 0 ? {} : { required }),
});
const field = (schema: RawSchema) => object({ a: schema });
const text = { type: "string" };

/** What differs, and the one change that comes of it; the other way round it has the other effect, unless both are breaking. */
const CASES: [
  title: string,
  before: RawSchema,
  after: RawSchema,
  effects: [there: string, back: string],
  path: string,
][] = [
  ["a new optional field", object({}), field(text), ["compatible", "breaking"], "a"],
  ["a new required field", object({}), object({ a: text }, ["a"]), ["breaking", "breaking"], "a"],
  [
    "a new required field with a default",
    object({}),
    object({ a: { ...text, default: "b" } }, ["a"]),
    ["compatible", "breaking"],
    "a",
  ],
  ["a field that becomes required", field(text), object({ a: text }, ["a"]), ["breaking", "breaking"], "a"],
  ["a changed type", field(text), field({ type: "boolean" }), ["breaking", "breaking"], "a"],
  ["integer to number", field({ type: "integer" }), field({ type: "number" }), ["breaking", "breaking"], "a"],
  [
    "integer to int-or-string",
    field({ type: "integer" }),
    field({ "x-kubernetes-int-or-string": true }),
    ["breaking", "breaking"],
    "a",
  ],
  ["a new enum", field(text), field({ ...text, enum: ["b"] }), ["breaking", "compatible"], "a"],
  [
    "a new enum value",
    field({ ...text, enum: ["b"] }),
    field({ ...text, enum: ["b", "c"] }),
    ["compatible", "breaking"],
    "a",
  ],
  ["a new pattern", field(text), field({ ...text, pattern: "^b" }), ["breaking", "compatible"], "a"],
  [
    "a changed pattern",
    field({ ...text, pattern: "^c" }),
    field({ ...text, pattern: "^b" }),
    ["breaking", "breaking"],
    "a",
  ],
  [
    "a higher minimum",
    field({ type: "integer", minimum: 1 }),
    field({ type: "integer", minimum: 2 }),
    ["breaking", "compatible"],
    "a",
  ],
  [
    "a lower maxLength",
    field({ ...text, maxLength: 5 }),
    field({ ...text, maxLength: 4 }),
    ["breaking", "compatible"],
    "a",
  ],
  ["a new maxLength", field(text), field({ ...text, maxLength: 4 }), ["breaking", "compatible"], "a"],
  ["a new default", field(text), field({ ...text, default: "b" }), ["compatible", "breaking"], "a"],
  [
    "a changed default",
    field({ ...text, default: "c" }),
    field({ ...text, default: "b" }),
    ["breaking", "breaking"],
    "a",
  ],
  ["a field that becomes nullable", field(text), field({ ...text, nullable: true }), ["breaking", "breaking"], "a"],
  [
    "a new field of list items",
    field({ type: "array", items: object({}) }),
    field({ type: "array", items: field(text) }),
    ["compatible", "breaking"],
    "a[].a",
  ],
  [
    "a new field of map values",
    field({ type: "object", additionalProperties: object({}) }),
    field({ type: "object", additionalProperties: field(text) }),
    ["compatible", "breaking"],
    "a.*.a",
  ],
  [
    "a new validation rule",
    field(text),
    field({ ...text, "x-kubernetes-validations": [{ rule: "self != ''" }] }),
    ["breaking", "compatible"],
    "a",
  ],
  [
    "a changed list type",
    field({ type: "array", items: text }),
    field({ type: "array", items: text, "x-kubernetes-list-type": "set" }),
    ["breaking", "breaking"],
    "a",
  ],
];

suite("schema diff", (test) => {
  for (const [title, before, after, effects, path] of CASES)
    test(`reports ${title} as ${effects[0]}, and as ${effects[1]} in reverse`, () => {
      const [there, back] = [changesOf(before, after), changesOf(after, before)];
      assert.equal(
        [there, back].map((changes) => changes.map((change) => [change.effect, change.path])),
        [[[effects[0], path]], [[effects[1], path]]],
      );
    });

  test("ignores a changed description", () => {
    assert.equal(changesOf(field({ ...text, description: "b" }), field({ ...text, description: "c" })), []);
  });
});
