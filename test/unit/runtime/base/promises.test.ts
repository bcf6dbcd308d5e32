// What waits is aborted with the signals that it is given, and leaves nothing in them: they may live as long as the process.
import { abortWith, sleep, untilAborted, withDeadline } from "#runtime/base/wait.js";
import { keptIn } from "../../../support/runtime/kept-in.js";
import { assert, suite } from "../../../support/suite.js";

suite("abort signals", (test) => {
  test("retain the listeners of AbortSignal.any() as far as the test can measure", () => {
    const { signal } = new AbortController();
    assert.is(keptIn(signal), 0);
    AbortSignal.any([signal]).addEventListener("abort", () => {});
    assert.is(keptIn(signal), 1);
  });

  test("retain no listeners after a wait has ended", async () => {
    const [first, second] = [new AbortController().signal, new AbortController().signal];
    const signals = [first, undefined, second];
    const waits = [
      () => untilAborted("done", ...signals),
      () => sleep(1, signals),
      () => withDeadline((signal) => sleep(1, signal), { timeoutMs: 60_000 }, signals),
      () => withDeadline(() => new Promise(() => {}), { timeoutMs: 1 }, signals).catch(() => {}),
    ];
    for (const wait of waits) {
      await wait();
      assert.equal([keptIn(first), keptIn(second)], [0, 0], String(wait));
    }
    const leave = abortWith(new AbortController(), ...signals);
    assert.equal([keptIn(first), keptIn(second)], [1, 1]);
    leave();
    assert.equal([keptIn(first), keptIn(second)], [0, 0]);
  });

  test("abort a call with a deadline, with the reason of the first aborted signal", async () => {
    const [other, ending] = [new AbortController(), new AbortController()];
    const seen: unknown[] = [];
    const waiting = withDeadline(
      (signal) => new Promise(() => signal.addEventListener("abort", () => seen.push(signal.reason))),
      { timeoutMs: 60_000 },
      [other.signal, ending.signal],
    );
    const reason = new Error("it ends");
    ending.abort(reason);
    assert.is(await assert.rejects(waiting, /it ends/), reason);
    assert.equal(seen, [reason]);
    const late = withDeadline((signal) => signal.reason, { timeoutMs: 60_000 }, [ending.signal]);
    assert.is(await assert.rejects(late, /it ends/), reason, "also if it was aborted before");
  });
});
