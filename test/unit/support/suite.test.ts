import { assert, suite } from "../../support/suite.js";

suite("suite", (test) => {
  test("runs a test", () => assert.is(1 + 1, 2));
});
