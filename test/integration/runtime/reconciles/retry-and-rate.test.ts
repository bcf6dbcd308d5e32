// Retries, intervals and rates, after JOSDK's integration tests.
import { waitFor } from "#apiserver/wait-for.js";
import { noUpdate, updateStatus } from "#runtime/reconcile/reconciler.js";
import { assert, suite } from "../../../support/suite.js";
import { Sample, sampleController } from "../sample-kind.js";
import { spacesOf } from "../space.js";

const openSpace = spacesOf();

suite("retries, resync and rate limit", (test) => {
  test("retry a reconcile that fails 3 times until it succeeds", async () => {
    await using space = await openSpace();
    const attempts: number[] = [];
    const controller = sampleController(
      {
        reconcile: ({ context }) => {
          attempts.push(context.retry.attempt);
          if (attempts.length <= 3) throw new Error("not yet");
          return updateStatus({ value: "done" });
        },
      },
      { retry: { maxRetries: 5, initialIntervalMs: 10 } },
    );
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: {} });
    await space.until(Sample, "one", ({ status }) => status?.value === "done");
    await running.quiet();
    assert.equal(attempts, [0, 1, 2, 3]);
  });

  test("run a reconcile that always fails 1 + maxRetries times", async () => {
    await using space = await openSpace();
    const seen: [attempt: number, isLast: boolean][] = [];
    const controller = sampleController(
      {
        reconcile: ({ context: { retry } }) => {
          seen.push([retry.attempt, retry.isLastAttempt]);
          throw new Error("never");
        },
      },
      { retry: { maxRetries: 3, initialIntervalMs: 10 } },
    );
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: {} });
    await waitFor("the attempts are used up", () => seen.length >= 4);
    await running.quiet();
    assert.equal(seen, [
      [0, false],
      [1, false],
      [2, false],
      [3, true],
    ]);
  });

  test("resync an unchanged primary every maxReconciliationIntervalMs", async () => {
    await using space = await openSpace();
    let calls = 0;
    const controller = sampleController({ reconcile: () => void calls++ }, { maxReconciliationIntervalMs: 50 });
    await using _ = await space.start([controller]);
    const startedAt = Date.now();
    await space.create(Sample, { metadata: { name: "one" }, spec: {} });
    await waitFor("it is reconciled again and again", () => calls > 3);
    assert.ok(Date.now() - startedAt >= 3 * 50 - 10);
  });

  test("resync after the retries are exhausted", async () => {
    await using space = await openSpace();
    let calls = 0;
    const controller = sampleController(
      {
        reconcile: () => {
          calls++;
          throw new Error("never");
        },
      },
      { retry: { maxRetries: 1, initialIntervalMs: 10 }, maxReconciliationIntervalMs: 30 },
    );
    await using _ = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: {} });
    await waitFor("it is reconciled more often than it has attempts", () => calls > 5);
  });

  test("coalesce a burst of 5 changes into one reconcile at the end of the rate limit window", async () => {
    await using space = await openSpace();
    const seen: (string | undefined)[] = [];
    const controller = sampleController(
      { reconcile: ({ primary }) => void seen.push(primary.spec.value) },
      { rateLimit: { maxReconciliations: 1, withinMs: 1_500 } },
    );
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: { value: "0" } });
    await waitFor("it is reconciled", () => seen.length === 1);
    for (let change = 1; change <= 5; change++) await space.patch(Sample, "one", { spec: { value: String(change) } });
    await running.quiet(100);
    assert.equal(seen, ["0"]);
    await waitFor("the rate allows another", () => seen.length === 2);
    await running.quiet(100);
    assert.equal(seen, ["0", "5"]);
  });

  test("reconcile changes at once during a long retry interval, without consuming retries", async () => {
    await using space = await openSpace();
    const attempts: number[] = [];
    const controller = sampleController(
      {
        reconcile: ({ context }) => {
          attempts.push(context.retry.attempt);
          throw new Error("never");
        },
      },
      { retry: { maxRetries: 3, initialIntervalMs: 60_000, maxIntervalMs: 60_000 } },
    );
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: { number: 0 } });
    await waitFor("it failed", () => running.events.length === 1);
    for (let change = 1; change <= 5; change++) {
      await space.patch(Sample, "one", { spec: { number: change } });
      await waitFor("it failed again", () => running.events.length === change + 1);
    }
    await running.quiet(50);
    assert.equal(attempts, [0, 1, 1, 1, 1, 1]);
  });

  test("call updateErrorStatus for each failed attempt", async () => {
    await using space = await openSpace();
    const attempts: [attempt: number, isLast: boolean][] = [];
    const controller = sampleController(
      {
        reconcile: () => {
          throw new Error("never");
        },
        updateErrorStatus: ({ error, context: { retry } }) => {
          attempts.push([retry.attempt, retry.isLastAttempt]);
          return updateStatus({ message: `${(error as Error).message}, attempt ${retry.attempt}` });
        },
      },
      { retry: { maxRetries: 3, initialIntervalMs: 10 } },
    );
    await using running = await space.start([controller]);
    await space.create(Sample, { metadata: { name: "one" }, spec: {} });
    await space.until(Sample, "one", ({ status }) => status?.message === "never, attempt 3");
    await running.quiet();
    assert.equal(attempts, [
      [0, false],
      [1, false],
      [2, false],
      [3, true],
    ]);
  });

  test("let a reconcile skip the status if isNextReconcileImminent() returns true", async () => {
    await using space = await openSpace();
    const imminent: boolean[] = [];
    const controller = sampleController({
      reconcile: async ({ primary, context }) => {
        if (imminent.length === 0) await waitFor("a change comes", () => context.isNextReconcileImminent());
        imminent.push(context.isNextReconcileImminent());
        return context.isNextReconcileImminent() ? noUpdate() : updateStatus({ value: primary.spec.value ?? "" });
      },
    });
    await using running = await space.start([controller]);
    const written = () => running.requests.filter((request) => request.includes("/one/status")).length;
    await space.create(Sample, { metadata: { name: "one" }, spec: { value: "a" } });
    await waitFor("reconcile runs", () => running.operator.controller("sample").counts().running === 1);
    await space.patch(Sample, "one", { spec: { value: "b" } });
    await space.until(Sample, "one", ({ status }) => status?.value === "b");
    await running.quiet();
    assert.equal(imminent, [true, false]);
    assert.is(written(), 1);
  });
});
