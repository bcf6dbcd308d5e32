import { Semaphore } from "#runtime/base/wait.js";
import { assert, suite } from "../../../support/suite.js";

suite("Semaphore", (test) => {
  test("acquires a free permit immediately and serves waiters in order", async () => {
    const semaphore = new Semaphore(1);
    assert.is(semaphore.acquire(), undefined);
    const served: string[] = [];
    const first = semaphore.acquire()?.then(() => served.push("first"));
    const second = semaphore.acquire()?.then(() => served.push("second"));
    semaphore.release();
    await first;
    assert.equal(served, ["first"]);
    semaphore.release();
    await second;
    assert.equal(served, ["first", "second"]);
    semaphore.release();
    assert.is(semaphore.acquire(), undefined, "the place is free again");
  });

  test("skips waiters whose signal is aborted", async () => {
    const semaphore = new Semaphore(1);
    await semaphore.acquire();
    const controller = new AbortController();
    const given = semaphore.acquire(controller.signal)?.catch((error: unknown) => (error as Error).message);
    controller.abort(new Error("given up"));
    assert.is(await given, "given up");
    const aborted = semaphore.acquire(controller.signal)?.catch((error: unknown) => (error as Error).message);
    assert.is(await aborted, "given up");
    semaphore.release();
    assert.is(semaphore.acquire(), undefined);
  });
});
