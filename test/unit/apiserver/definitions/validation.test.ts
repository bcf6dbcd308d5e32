// Values of every kind against one schema, as kube-apiserver 1.36 stored or refused them.
import { readFileSync } from "node:fs";
import { applyDefaults, dropNulls, pruneUnknownFields } from "#schema/definitions/schema/structural.js";
import { validateCustomResource, validateStatus } from "#apiserver/definitions/schema/validate.js";
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

suite("custom resources by their schema, recorded from kube-apiserver", (test) => {
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

suite("validation of updates", (test) => {
  const object = (spec: JsonObject): JsonObject => ({ apiVersion: "v1", kind: "Thing", metadata: {}, spec });
  const errorsOf = (spec: JsonObject, old: JsonObject): string[] =>
    validateCustomResource(schema, object(spec), object(old)).map((error) => error.field);

  test("an error in a field that stays as it was is forgiven", () => {
    assert.equal(errorsOf({ req: "r", min: -1, str: "new" }, { req: "r", min: -1 }), []);
    assert.equal(errorsOf({ req: "r", min: -2 }, { req: "r", min: -1 }), ["spec.min"]);
  });

  test("an item of a keyed list is compared with the old item of its key", () => {
    const bad = { k: "a", p: 1, v: 9 };
    assert.equal(errorsOf({ req: "r", map: [{ k: "b", p: 1 }, bad] }, { req: "r", map: [bad] }), []);
  });

  test("an item of a list without keys is validated as a new one", () => {
    assert.equal(errorsOf({ req: "r", objs: [{}, { name: "a" }] }, { req: "r", objs: [{}] }), ["spec.objs[0].name"]);
  });

  test("duplicates that were there may stay", () => {
    assert.equal(errorsOf({ req: "r", set: ["a", "a", "b"] }, { req: "r", set: ["a", "a"] }), []);
    assert.equal(errorsOf({ req: "r", set: ["a", "a"] }, { req: "r", set: ["a"] }), ["spec.set[1]"]);
  });

  test("a write to status names paths below status in its texts", () => {
    const errors = validateStatus(schema, { ...object({}), status: { ready: true, replicas: "x" } });
    assert.equal(errors.map(causeOf), [
      'FieldValueTypeInvalid|status.replicas|Invalid value: "string": replicas in body must be of type integer: "string"',
    ]);
  });
});
