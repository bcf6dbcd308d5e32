import { KeyedQueue } from "#apiserver/simulate/feed/controller.js";
import fc from "../../../support/fast-check.js";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "#apiserver/wait-for.js";
import { assert, suite } from "../../../support/suite.js";

const noError = () => {};

suite("KeyedQueue", (test) => {
  test("never processes one key twice at once, nor more keys than its concurrency", () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 30 }), async (keys) => {
        const running: string[] = [];
        const worked = new Set<string>();
        const queue = new KeyedQueue({
          concurrency: 2,
          onError: noError,
          work: async (key) => {
            assert.not.ok(running.includes(key));
            running.push(key);
            assert.ok(running.length <= 2);
            await Promise.resolve();
            running.splice(running.indexOf(key), 1);
            worked.add(key);
          },
        });
        for (const key of keys) queue.add(key);
        await sleep(1);
        assert.equal(worked, new Set(keys));
      }),
      { numRuns: 50 },
    ));

  test("requeues a key that is added while it is processed", async () => {
    let runs = 0;
    const queue = new KeyedQueue({
      concurrency: 1,
      onError: noError,
      work: async (key) => {
        if (++runs === 1) {
          queue.add(key);
          queue.add(key);
        }
      },
    });
    queue.add("a");
    await sleep(20);
    assert.is(runs, 2);
  });

  test("uses the earlier of two due times", async () => {
    const startedAt = Date.now();
    let workedAt = 0;
    const work = async () => void (workedAt = Date.now());
    const queue = new KeyedQueue({ concurrency: 1, onError: noError, work });
    queue.add("a", 5_000);
    queue.add("a", 20);
    queue.add("a", 5_000);
    await waitFor("worked", () => workedAt > 0);
    assert.ok(workedAt - startedAt < 2_000);
    queue.close();
  });

  test("reports an error and retries the key", async () => {
    const errors: string[] = [];
    let runs = 0;
    const queue = new KeyedQueue({
      concurrency: 1,
      onError: (error, key) => errors.push(`${key}: ${String(error)}`),
      work: async () => {
        if (++runs < 3) throw new Error("not yet");
      },
    });
    queue.add("a");
    await waitFor("succeeded", () => runs === 3);
    assert.equal(errors, ["a: Error: not yet", "a: Error: not yet"]);
  });

  test("starts nothing after it is closed", async () => {
    let runs = 0;
    const work = async () => void runs++;
    const queue = new KeyedQueue({ concurrency: 1, onError: noError, work });
    queue.add("a", 10);
    queue.close();
    queue.add("b");
    await sleep(30);
    assert.is(runs, 0);
  });
});
