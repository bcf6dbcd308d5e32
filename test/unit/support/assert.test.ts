import { assert, suite } from "../../support/suite.js";

const wrong = () => {
  throw new Error("the page is gone");
};

suite("throws and rejects of assert", (test) => {
  test("accepts an error that contains a string, matches a pattern, or meets a predicate", async () => {
    for (const expected of ["page is gone", /^the page/, (error: Error) => error.name === "Error"]) {
      assert.throws(wrong, expected);
      assert.is((await assert.rejects(Promise.resolve().then(wrong), expected)).message, "the page is gone");
    }
  });

  test("fails for another error, a value that is not an Error, and no error", async () => {
    for (const expected of ["book", /book/, () => false]) {
      assert.throws(() => assert.throws(wrong, expected, "of two"), /^of two: another error was thrown\nexpected: /);
      await assert.rejects(assert.rejects(Promise.resolve().then(wrong), expected), "another error was thrown");
    }
    assert.throws(() => assert.throws(() => {}, /./), "the call threw nothing");
    await assert.rejects(assert.rejects(Promise.resolve(1), /./), "the promise was fulfilled");
    await assert.rejects(assert.rejects(Promise.reject("text" as unknown as Error), "text"), "no Error was thrown");
  });

  test("fails for a synchronous check of a promise", () => {
    assert.throws(() => assert.throws(() => Promise.reject(new Error("late")), "late"), "use rejects");
  });
});
