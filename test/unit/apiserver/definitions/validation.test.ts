// Values of every kind against one schema, as kube-apiserver 1.36 stored or refused them.
import { readFileSync } from "node:fs";
import { applyDefaults, dropNulls, pruneUnknownFields } from "#schema/definitions/structural-schema.js";
import { validateCustomResource, validateStatus } from "#apiserver/registry/custom-rules.js";
import { clone, type JsonObject, type JsonValue } from "#apiserver/json.js";
import { fieldErrorPath, type FieldError } from "#apiserver/errors/field-error.js";
import { assert, suite } from "../../../support/suite.js";

interface Recorded {
  spec: JsonValue;
  stored?: JsonValue;
  dropped?: string[];
  causes?: string[];
}

const folder = new URL("../../../../../fixtures/custom-resources/", import.meta.url);
const schema = JSON.parse(readFileSync(new URL("schema.json", folder), "utf8")) as JsonObject;
const recorded = readFileSync(new URL("validation.jsonl", folder), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Recorded);

function causeOf(error: FieldError): string {
  return `${error.reason}|${fieldErrorPath(error)}|${error.message}`;
}

function admit(object: JsonObject): { dropped: string[]; object: JsonObject } {
  const admitted = clone(object);
  const dropped = pruneUnknownFields(schema, admitted);
  dropNulls(schema, admitted);
  applyDefaults(schema, admitted);
  return { dropped, object: admitted };
}

suite("custom resource validation, recorded from kube-apiserver", (test) => {
  for (const { spec, stored, dropped, causes } of recorded) {
    test(JSON.stringify(spec), () => {
      const admitted = admit({ apiVersion: "h.example.com/v1", kind: "Thing", metadata: { name: "t" }, spec });
      const errors = validateCustomResource(schema, admitted.object).map(causeOf).sort();
      assert.equal(errors, causes ?? []);
      if (causes !== undefined) return;
      assert.equal(admitted.object["spec"], stored);
      assert.equal(admitted.dropped, dropped);
    });
  }
});

suite("undeclared field, recorded from kube-apiserver", (test) => {
  const open = { "x-kubernetes-preserve-unknown-fields": true };
  const declared = { type: "object", properties: { a: { type: "object", properties: { b: { type: "string" } } } } };
  const object = { a: { b: "x", c: 1 }, d: { e: 1 } };
  const known = { a: { b: "x" }, d: { e: 1 } };
  for (const [title, items, given, stored, ...dropped] of [
    [
      "is kept in items of a list with x-kubernetes-preserve-unknown-fields",
      declared,
      [object],
      [known],
      "list[0].a.c",
    ],
    ["is kept in items without properties", { type: "object" }, [object], [object]],
    [
      "is kept in nested lists of a list with x-kubernetes-preserve-unknown-fields",
      { type: "array", items: declared },
      [[object]],
      [[known]],
      "list[0][0].a.c",
    ],
  ] as const)
    test(title, () => {
      const list = { type: "array", ...open, items } as unknown as JsonObject;
      const pruned = clone({ list: given } as unknown as JsonObject);
      const schemaOfList: JsonObject = { type: "object", properties: { list } };
      assert.equal(pruneUnknownFields(schemaOfList, pruned), dropped);
      assert.equal(pruned["list"], stored);
    });

  test("is rejected where additionalProperties is false, and pruned below it", () => {
    const closed: JsonObject = {
      type: "object",
      properties: { spec: { type: "object", additionalProperties: false } },
    };
    const refused: JsonObject = { spec: { a: 1, b: { c: 1 } } };
    assert.equal(pruneUnknownFields(closed, refused), ["spec.b.c"]);
    assert.equal(refused, { spec: { a: 1, b: {} } });
    assert.equal(validateCustomResource(closed, refused).map(causeOf), [
      'FieldValueInvalid|spec|Invalid value: "a": spec.a in body is a forbidden property',
      'FieldValueInvalid|spec|Invalid value: "b": spec.b in body is a forbidden property',
    ]);
  });
});

suite("custom resource update validation", (test) => {
  const object = (spec: JsonObject): JsonObject => ({ apiVersion: "v1", kind: "Thing", metadata: {}, spec });
  const errorsOf = (spec: JsonObject, old: JsonObject): string[] =>
    validateCustomResource(schema, object(spec), object(old)).map((error) => error.field);

  test("ignores errors of unchanged fields (ratcheting)", () => {
    assert.equal(errorsOf({ req: "r", min: -1, str: "new" }, { req: "r", min: -1 }), []);
    assert.equal(errorsOf({ req: "r", min: -2 }, { req: "r", min: -1 }), ["spec.min"]);
  });

  test("compares items of a map list with the old item of the same key", () => {
    const bad = { k: "a", p: 1, v: 9 };
    assert.equal(errorsOf({ req: "r", map: [{ k: "b", p: 1 }, bad] }, { req: "r", map: [bad] }), []);
  });

  test("validates changed items of an atomic list as new ones", () => {
    assert.equal(errorsOf({ req: "r", objs: [{}, { name: "a" }] }, { req: "r", objs: [{}] }), ["spec.objs[0].name"]);
  });

  test("allows duplicates in a set that existed before", () => {
    assert.equal(errorsOf({ req: "r", set: ["a", "a", "b"] }, { req: "r", set: ["a", "a"] }), []);
    assert.equal(errorsOf({ req: "r", set: ["a", "a"] }, { req: "r", set: ["a"] }), ["spec.set[1]"]);
  });

  test("uses names relative to status in the messages of a status write", () => {
    const errors = validateStatus(schema, { ...object({}), status: { ready: true, replicas: "x" } });
    assert.equal(errors.map(causeOf), [
      'FieldValueTypeInvalid|status.replicas|Invalid value: "string": replicas in body must be of type integer: "string"',
    ]);
  });
});
