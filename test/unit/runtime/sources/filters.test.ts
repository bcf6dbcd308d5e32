import { HealthRecord, allOf, anyOf, createEventGate, not } from "#runtime/sources/event-source.js";
import fc from "../../../support/fast-check.js";
import { assert, suite } from "../../../support/suite.js";
import { createSourceContext } from "./source-context.js";
import type { EventFilters } from "#runtime/cache/resource-view.js";

const isLong = (text: string) => text.length > 3;
const hasGrown = (text: string, old: string) => text.length > old.length;

function createGate(filters: EventFilters<string>) {
  const { context, lines } = createSourceContext();
  const record = new HealthRecord("test");
  record.start(context);
  return { gate: createEventGate(filters, record), record, lines };
}

suite("filter combinators", (test) => {
  test("compute and, or and not", () => {
    const operands = fc.array(fc.boolean());
    fc.assert(
      fc.property(operands, (values) => {
        const filters = values.map((value) => () => value);
        assert.is(allOf(...filters)(), values.every(Boolean));
        assert.is(anyOf(...filters)(), values.some(Boolean));
        assert.is(not(allOf(...filters))(), !values.every(Boolean));
      }),
    );
  });

  test("pass all arguments to each filter", () => {
    const filter = allOf(
      hasGrown,
      not((text: string, old: string) => text === `${old}!`),
    );
    assert.is(filter("abc", "ab"), true);
    assert.is(filter("ab!", "ab"), false);
  });
});

suite("event gate", (test) => {
  test("accepts every event without filters", () => {
    const { gate } = createGate({});
    assert.equal([gate.passesAdd("a"), gate.passesUpdate("a", "b"), gate.passesDelete("a", true)], [true, true, true]);
  });

  test("accepts an event if both the generic filter and the filter of its type accept it (F1)", () => {
    const { gate } = createGate({
      generic: isLong,
      onAdd: (text) => text.startsWith("a"),
      onUpdate: hasGrown,
      onDelete: (_, isFinalStateUnknown) => isFinalStateUnknown,
    });
    assert.equal([gate.passesAdd("abcd"), gate.passesAdd("bcde"), gate.passesAdd("a")], [true, false, false]);
    assert.equal([gate.passesUpdate("abcd", "a"), gate.passesUpdate("abcd", "abcde")], [true, false]);
    assert.equal([gate.passesDelete("abcd", true), gate.passesDelete("abcd", false)], [true, false]);
  });

  test("accepts the event if a filter throws, is unhealthy until it works, and logs once", () => {
    let fails = true;
    const onAdd = () => {
      if (fails) throw new Error("no such field");
      return false;
    };
    const { gate, record, lines } = createGate({ onAdd });
    assert.is(gate.passesAdd("a"), true);
    assert.is(gate.passesAdd("b"), true);
    assert.equal(record.health, { status: "unhealthy", reason: "the filter onAdd failed: no such field" });
    fails = false;
    assert.is(gate.passesAdd("c"), false);
    assert.equal(record.health, { status: "healthy" });
    fails = true;
    gate.passesAdd("d");
    assert.equal(lines, [
      'warn: event source "test": the filter onAdd failed: no such field',
      'info: event source "test" works again',
    ]);
  });
});
