// What is found by comparing an object with another one is what scanning it finds.
import fc from "fast-check";
import { HeadModel, type ObjectOutline } from "#runtime/decode/head-model.js";
import { namesBehind, scanHead } from "#runtime/decode/object-head.js";
import { runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";

const MANAGER = "web-page";

const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 8 }),
  fc.constantFrom("", "1", "12", '"', "\\", '\\"', "}]}", '"managedFields":[', "é", "ключ", "😀", "a".repeat(40)),
);

interface Said {
  readonly name: string;
  readonly namespace: string;
  readonly version: string;
  readonly label: string;
  readonly time: string;
  readonly field: string;
  readonly spec: string;
}
const said: fc.Arbitrary<Said> = fc.record({
  name: fc.stringMatching(/^[a-z]{1,12}$/),
  namespace: fc.stringMatching(/^[a-z]{1,3}$/),
  version: fc.nat(2000).map(String),
  label: text,
  time: text,
  field: text,
  spec: text,
});
const made = fc.record({
  isCustom: fc.boolean(),
  space: fc.constantFrom(0, 1),
  manager: fc.constantFrom(MANAGER, "other"),
  operation: fc.constantFrom("Apply", "Update"),
  subresource: fc.constantFrom(undefined, "status", "scale"),
  fields: fc.constantFrom("field", "none"),
  label: fc.constantFrom("a", "ключ"),
  behind: fc.constantFrom("status", "data"),
  replicas: fc.constantFrom(1, 10),
  isNamespaced: fc.boolean(),
  isManaged: fc.boolean(),
});
type Made = typeof made extends fc.Arbitrary<infer Value> ? Value : never;

/** Writes an object as it is made, with what its values say. */
function write(values: Said, form: Made): string {
  const { manager, operation, subresource } = form;
  const named = { name: values.name, ...(form.isNamespaced ? { namespace: values.namespace } : {}) };
  const fieldsV1 =
    form.fields === "none" ? {} : { fieldsV1: { "f:a": { [`k:{"x":"${values.field}"}`]: values.field } } };
  const entry = { manager, operation, apiVersion: "v1", time: values.time, ...fieldsV1, subresource };
  const managed = form.isManaged ? { managedFields: [{ manager: "first", fieldsV1: { "f:b": {} } }, entry] } : {};
  const labels = { [form.label]: values.label };
  const versioned = { resourceVersion: values.version };
  const metadata = form.isCustom
    ? { labels, ...managed, ...named, ...versioned }
    : { ...named, ...versioned, labels, ...managed };
  const spec = { [values.spec]: [values.spec, form.replicas], text: values.spec };
  return JSON.stringify({ kind: "X", metadata, spec, [form.behind]: {} }, undefined, form.space);
}

const BEFORE = '{"object":';

function placed(json: string) {
  const bytes = Buffer.from(`${BEFORE}${json}}`);
  return { bytes, range: { start: BEFORE.length, end: bytes.length - 1 } };
}

function scan(json: string): ObjectOutline {
  const { bytes, range } = placed(json);
  const head = scanHead(bytes, range.start, { fieldManagers: [MANAGER] })!;
  return { head, names: namesBehind(bytes, head.end) };
}

function createModel(json: string): HeadModel {
  const { bytes, range } = placed(json);
  const model = new HeadModel();
  model.take(bytes, range, scan(json));
  return model;
}

function outlineOf(model: HeadModel, json: string): ObjectOutline | undefined {
  const { bytes, range } = placed(json);
  return model.outlineOf(bytes, range);
}

suite("head model", (test) => {
  test("an object of which only the values say something else is found", () => {
    fc.assert(
      fc.property(made, said, said, (form, first, second) => {
        assert.equal(outlineOf(createModel(write(first, form)), write(second, form)), scan(write(second, form)));
      }),
      { numRuns: runs(1000) },
    );
  });

  test("whatever is found is what a scan finds", () => {
    const forms = fc.tuple(
      made,
      fc.subarray(["manager", "operation", "subresource", "fields", "label", "behind", "replicas"] as const),
    );
    fc.assert(
      fc.property(forms, made, said, said, ([form, changed], other, first, second) => {
        const changes = Object.fromEntries(changed.map((name) => [name, other[name]]));
        const json = write(second, { ...form, ...changes });
        const found = outlineOf(createModel(write(first, form)), json);
        if (found !== undefined) assert.equal(found, scan(json));
      }),
      { numRuns: runs(2000) },
    );
  });

  test("objects that are alike are found soon after many that are not", () => {
    const model = createModel('{"metadata":{"name":"a"},"a":0}');
    const isFound = (json: string) => {
      if (outlineOf(model, json) !== undefined) return true;
      const { bytes, range } = placed(json);
      model.take(bytes, range, scan(json));
      return false;
    };
    for (let count = 1; count <= 1000; count++) assert.is(isFound(`{"metadata":{"name":"a"},"a":${count}}`), false);
    let misses = 0;
    while (!isFound(`{"metadata":{"name":"b${misses}"},"b":1}`)) misses++;
    assert.ok(misses <= 65, `${misses} were not found`);
    assert.ok(isFound('{"metadata":{"name":"c"},"b":1}'));
  });

  test("an object that is too long is no model", () => {
    const model = createModel('{"metadata":{"name":"a"},"data":"1"}');
    const long = `{"metadata":{"name":"b"},"data":${JSON.stringify("x".repeat(70_000))}}`;
    assert.is(outlineOf(model, long), undefined);
    const { bytes, range } = placed(long);
    model.take(bytes, range, scan(long));
    assert.is(outlineOf(model, long), undefined);
    assert.ok(outlineOf(model, '{"metadata":{"name":"c"},"data":"2"}'));
  });
});
