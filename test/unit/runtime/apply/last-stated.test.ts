import { isDeepStrictEqual } from "node:util";
import type { JsonObject, JsonValue } from "@gen-operator/schema";
import { genericMatcher } from "#runtime/apply/generic-matcher.js";
import { LAST_STATED, withStatement } from "#runtime/apply/update.js";
import fc from "../../../support/fast-check.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";

const definition = builtinDefinition("v1", "ConfigMap");
const metadata = { name: "a", namespace: "x" };
const matches = genericMatcher();

const names = fc.constantFrom("a", "b", "c");
const value: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom(1, 2, "x", true, null),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(names, tie("value"), { maxKeys: 3 }),
  ),
})).value;
const content = fc.dictionary(names, value, { maxKeys: 3 });

const statementOf = (desired: object) => withStatement({ ...desired, metadata }).metadata.annotations?.[LAST_STATED];

// What others add to an object that was written by PUT: members and, at the end, items.
function withAdditions(live: JsonValue, added: JsonValue): JsonValue {
  if (Array.isArray(live)) return Array.isArray(added) ? [...live, ...added] : live;
  if (typeof live !== "object" || live === null || Array.isArray(added)) return live;
  if (typeof added !== "object" || added === null) return live;
  const members = Object.entries(live).map(([name, member]) => [name, withAdditions(member, added[name] ?? null)]);
  return { ...added, ...(Object.fromEntries(members) as JsonObject) };
}

suite("annotation of a PUT", (test) => {
  test("changes whenever the generic matcher alone would accept another desired object", () => {
    let pairs = 0;
    fc.assert(
      fc.property(content, content, content, fc.boolean(), (before, next, added, isNear) => {
        // A desired object that lacks some of the one before is what the annotation is for.
        const desired = isNear ? Object.fromEntries(Object.entries(before).slice(1)) : next;
        const live = { ...(withAdditions(before, added) as object), apiVersion: "v1", kind: "ConfigMap", metadata };
        fc.pre(!isDeepStrictEqual(shown(before), shown(desired)));
        if (!matches({ definition, verb: "update", isStatus: false, desired: { ...desired, metadata }, live })) return;
        pairs++;
        assert.not.equal(statementOf(desired), statementOf(before));
      }),
      { numRuns: runs(4000) },
    );
    assert.ok(pairs > runs(200), `only ${pairs} runs compared anything`);
  });

  // Null is absent outside of lists.
  function shown(object: JsonValue): JsonValue {
    if (typeof object !== "object" || object === null || Array.isArray(object)) return object;
    const members = Object.entries(object).flatMap(([name, member]) =>
      member === null ? [] : [[name, shown(member)]],
    );
    return Object.fromEntries(members) as JsonObject;
  }

  test("ignores the order of fields and values outside of lists", () => {
    assert.is(statementOf({ a: 1, b: { c: "x", d: 2 } }), statementOf({ b: { d: 3, c: "y" }, a: "z" }));
    assert.is(statementOf({ a: [{ b: 1, c: 2 }] }), statementOf({ a: [{ c: 2, b: 1 }] }));
    assert.not.equal(statementOf({ a: [1] }), statementOf({ a: [2] }));
  });
});
