import { describeOutcome } from "#generator/dev/operator/reports.js";
import { assert, suite } from "../../../support/suite.js";

suite("describeOutcome", (test) => {
  test("names what a dependent waits for: other dependents, another cause, or both", () => {
    assert.equal(describeOutcome({ kind: "waiting", for: ["a", "b"] }), { state: "waiting", why: "for a, b" });
    const because = "the object is being deleted";
    assert.equal(describeOutcome({ kind: "waiting", for: [], because }), { state: "waiting", why: because });
    assert.equal(describeOutcome({ kind: "waiting", for: ["a"], because }), {
      state: "waiting",
      why: `for a; ${because}`,
    });
  });
});
