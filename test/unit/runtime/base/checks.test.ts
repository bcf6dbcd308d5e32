import { checkCounts } from "#runtime/base/validation.js";
import { assert, suite } from "../../../support/suite.js";

suite("checkCounts", (test) => {
  test("accepts positive integers, Infinity and undefined, and rejects other values", () => {
    for (const count of [undefined, 1, 2, Infinity]) checkCounts("it", { slots: [count, 1] });
    for (const count of [0, -1, NaN, "1", null])
      assert.throws(() => checkCounts("it", { slots: [count, 1] }), /^it has .* for slots; it needs 1 or more$/);
    assert.throws(() => checkCounts("it", { slots: [1.5, 1] }), "it has 1.5 for slots; it needs a whole number");
  });
});
