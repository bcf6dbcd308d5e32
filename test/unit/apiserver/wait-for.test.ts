import { waitFor } from "#apiserver/wait-for.js";
import { assert, suite } from "../../support/suite.js";

suite("waitFor", (test) => {
  test("returns the first truthy value of the function, also if it throws at first", async () => {
    let calls = 0;
    const check = () => {
      if (++calls < 3) throw new Error("not yet");
      return "there";
    };
    assert.is(await waitFor("it", check, { intervalMs: 1 }), "there");
    assert.is(calls, 3);
  });

  test("fails with what it waited for and a timeout multiplied by GEN_OPERATOR_WAIT_FACTOR", async () => {
    using _factor = setFactor("3");
    const waiting = waitFor("it", () => Promise.reject(new Error("refused")), { timeoutMs: 5 });
    const { cause } = await assert.rejects(waiting, "it: timed out after 15 ms; the last check failed: refused");
    assert.is((cause as Error).message, "refused");
  });

  const page = { apiVersion: "example.com/v1", kind: "Page", metadata: { name: "one", namespace: "home" } };
  const condition = { type: "Ready", status: "False", reason: "Waiting", message: "for deployment" };
  const many = { ...page, status: { conditions: [condition, { type: "Paused", status: "True" }] } };
  const shown: { readonly [what: string]: readonly [value: unknown, text: string] } = {
    "no object": [undefined, "undefined"],
    "a list": [[{ a: { b: 1 } }], "[ { a: { b: 1 } } ]"],
    "the conditions of an object": [
      many,
      'Page "home/one" with conditions Ready=False (Waiting: for deployment), Paused=True',
    ],
    "the status of an object without conditions": [
      { ...page, status: { phase: "Pending" } },
      'Page "home/one" with status {"phase":"Pending"}',
    ],
    "an object without a status": [page, 'Page "home/one" without a status'],
    "a long text, truncated,": ["a".repeat(3_000), `'${"a".repeat(1_999)}… (1002 more)`],
  };
  for (const [what, [value, text]] of Object.entries(shown))
    test(`describes ${what} on timeout`, async () => {
      const waiting = waitFor("it", () => false, { timeoutMs: 5, describe: async () => value });
      const { message } = await assert.rejects(
        waiting,
        /^it: timed out after \d+ ms; the last value was false; actual state: /,
      );
      assert.is(message.slice(message.indexOf("actual state: ") + "actual state: ".length), text);
    });

  test("keeps the timeout error if describe fails", async () => {
    const describe = () => Promise.reject(new Error("no connection"));
    const waiting = waitFor("it", () => undefined, { timeoutMs: 5, describe });
    await assert.rejects(waiting, "; the last value was undefined; actual state: no connection");
  });

  test("fails if a check does not return", async () => {
    const waiting = waitFor("it", () => new Promise(() => {}), { timeoutMs: 5 });
    await assert.rejects(waiting, "; the last check has not returned");
  });

  test("returns the value of a check that resolves after the timeout", async () => {
    const check = () => new Promise((resolve) => setTimeout(() => resolve("there"), 100));
    assert.is(await waitFor("it", check, { timeoutMs: 5 }), "there");
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
