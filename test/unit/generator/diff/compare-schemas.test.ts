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
  ["an optional field", object({}), field(text), ["compatible", "breaking"], "a"],
  ["a required field", object({}), object({ a: text }, ["a"]), ["breaking", "breaking"], "a"],
  [
    "a required field with a default",
    object({}),
    object({ a: { ...text, default: "b" } }, ["a"]),
    ["compatible", "breaking"],
    "a",
  ],
  ["being required", field(text), object({ a: text }, ["a"]), ["breaking", "breaking"], "a"],
  ["another type", field(text), field({ type: "boolean" }), ["breaking", "breaking"], "a"],
  ["integer to number", field({ type: "integer" }), field({ type: "number" }), ["breaking", "breaking"], "a"],
  [
    "integer to int-or-string",
    field({ type: "integer" }),
    field({ "x-kubernetes-int-or-string": true }),
    ["breaking", "breaking"],
    "a",
  ],
  ["an enum", field(text), field({ ...text, enum: ["b"] }), ["breaking", "compatible"], "a"],
  [
    "a value of an enum",
    field({ ...text, enum: ["b"] }),
    field({ ...text, enum: ["b", "c"] }),
    ["compatible", "breaking"],
    "a",
  ],
  ["a pattern", field(text), field({ ...text, pattern: "^b" }), ["breaking", "compatible"], "a"],
  [
    "another pattern",
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
    "a lower maximum",
    field({ ...text, maxLength: 5 }),
    field({ ...text, maxLength: 4 }),
    ["breaking", "compatible"],
    "a",
  ],
  ["a new limit", field(text), field({ ...text, maxLength: 4 }), ["breaking", "compatible"], "a"],
  ["a default", field(text), field({ ...text, default: "b" }), ["compatible", "breaking"], "a"],
  [
    "another default",
    field({ ...text, default: "c" }),
    field({ ...text, default: "b" }),
    ["breaking", "breaking"],
    "a",
  ],
  ["null", field(text), field({ ...text, nullable: true }), ["breaking", "breaking"], "a"],
  [
    "a field of an item",
    field({ type: "array", items: object({}) }),
    field({ type: "array", items: field(text) }),
    ["compatible", "breaking"],
    "a[].a",
  ],
  [
    "a field of a value",
    field({ type: "object", additionalProperties: object({}) }),
    field({ type: "object", additionalProperties: field(text) }),
    ["compatible", "breaking"],
    "a.*.a",
  ],
  [
    "a validation rule",
    field(text),
    field({ ...text, "x-kubernetes-validations": [{ rule: "self != ''" }] }),
    ["breaking", "compatible"],
    "a",
  ],
  [
    "the merge of a list",
    field({ type: "array", items: text }),
    field({ type: "array", items: text, "x-kubernetes-list-type": "set" }),
    ["breaking", "breaking"],
    "a",
  ],
];

suite("the difference of two schemas", (test) => {
  for (const [title, before, after, effects, path] of CASES)
    test(`of ${title} is ${effects[0]}, and ${effects[1]} the other way round`, () => {
      const [there, back] = [changesOf(before, after), changesOf(after, before)];
      assert.equal(
        [there, back].map((changes) => changes.map((change) => [change.effect, change.path])),
        [[[effects[0], path]], [[effects[1], path]]],
      );
    });

  test("does not name a field that a later one only describes", () => {
    assert.equal(changesOf(field({ ...text, description: "b" }), field({ ...text, description: "c" })), []);
  });
});
