import { assert, suite } from "../../../support/suite.js";
import { isSameTime } from "#runtime/apply/match.js";

const cases: readonly [desired: string, live: string, isSame: boolean, why: string][] = [
  ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", true, "the same text"],
  ["2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z", true, "another zone"],
  ["2026-01-01T00:00:00.9Z", "2026-01-01T00:00:00Z", true, "a Time has whole seconds"],
  ["2026-01-01T00:00:01Z", "2026-01-01T00:00:00Z", false, "another second"],
  ["2026-01-01T01:00:00.000000+01:00", "2026-01-01T00:00:00.000000Z", true, "a MicroTime in another zone"],
  ["2026-01-01T00:00:00.000001Z", "2026-01-01T00:00:00.000000Z", false, "another microsecond"],
  ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000Z", false, "the server refuses a MicroTime without its digits"],
  ["yesterday", "2026-01-01T00:00:00Z", false, "no time"],
  ["2026-13-01T00:00:00Z", "2026-13-01T00:00:00Z", false, "no time that there is"],
];

suite("times as the API server stores them", (test) => {
  for (const [desired, live, isSame, why] of cases)
    test(`${desired} is ${isSame ? "" : "not "}stored as ${live}: ${why}`, () =>
      assert.is(isSameTime(desired, live), isSame));
});
