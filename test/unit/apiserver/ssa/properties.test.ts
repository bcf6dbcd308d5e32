// Laws of server-side apply over random objects and writes.
import fc from "../../../support/fast-check.js";
import { deepEqual, type JsonObject, type JsonValue } from "#apiserver/json.js";
import { checkValue, fieldSetOf } from "#apiserver/ssa/typed-value.js";
import { FieldSet, decodeFieldsV1, encodeFieldsV1 } from "#apiserver/ssa/field-set.js";
import { mergeValues, removeFields } from "#apiserver/ssa/merge.js";
import { applyOwned, updateOwned, type Owners } from "#apiserver/ssa/updater.js";
import { assert, suite } from "../../../support/suite.js";
import { readFixture, typeOfSchema } from "./ssa-case.js";

const type = typeOfSchema(readFixture("schema.yaml") as JsonObject);
const text = fc.constantFrom("1", "2");
const texts = fc
  .subarray(["a", "b", "c", "d"])
  .chain((items) => fc.shuffledSubarray(items, { minLength: items.length }));
const textMap = fc.dictionary(fc.constantFrom("k1", "k2", "k/3"), text, { noNullPrototype: true });
const port = fc.record(
  { port: fc.constantFrom(1, 2), proto: fc.constantFrom("TCP", "UDP"), nm: text },
  { requiredKeys: ["port", "proto"], noNullPrototype: true },
);
const deduced = fc.record(
  { x: text, list: texts, map: textMap, any: fc.constantFrom<JsonValue>(null, 1, "s", { w: 1 }) },
  { requiredKeys: [], noNullPrototype: true },
);
const struct = fc.record({ x: text, y: text }, { requiredKeys: [], noNullPrototype: true });
const spec = fc.record(
  {
    a: text,
    b: text,
    num: fc.constantFrom(1, 2.5),
    l: texts,
    s: texts,
    ps: fc.uniqueArray(port, { selector: (item) => `${item.port}/${item.proto}` }),
    m: textMap,
    am: textMap,
    st: struct,
    as: struct,
    o: deduced,
  },
  { requiredKeys: [], noNullPrototype: true },
);
const object: fc.Arbitrary<JsonObject> = fc.record({ spec }, { requiredKeys: [], noNullPrototype: true });
const write = fc.record({
  manager: fc.constantFrom("a", "b", "c"),
  object,
  kind: fc.constantFrom("apply", "force", "update"),
});

interface State {
  live: JsonObject;
  owners: Owners;
}

function run(
  state: State,
  { manager, object: written, kind }: { manager: string; object: JsonObject; kind: string },
): State {
  const on = { ...state, manager, apiVersion: "v1", typeOf: () => type, resetFields: FieldSet.empty };
  if (kind === "update") return { live: written, owners: updateOwned({ ...on, manager: `${manager}-u` }, written) };
  const outcome = applyOwned(on, written, { force: kind === "force" });
  return outcome.kind === "conflict" ? state : { live: outcome.object ?? state.live, owners: outcome.owners };
}

const EMPTY: State = { live: {}, owners: new Map() };

suite("server-side apply of random objects", (test) => {
  test("generates objects that match the schema", () => {
    fc.assert(fc.property(object, (value) => assert.equal(checkValue(type, value, { allowsDuplicates: false }), [])));
  });

  test("decodes FieldsV1 to the set that was encoded", () => {
    fc.assert(
      fc.property(object, (value) => {
        const set = fieldSetOf(type, value);
        const fields = encodeFieldsV1(set);
        assert.ok(decodeFieldsV1(JSON.parse(JSON.stringify(fields)) as JsonObject).equals(set));
        assert.equal(JSON.stringify(encodeFieldsV1(decodeFieldsV1(fields))), JSON.stringify(fields));
      }),
    );
  });

  test("computes union, intersection, and difference like sets of paths", () => {
    fc.assert(
      fc.property(object, object, (one, other) => {
        const [a, b] = [fieldSetOf(type, one), fieldSetOf(type, other)];
        const [pathsA, pathsB] = [new Set(a.paths()), new Set(b.paths())];
        assert.equal(a.union(b).paths().sort(), [...new Set([...pathsA, ...pathsB])].sort());
        assert.equal(a.intersection(b).paths().sort(), [...pathsA].filter((path) => pathsB.has(path)).sort());
        assert.equal(a.difference(b).paths().sort(), [...pathsA].filter((path) => !pathsB.has(path)).sort());
      }),
    );
  });

  test("merges all applied fields and keeps all others", () => {
    fc.assert(
      fc.property(object, object, (live, config) => {
        const merged = (mergeValues(type, live, config) ?? {}) as JsonObject;
        assert.ok(fieldSetOf(type, config).difference(fieldSetOf(type, merged)).paths().every(isGoneContainer));
        assert.ok(fieldSetOf(type, live).difference(fieldSetOf(type, merged)).paths().every(isGoneContainer));
        assert.ok(deepEqual(mergeValues(type, merged, config), merged), "merging again changes nothing");
      }),
    );
  });

  test("removes exactly the given fields, and leaves emptied containers as null", () => {
    fc.assert(
      fc.property(object, object, (value, other) => {
        const before = fieldSetOf(type, value);
        const set = before.intersection(fieldSetOf(type, other));
        const after = fieldSetOf(type, removeFields(type, value, set));
        assert.equal(after.intersection(set).paths(), []);
        const removed = set.paths();
        const kept = before.paths().filter((path) => !startsWithAny(path, removed));
        assert.equal(
          kept.filter((path) => !after.paths().includes(path)),
          [],
        );
        const nothing = removeFields(type, value, before);
        assert.equal(fieldSetOf(type, nothing).intersection(before).paths(), []);
        assert.is(withoutEmpty(nothing), null);
      }),
    );
  });

  test("changes neither object nor owners when the same configuration is applied again", () => {
    fc.assert(
      fc.property(fc.array(write, { maxLength: 5 }), object, (writes, config) => {
        const before = writes.reduce(run, EMPTY);
        const once = run(before, { manager: "a", object: config, kind: "force" });
        const twice = run(once, { manager: "a", object: config, kind: "force" });
        // A container that was emptied is null, and empty when applied once more, as upstream.
        assert.equal(withoutEmpty(twice.live), withoutEmpty(once.live));
        const thrice = run(twice, { manager: "a", object: config, kind: "force" });
        assert.equal(thrice.live, twice.live);
        assert.ok(sameOwners(twice.owners, thrice.owners));
      }),
    );
  });

  test("applies without force what was applied with force before", () => {
    fc.assert(
      fc.property(fc.array(write, { maxLength: 5 }), object, (writes, written) => {
        // Emptied containers are null, which conflicts with what they were; see the law above.
        const config = (withoutEmpty(written) ?? {}) as JsonObject;
        const state = run(writes.reduce(run, EMPTY), { manager: "a", object: config, kind: "force" });
        const on = { ...state, manager: "a", apiVersion: "v1", typeOf: () => type, resetFields: FieldSet.empty };
        assert.is(applyOwned(on, config, { force: false }).kind, "applied");
      }),
    );
  });

  test("removes only fields that the manager has applied before", () => {
    fc.assert(
      fc.property(fc.array(write, { maxLength: 5 }), object, (writes, config) => {
        const before = writes.reduce(run, EMPTY);
        const after = run(before, { manager: "a", object: config, kind: "force" });
        const gone = fieldSetOf(type, before.live).difference(fieldSetOf(type, after.live));
        const mine = before.owners.get("a")?.set ?? FieldSet.empty;
        const config_ = fieldSetOf(type, config);
        const unexplained = gone
          .paths()
          .filter((path) => !startsWithAny(path, mine.paths()) && !startsWithAny(path, config_.paths()));
        assert.equal(
          unexplained.filter((path) => !isGoneContainer(path)),
          [],
        );
      }),
    );
  });
});

/** True for a path that may stop being a leaf: a null or empty container that gets members, or an open value. */
function isGoneContainer(path: string): boolean {
  return /^\.spec(\.(m|st|s|ps|o))?$|^\.spec\.o\./.test(path);
}

function withoutEmpty(value: JsonValue): JsonValue {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.length === 0 ? null : value.map(withoutEmpty);
  const members = Object.entries(value)
    .map(([name, member]) => [name, withoutEmpty(member)] as const)
    .filter(([, member]) => member !== null);
  return members.length === 0 ? null : Object.fromEntries(members);
}

function startsWithAny(path: string, prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) => path.startsWith(prefix));
}

function sameOwners(a: Owners, b: Owners): boolean {
  return a.size === b.size && [...a].every(([manager, { set }]) => b.get(manager)?.set.equals(set) === true);
}
