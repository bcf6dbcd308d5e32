import fc from "../../../support/fast-check.js";
import { isDeepStrictEqual } from "node:util";
import type { JsonValue } from "#runtime/base/kubernetes-object.js";
import { findMissing, includes } from "#runtime/apply/generic-matcher.js";
import { schemaOf } from "#runtime/apply/owned-fields.js";
import { untypedResource } from "#runtime/api/define-resource.js";
import { runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";

const { definition } = untypedResource({
  apiVersion: "example.com/v1",
  kind: "Any",
  plural: "anies",
  scope: "Cluster",
});
const schema = schemaOf(definition).property("spec");

const small = fc.integer({ min: 0, max: 2 });
const values: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    small,
    fc.record({ n: small, x: small }, { requiredKeys: [], noNullPrototype: true }),
    fc.array(tie("value"), { maxLength: 6 }),
    fc.constant(null),
  ),
})).value;
const lists = fc.array(values, { maxLength: 7 });
// What others made of a list: mostly the same items in mostly the same order.
const pairs = fc.oneof(
  fc.tuple(lists, lists),
  fc
    .tuple(lists, fc.array(fc.tuple(fc.nat(6), values), { maxLength: 3 }))
    .map(([list, changes]) => [
      list,
      changes.reduce<JsonValue[]>((all, [at, value]) => all.toSpliced(at, at % 2, value), list),
    ]),
) as fc.Arbitrary<[JsonValue[], JsonValue[]]>;

suite("additive comparison", (test) => {
  test("includes every list that the longest common subsequence includes, and only lists in order", () => {
    fc.assert(
      fc.property(pairs, fc.boolean(), ([desired, live], mayLackEmpty) => {
        const isFound = includes(desired, live, { schema, mayLackEmpty });
        if (isIncluded(desired, live, mayLackEmpty)) assert.ok(isFound);
        if (isFound) assert.ok(hasPlaces(desired, live, mayLackEmpty));
      }),
      { numRuns: runs(8_000) },
    );
  });

  test("reads each item of a list of 500 at most a few times", () => {
    const length = 500;
    const count = (change: (live: JsonValue[]) => JsonValue[]) => {
      let reads = 0;
      const items = (extra: object) =>
        Array.from({ length }, (_, index) => ({
          ...extra,
          get name() {
            reads++;
            return `item ${index}`;
          },
        }));
      const isIncluded = includes(items({}), change(items({})), { schema });
      return { isIncluded, isCheap: reads <= 20 * length };
    };
    assert.equal(
      count((live) => live),
      { isIncluded: true, isCheap: true },
    );
    assert.equal(
      count((live) => live.toSpliced(250, 0, "another").toSpliced(20, 0, "one more")),
      { isIncluded: true, isCheap: true },
    );
    assert.equal(
      count((live) => live.toReversed()),
      { isIncluded: false, isCheap: true },
    );
  });

  test("finds a change in a list of 10,000 items with foreign fields", () => {
    const desired = numbered(10_000);
    const live = desired.map((item) => ({ ...item, protocol: "TCP" }));
    assert.ok(includes(desired, live, { schema }));
    assert.equal(findMissing(desired, live.with(7, { n: -1, protocol: "TCP" }), { schema, path: ["ports"] }), [
      { path: "ports[7].n", reason: "differs" },
    ]);
  });

  test("ignores foreign items anywhere in a list of 10,000", () => {
    const desired = numbered(10_000);
    const live = desired.toSpliced(2_000, 0, { n: -1 }).toSpliced(2_900, 0, { n: -2 });
    assert.ok(includes(desired, live, { schema }));
  });

  test("treats a reordered list of 10,000 items as different", () => {
    const desired = numbered(10_000);
    assert.not(includes(desired, desired.toReversed(), { schema }));
    assert.not(includes(desired, [...desired.slice(5_000), ...desired.slice(0, 5_000)], { schema }));
  });
});

function numbered(length: number): { n: number }[] {
  return Array.from({ length }, (_, n) => ({ n }));
}

// JOSDK's definition, which takes time and memory for all pairs of items.
function isIncluded(desired: JsonValue | undefined, live: JsonValue | undefined, mayLackEmpty: boolean): boolean {
  if (desired === undefined || desired === null) return true;
  if (live === undefined || live === null)
    return mayLackEmpty && typeof desired === "object" && Object.keys(desired).length === 0;
  if (typeof desired !== "object" || typeof live !== "object") return desired === live;
  if (Array.isArray(desired) !== Array.isArray(live)) return false;
  if (Array.isArray(desired)) return isListIncluded(desired, live as JsonValue[], mayLackEmpty);
  return Object.keys(desired).every((name) =>
    isIncluded(desired[name], (live as { [name: string]: JsonValue })[name], mayLackEmpty),
  );
}

function isListIncluded(desired: JsonValue[], live: JsonValue[], mayLackEmpty: boolean): boolean {
  let at = 0;
  let liveAt = 0;
  for (const item of commonSubsequence(desired, live)) {
    while (!isDeepStrictEqual(desired[at], item)) {
      if (isDeepStrictEqual(live[liveAt], item) || !isIncluded(desired[at], live[liveAt], mayLackEmpty)) return false;
      at++;
      liveAt++;
    }
    while (!isDeepStrictEqual(live[liveAt], item)) liveAt++;
    at++;
    liveAt++;
  }
  return desired.slice(at).every((item, index) => isIncluded(item, live[liveAt + index], mayLackEmpty));
}

function commonSubsequence(a: readonly JsonValue[], b: readonly JsonValue[]): JsonValue[] {
  const isSame = a.map((item) => b.map((other) => isDeepStrictEqual(item, other)));
  const lengths = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i]![j] = isSame[i]![j] ? lengths[i + 1]![j + 1]! + 1 : Math.max(lengths[i + 1]![j]!, lengths[i]![j + 1]!);
  const common: JsonValue[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;)
    if (isSame[i]![j]) {
      common.push(a[i]!);
      i++;
      j++;
    } else if (lengths[i + 1]![j]! >= lengths[i]![j + 1]!) i++;
    else j++;
  return common;
}

// Whether each item has a place of its own in live, in the same order; what may be absent needs none.
function hasPlaces(desired: JsonValue, live: JsonValue | undefined, mayLackEmpty: boolean): boolean {
  if (!Array.isArray(desired) || !Array.isArray(live)) return isIncluded(desired, live, mayLackEmpty);
  let place = 0;
  return desired.every((item) => {
    if (isIncluded(item, undefined, mayLackEmpty)) return true;
    while (place < live.length && !hasPlaces(item, live[place], mayLackEmpty)) place++;
    return place++ < live.length;
  });
}
