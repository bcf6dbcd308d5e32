// The promises of the matcher, checked against server-side apply itself.
import fc from "../../../support/fast-check.js";
import { isDeepStrictEqual } from "node:util";
import { applyDefaults } from "#schema/definitions/structural-schema.js";
import type { JsonObject, JsonValue } from "#apiserver/json.js";
import { FieldSet } from "#apiserver/ssa/field-set.js";
import { applyManaged, updateManaged } from "#apiserver/ssa/field-manager.js";
import { mergeTypeOfCustomResource } from "#apiserver/ssa/merge-type.js";
import { decodeResource } from "#runtime/client/object-decoder.js";
import { type Difference, findDifferences, hasForeignChange, isPlain, plainOf } from "#runtime/apply/match.js";
import { mergeApplied } from "#runtime/apply/merge.js";
import { extractOwned, parseOwnedFields, schemaOf } from "#runtime/apply/owned-fields.js";
import { customDefinition, type JsonResource } from "../../../support/kinds/kind-definitions.js";
import { FIELD_MANAGER, widgetCrd } from "../../../support/kinds/live-objects.js";
import { runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";

const definition = customDefinition(widgetCrd);
const schema = widgetCrd.spec.versions[0]!.schema.openAPIV3Schema as JsonObject;
const mergeType = mergeTypeOfCustomResource(schema);
const common = { apiVersion: "example.com/v1", subresource: "", mergeType, resetFields: FieldSet.of(".status") };

interface Write {
  readonly kind: "apply" | "update";
  readonly manager: string;
  readonly spec: JsonObject;
  readonly labels: JsonObject;
}

const text = fc.constantFrom("a", "b", "c", "");
const letters = fc.subarray(["a", "b", "c", "d"]);
const shuffled = letters.chain((chosen) => fc.shuffledSubarray(chosen, { minLength: chosen.length }));
const small = fc.integer({ min: 0, max: 2 });
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const entries = (value: fc.Arbitrary<JsonValue>) =>
  fc.dictionary(fc.constantFrom("a", "b", "x.y/z"), value, { maxKeys: 3 });

const free: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    small,
    text,
    fc.boolean(),
    fc.array(tie("value"), { maxLength: 2 }),
    entries(tie("value")),
  ),
})).value;

const specs: fc.Arbitrary<JsonObject> = fc
  .record({
    text: optional(text),
    zero: optional(small),
    no: optional(fc.boolean()),
    choice: optional(fc.oneof(small, text)),
    atomicList: optional(shuffled),
    untypedList: optional(fc.array(fc.record({ x: small, y: optional(fc.constantFrom(7, 8)) }), { maxLength: 2 })),
    setList: optional(shuffled),
    mapList: optional(
      shuffled.chain((names) =>
        fc.tuple(...names.map((name) => fc.record({ name: fc.constant(name), size: optional(small) }))),
      ),
    ),
    twoKeys: optional(
      fc.uniqueArray(
        fc.record({ port: small, protocol: fc.constantFrom(undefined, "TCP", "UDP"), note: optional(text) }),
        {
          maxLength: 3,
          selector: ({ port, protocol = "TCP" }) => `${port}/${protocol}`,
        },
      ),
    ),
    atomicMap: optional(entries(text)),
    granularMap: optional(entries(text)),
    mapOfObjects: optional(entries(fc.record({ x: optional(small) }) as fc.Arbitrary<JsonObject>)),
    atomicObject: optional(fc.record({ a: optional(small), b: optional(small), c: optional(fc.constantFrom(5, 6)) })),
    free: optional(entries(free)),
    withDefaults: optional(fc.record({ level: optional(fc.constantFrom(3, 4)), mode: optional(text) })),
  })
  .map((spec) => JSON.parse(JSON.stringify(spec)) as JsonObject);

const writes: fc.Arbitrary<Write> = fc.record({
  kind: fc.constantFrom("apply", "apply", "update"),
  manager: fc.constantFrom(FIELD_MANAGER, FIELD_MANAGER, "other"),
  spec: specs,
  labels: entries(text),
});

function objectOf({ spec, labels }: Pick<Write, "spec" | "labels">): JsonObject {
  const metadata = { name: "one", namespace: "default", labels };
  return structuredClone({ apiVersion: "example.com/v1", kind: "Widget", metadata, spec });
}

function withDefaults(object: JsonObject): JsonObject {
  applyDefaults(schema, object);
  return object;
}

function applied(live: JsonObject | undefined, { manager, ...content }: Omit<Write, "kind">): JsonObject {
  const write = { ...common, live, manager, config: objectOf(content), force: true, finish: withDefaults };
  return applyManaged({ ...write, now: "2026-01-01T00:00:00Z" });
}

/** Does one write; an update replaces what it states and keeps the rest. */
function written(live: JsonObject | undefined, { kind, ...write }: Write): JsonObject {
  if (kind === "apply" || live === undefined) return applied(live, write);
  const { metadata, spec } = live as { metadata: JsonObject; spec?: JsonObject };
  const object = withDefaults({
    ...structuredClone(live),
    metadata,
    spec: { ...spec, ...structuredClone(write.spec) },
  });
  return updateManaged({ ...common, live, manager: "editor", object, now: "2026-01-01T00:00:00Z" });
}

// An empty struct that had owned children becomes null, which the server then refuses.
function isRefused(object: JsonObject): boolean {
  return JSON.stringify(object["spec"] ?? {}).includes("null") || object["spec"] === null;
}

function decode(live: JsonObject) {
  return decodeResource<JsonResource>(Buffer.from(JSON.stringify(live)), { fieldManagers: [FIELD_MANAGER] });
}

/** Returns the first place where an object is not as desired. */
function differenceOf(desired: JsonObject, live: JsonObject): Difference | undefined {
  const { object, owned: [owned] = [] } = decode(live);
  if (owned === undefined) return { path: "", reason: "is owned by nobody" };
  const options = { owned: parseOwnedFields(owned.fieldsV1), schema: schemaOf(definition) };
  return findDifferences(structuredClone(desired), object, options)[0];
}

function withoutTimes(object: JsonObject): unknown {
  const { managedFields = [], ...metadata } = object["metadata"] as JsonObject;
  const fields = (managedFields as JsonObject[]).map(({ time: _time, ...entry }) => entry);
  return { ...object, metadata: { ...metadata, managedFields: fields } };
}

suite("match compared with server-side apply", (test) => {
  test("matches an object that was just applied, after any previous writes", () => {
    fc.assert(
      fc.property(fc.array(writes, { maxLength: 3 }), writes, (before, last) => {
        const own = { ...last, kind: "apply" as const, manager: FIELD_MANAGER };
        let live: JsonObject | undefined;
        for (const write of [...before, own]) {
          live = written(live, write);
          fc.pre(!isRefused(live));
        }
        // A list that loses its last item vanishes; the same apply then puts it back, empty.
        const hasEmptyList = /"(setList|mapList|twoKeys)":\[\]/.test(JSON.stringify(own.spec));
        if (hasEmptyList) live = written(live, own);
        assert.is(differenceOf(objectOf(own), live!), undefined);
      }),
      { numRuns: runs(800) },
    );
  });

  test("matches only if an apply would not change the object", () => {
    let matches = 0;
    const changes = fc.array(writes, { maxLength: 2 });
    const keys = fc.constantFrom(
      ...Object.keys((schema as { properties: { spec: { properties: object } } }).properties.spec.properties),
    );
    fc.assert(
      fc.property(writes, changes, specs, fc.option(keys), (first, others, other, key) => {
        const own = { ...first, kind: "apply" as const, manager: FIELD_MANAGER };
        let live = written(undefined, own);
        for (const write of others) live = written(live, { ...write, manager: "other" });
        fc.pre(!isRefused(live));
        // One field of what was applied is changed, added or removed.
        const spec = { ...own.spec };
        if (key !== null && other[key] !== undefined) spec[key] = other[key];
        else if (key !== null) delete spec[key];
        const desired = { ...own, spec };
        if (differenceOf(objectOf(desired), live) !== undefined) return;
        matches++;
        const after = applied(live, desired);
        assert.ok(isDeepStrictEqual(withoutTimes(after), withoutTimes(live)), JSON.stringify({ live, after }));
      }),
      { numRuns: runs(1500) },
    );
    assert.ok(matches > runs(100), `only ${matches} runs compared anything`);
  });

  test("extracts a configuration that changes nothing when it is applied again", () => {
    fc.assert(
      fc.property(
        fc.array(writes, { maxLength: 3 }),
        writes,
        fc.array(writes, { maxLength: 2 }),
        (before, last, others) => {
          const own = { ...last, kind: "apply" as const, manager: FIELD_MANAGER };
          const after = others.map((write) => ({ ...write, manager: "other" }));
          let live: JsonObject | undefined;
          for (const write of [...before, own, ...after]) {
            live = written(live, write);
            fc.pre(!isRefused(live));
          }
          const { object, owned: [owned] = [] } = decode(live!);
          fc.pre(owned !== undefined);
          const extracted = extractOwned(object as never, parseOwnedFields(owned!.fieldsV1), schemaOf(definition));
          const { metadata = {}, spec } = extracted as { metadata?: JsonObject; spec?: JsonObject };
          const config = structuredClone({
            ...{ apiVersion: "example.com/v1", kind: "Widget" },
            metadata: { name: "one", namespace: "default", ...metadata },
            ...(spec !== undefined && { spec }),
          });
          const write = { ...common, live, manager: FIELD_MANAGER, config, force: true, finish: withDefaults };
          const again = applyManaged({ ...write, now: "2026-01-01T00:00:00Z" });
          assert.equal(withoutTimes(again), withoutTimes(live!));
        },
      ),
      { numRuns: runs(800) },
    );
  });

  test("reports a foreign change within an own write, but not an own write alone", () => {
    // Without defaults, which the server fills in and nobody owns.
    const owns = specs.map(({ text: own = "a", zero = 0, granularMap = {}, setList = [] }) => ({
      text: own,
      zero,
      granularMap,
      setList,
    }));
    fc.assert(
      fc.property(owns, owns, entries(text), (first, next, labels) => {
        const own = { manager: FIELD_MANAGER, labels };
        const before = applied(undefined, { ...own, spec: first as JsonObject });
        const foreign = { manager: "other", labels: {}, spec: { granularMap: { theirs: "x" } } };
        const met = applied(before, foreign);
        const owned = (...objects: JsonObject[]) =>
          objects.flatMap((object) => parseOwnedFields(decode(object).owned?.[0]?.fieldsV1 ?? "{}"));
        const isNoticed = (after: JsonObject) =>
          hasForeignChange(decode(before).object, decode(after).object, {
            owned: owned(before, after),
            schema: schemaOf(definition),
          });
        assert.ok(isNoticed(applied(met, { ...own, spec: next as JsonObject })));
        assert.not(isNoticed(applied(before, { ...own, spec: next as JsonObject })));
      }),
      { numRuns: runs(500) },
    );
  });

  test("returns from mergeApplied the object that an apply stores, before defaults", () => {
    const nodesOf = (live: JsonObject, isOwn: boolean) =>
      ((live["metadata"] as JsonObject)["managedFields"] as JsonObject[])
        .filter(({ manager, operation }) => (manager === FIELD_MANAGER && operation === "Apply") === isOwn)
        .map(({ fieldsV1 }) => parseOwnedFields(JSON.stringify(fieldsV1)));
    // The API server leaves out some containers that become empty, and keeps others.
    const withoutEmpty = (value: JsonValue | undefined): JsonValue | undefined => {
      if (Array.isArray(value)) {
        const items = value.flatMap((item) => withoutEmpty(item) ?? []);
        return items.length === 0 ? undefined : items;
      }
      if (typeof value !== "object" || value === null) return value ?? undefined;
      const members = Object.entries(value).flatMap(([name, member]) => {
        const kept = withoutEmpty(member);
        return kept === undefined ? [] : [[name, kept]];
      });
      return members.length === 0 ? undefined : (Object.fromEntries(members) as JsonObject);
    };
    fc.assert(
      fc.property(fc.array(writes, { minLength: 1, maxLength: 4 }), writes, (before, last) => {
        let live: JsonObject | undefined;
        for (const write of before) {
          live = written(live, write);
          fc.pre(!isRefused(live));
        }
        const own = { ...last, manager: FIELD_MANAGER };
        const after = applied(live, own);
        fc.pre(!isRefused(after));
        const [mine] = nodesOf(live!, true);
        const place = { schema: schemaOf(definition), mine, others: nodesOf(live!, false) };
        const { metadata, ...merged } = mergeApplied(live!, objectOf(own), place);
        const [expected, found] = [after["spec"], withDefaults({ ...merged })["spec"]].map(withoutEmpty);
        assert.equal(found, expected, JSON.stringify({ live, desired: objectOf(own) }));
        assert.equal(
          withoutEmpty((metadata as JsonObject)["labels"]),
          withoutEmpty((after["metadata"] as JsonObject)["labels"]),
        );
      }),
      { numRuns: runs(800) },
    );
  });

  test("treats a value as plain only if it equals its JSON, and every JSON value as plain", () => {
    fc.assert(
      fc.property(fc.anything({ withDate: true, withBigInt: false, withSparseArray: true }), (value) => {
        if (isPlain(value)) assert.equal(plainOf(value), value as JsonValue);
      }),
      { numRuns: runs(300) },
    );
    fc.assert(
      fc.property(fc.jsonValue(), (value) => assert.ok(isPlain(value))),
      { numRuns: runs(100) },
    );
  });

  test("treats values that JSON drops or converts as not plain", () => {
    const odd: unknown[] = [
      undefined,
      NaN,
      Infinity,
      1n,
      Symbol("a"),
      () => 1,
      new Date(0),
      new String("a"),
      new Map(),
    ];
    const sparse = [1, 2, 3];
    delete sparse[1];
    odd.push(
      sparse,
      { toJSON: () => 1 },
      new (class {
        readonly a = 1;
      })(),
      Object.create(null),
    );
    assert.equal(
      odd.filter((value) => isPlain(value) || isPlain({ a: [value] })),
      [],
    );
  });
});
