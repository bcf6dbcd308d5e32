import { EventCorrelator } from "#apiserver/simulate/event-recorder.js";
import { assert, suite } from "../../../support/suite.js";

const at = (nowMs: number, name: string) => ({ nowMs, name });
const failed = (message: string, subject = "web") => ({ subject, type: "Warning", reason: "FailedCreate", message });

suite("EventCorrelator", (test) => {
  test("counts a repeated occurrence under its first name and creates a new Event for another one", () => {
    const events = new EventCorrelator();
    assert.equal(events.correlate(failed("a"), at(0, "one")), {
      ...{ name: "one", count: 1, message: "a", isCombined: false },
    });
    assert.is(events.correlate(failed("b"), at(1, "two"))?.name, "two");
    assert.is(events.correlate(failed("a", "db"), at(2, "three"))?.name, "three");
    const again = events.correlate(failed("a"), at(3, "four"));
    assert.equal([again?.name, again?.count], ["one", 2]);
  });

  test("combines messages of the same reason from the tenth within 10 minutes", () => {
    const events = new EventCorrelator();
    const messages = Array.from({ length: 12 }, (_, index) => `no ${index}`);
    const told = messages.map((message, index) => events.correlate(failed(message), at(index, `event-${index}`)));
    assert.equal(
      told.slice(8).map((event) => [event?.name, event?.count, event?.message]),
      [
        ["event-8", 1, "no 8"],
        ["event-9", 1, "(combined from similar events): no 9"],
        ["event-9", 2, "(combined from similar events): no 10"],
        ["event-9", 3, "(combined from similar events): no 11"],
      ],
    );
    assert.is(events.correlate(failed("late"), at(700_000, "late"))?.isCombined, false);
  });

  test("limits an object to 25 Events, then to one per 5 minutes", () => {
    const events = new EventCorrelator();
    const told = Array.from({ length: 30 }, () => events.correlate(failed("a"), at(0, "one")));
    assert.is(told.filter((event) => event !== undefined).length, 25);
    assert.is(events.correlate(failed("a", "other"), at(0, "other"))?.count, 1);
    assert.is(events.correlate(failed("a"), at(300_000, "one"))?.count, 31);
    assert.is(events.correlate(failed("a"), at(300_001, "one")), undefined);
  });
});
