import { assert, suite } from "../../../support/suite.js";
import { isSameTime } from "#runtime/apply/match.js";

const cases: readonly [desired: string, live: string, isSame: boolean, why: string][] = [
  ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", true, "identical"],
  ["2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z", true, "another time zone"],
  ["2026-01-01T00:00:00.9Z", "2026-01-01T00:00:00Z", true, "Time is truncated to seconds"],
  ["2026-01-01T00:00:01Z", "2026-01-01T00:00:00Z", false, "another second"],
  ["2026-01-01T01:00:00.000000+01:00", "2026-01-01T00:00:00.000000Z", true, "MicroTime in another time zone"],
  ["2026-01-01T00:00:00.000001Z", "2026-01-01T00:00:00.000000Z", false, "another microsecond"],
  ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000Z", false, "MicroTime without six digits is rejected"],
  ["yesterday", "2026-01-01T00:00:00Z", false, "not a time"],
  ["2026-13-01T00:00:00Z", "2026-13-01T00:00:00Z", false, "month 13 does not exist"],
];

suite("isSameTime", (test) => {
  for (const [desired, live, isSame, why] of cases)
    test(`treats ${desired} as ${isSame ? "" : "not "}stored as ${live}: ${why}`, () =>
      assert.is(isSameTime(desired, live), isSame));
});
