import { waitFor } from "#apiserver/wait-for.js";
import { assert, suite } from "../../support/suite.js";

suite("waitFor", (test) => {
  test("returns what the function returns in the end, also where that throws at first", async () => {
    let calls = 0;
    const check = () => {
      if (++calls < 3) throw new Error("not yet");
      return "there";
    };
    assert.is(await waitFor("it", check, { intervalMs: 1 }), "there");
    assert.is(calls, 3);
  });

  test("says what it waited for, and how long by the factor for busy machines", async () => {
    using _factor = setFactor("3");
    const waiting = waitFor("it", () => Promise.reject(new Error("refused")), { timeoutMs: 5 });
    const { cause } = await assert.rejects(waiting, "it: not within 15 ms");
    assert.is((cause as Error).message, "refused");
  });
});

function setFactor(factor: string): Disposable {
  const before = process.env["GEN_OPERATOR_WAIT_FACTOR"];
  process.env["GEN_OPERATOR_WAIT_FACTOR"] = factor;
  return {
    [Symbol.dispose]: () => {
      if (before === undefined) delete process.env["GEN_OPERATOR_WAIT_FACTOR"];
      else process.env["GEN_OPERATOR_WAIT_FACTOR"] = before;
    },
  };
}
