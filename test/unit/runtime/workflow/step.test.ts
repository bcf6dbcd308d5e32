// Time, retries and slots of steps, as runs of whole workflows show them.
import { RetryAfterError, TerminalError } from "#runtime/base/errors.js";
import type { Context } from "#runtime/workflow/context.js";
import { assert, suite } from "../../../support/suite.js";
import { bulkOf, createWorkflow, FakeCluster, type FakeDependent } from "./fake-cluster.js";

/** Lets everything happen that waits for nothing but its turn. */
async function settle(): Promise<void> {
  // A pause of a busy machine ends in a later round of the event loop.
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
}

/** A promise that a test resolves. */
function gate<Result = void>() {
  let open!: (result: Result) => void;
  const passed = new Promise<Result>((resolve) => (open = resolve));
  return { open, passed };
}

function messagesOf(errors: ReadonlyMap<string, unknown>): string[] {
  return [...errors.values()].map((error) => (error as Error).message);
}

suite("step timeout", (test) => {
  test("fails a step with what it waited for, and continues with the others", async () => {
    const { open, passed } = gate<object>();
    let signal: AbortSignal | undefined;
    const slow = {
      name: "slow",
      timeoutMs: 30_000,
      desired: ({ context }: { context: Context }) => ((signal = context.signal), passed),
    };
    const { cluster, reconcile } = createWorkflow([slow, { name: "after", dependsOn: ["slow"] }, { name: "other" }]);
    const run = reconcile();
    await settle();
    cluster.clock.advance(29_999);
    await settle();
    assert.not(signal?.aborted);
    cluster.clock.advance(1);
    const result = await run;
    assert.equal(messagesOf(result.errors), [
      'dependent "slow": it took longer than the 30000 ms that it may take, and was waiting for desired() of dependent "slow"',
    ]);
    assert.equal(result.waiting, ["after"]);
    assert.equal(cluster.writes, ["other"]);
    assert.ok(signal?.aborted);
    open({});
    await settle();
    assert.equal(cluster.writes, ["other"], "what comes too late is not written");
  });

  test("leaves no timer after a step and starts none while a step waits for a slot", async () => {
    const { open, passed } = gate<object>();
    const first = { name: "first", desired: () => passed };
    const cluster = new FakeCluster();
    const { reconcile } = createWorkflow([first, { name: "second", timeoutMs: 10 }], cluster, { maxConcurrency: 1 });
    const run = reconcile();
    await settle();
    assert.is(cluster.clock.nextDueAt, undefined);
    open({});
    const result = await run;
    assert.ok(result.isReady);
    assert.is(cluster.clock.nextDueAt, undefined);
  });

  test("frees the slot of a hanging step", async () => {
    const hanging = { name: "hanging", timeoutMs: 10, desired: () => new Promise(() => {}) };
    const cluster = new FakeCluster();
    const { reconcile } = createWorkflow([hanging, { name: "other" }], cluster, { maxConcurrency: 1 });
    const run = reconcile();
    await settle();
    assert.equal(cluster.writes, []);
    cluster.clock.advance(10);
    const result = await run;
    assert.equal(cluster.writes, ["other"]);
    assert.equal([...result.errors.keys()], ["hanging"]);
  });

  test("aborts a step with the signal of the reconcile, and rejects the run with its reason", async () => {
    const controller = new AbortController();
    let signal: AbortSignal | undefined;
    const waiting = {
      name: "waiting",
      timeoutMs: 10,
      desired: ({ context }: { context: Context }) =>
        new Promise((_, reject) => {
          signal = context.signal;
          signal.addEventListener("abort", () => reject(signal?.reason as Error));
        }),
    };
    const { cluster, reconcile } = createWorkflow([waiting, { name: "after", dependsOn: ["waiting"] }]);
    const run = reconcile(controller.signal);
    await settle();
    controller.abort(new Error("the operator stops"));
    const message = await run.then(String, (error: unknown) => (error as Error).message);
    assert.is(message, "the operator stops");
    assert.ok(signal?.aborted);
    assert.equal(cluster.history, []);
    assert.is(cluster.clock.nextDueAt, undefined);
  });

  test("applies to each item of a bulk dependent separately", async () => {
    const { open, passed } = gate<boolean>();
    const readyPostcondition = ({ item }: { item?: string }) => (item === "slow" ? passed : true);
    const { cluster, reconcile } = createWorkflow([
      bulkOf("all", ["slow", "fast"], { timeoutMs: 10, readyPostcondition }),
    ]);
    const run = reconcile();
    await settle();
    cluster.clock.advance(10);
    const result = await run;
    open(true);
    assert.is(result.dependents["all"]?.items?.["fast"]?.kind, "created");
    assert.is(result.dependents["all"]?.items?.["slow"]?.kind, "failed");
    assert.match(messagesOf(result.errors)[0]!, 'dependent "all", item "slow": it took longer than the 10 ms');
  });
});

suite("step retries", (test) => {
  /** A dependent whose `desired` fails as often as there are errors. */
  function failing(errors: readonly unknown[], rest: Partial<FakeDependent> = {}) {
    const left = [...errors];
    const calls = { desired: 0 };
    const desired = () => {
      calls.desired++;
      if (left.length > 0) throw left.shift();
      return {};
    };
    return { calls, dependent: { name: "a", desired, ...rest } };
  }

  async function run(dependents: readonly FakeDependent[], waitsMs: readonly number[]) {
    const workflow = createWorkflow(dependents);
    const result = workflow.reconcile();
    for (const waitMs of waitsMs) {
      await settle();
      const { clock } = workflow.cluster;
      assert.is((clock.nextDueAt ?? 0) - clock.now(), waitMs);
      clock.advance(waitMs);
    }
    return { ...workflow, result: await result };
  }

  test("repeat a failing step with growing intervals within one run", async () => {
    const retry = { maxRetries: 3, maxIntervalMs: 2_000 };
    const { dependent, calls } = failing([new Error("1"), new Error("2"), new Error("3")], { retry });
    const { result } = await run([dependent], [1_000, 1_500, 2_000]);
    assert.is(calls.desired, 4);
    assert.ok(result.isReady);
  });

  test("report the error of the last attempt", async () => {
    const { dependent } = failing([new Error("1"), new Error("2")], {
      retry: { maxRetries: 1, initialIntervalMs: 5 },
    });
    const { result } = await run([dependent], [5]);
    assert.equal(messagesOf(result.errors), ['dependent "a": 2']);
  });

  for (const error of [new TerminalError("never"), new RetryAfterError("later", 60_000)])
    test(`do not repeat a step after a ${error.name}`, async () => {
      const { dependent, calls } = failing([error], { retry: { maxRetries: 2 } });
      const { result } = await run([dependent], []);
      assert.is(calls.desired, 1);
      assert.is((result.errors.get("a") as Error).cause, error);
    });

  test("do not repeat what succeeded", async () => {
    const calls: string[] = [];
    const counted =
      <Result>(name: string, result: Result) =>
      () => (calls.push(name), result);
    const workflow = createWorkflow([
      {
        name: "a",
        activationCondition: counted("activation", true),
        reconcilePrecondition: counted("precondition", true),
        desired: counted("desired", {}),
        retry: { maxRetries: 1, initialIntervalMs: 0 },
      },
    ]);
    workflow.cluster.failures.set("a", new Error("no answer"));
    const result = workflow.reconcile();
    await settle();
    workflow.cluster.failures.clear();
    workflow.cluster.clock.advance(0);
    assert.ok((await result).isReady);
    assert.equal(calls, ["activation", "precondition", "desired"]);
    assert.equal(workflow.cluster.writes, ["a", "a"]);
  });

  test("free the slot while a step waits for its next attempt", async () => {
    const { dependent } = failing([new Error("1")], { retry: { maxRetries: 1 } });
    const cluster = new FakeCluster();
    const workflow = createWorkflow([dependent, { name: "b" }], cluster, { maxConcurrency: 1 });
    const result = workflow.reconcile();
    await settle();
    assert.equal(cluster.writes, ["b"]);
    cluster.clock.advance(1_000);
    assert.ok((await result).isReady);
  });

  test("are limited by the timeout of the step", async () => {
    const { dependent } = failing([new Error("1"), new Error("2")], { retry: { maxRetries: 8 }, timeoutMs: 1_200 });
    const workflow = createWorkflow([dependent]);
    const result = workflow.reconcile();
    await settle();
    workflow.cluster.clock.advance(1_000);
    await settle();
    workflow.cluster.clock.advance(200);
    assert.match(messagesOf((await result).errors)[0]!, "it took longer than the 1200 ms that it may take");
  });

  test("are rejected with invalid numbers, as are timeouts and maxConcurrency", () => {
    const wrong: [Partial<FakeDependent>, string][] = [
      [{ timeoutMs: 0 }, 'dependent "a" has 0 for timeoutMs; it needs 1 or more'],
      [{ timeoutMs: NaN }, "has NaN for timeoutMs"],
      [{ retry: { maxRetries: -1 } }, "has -1 for retry.maxRetries; it needs 0 or more"],
      [{ retry: { maxRetries: 1, multiplier: 0.5 } }, "has 0.5 for retry.multiplier; it needs 1 or more"],
      [{ retry: {} as never }, "has undefined for retry.maxRetries; it needs 0 or more"],
      [{ bulk: { maxConcurrency: 0 } }, "has 0 for bulk.maxConcurrency; it needs 1 or more"],
      [{ bulk: { maxConcurrency: 1.5 } }, "has 1.5 for bulk.maxConcurrency; it needs a whole number"],
    ];
    for (const [rest, message] of wrong) assert.throws(() => createWorkflow([{ name: "a", ...rest }]), message);
  });
});

suite("step slots", (test) => {
  test("are shared by all runs of a workflow", async () => {
    const names = [...Array(30).keys()].map((index) => `n${index}`);
    const cluster = new FakeCluster();
    cluster.pauses = [3, 1, 4];
    const workflow = createWorkflow(
      names.map((name) => ({ name })),
      cluster,
      { maxConcurrency: 7 },
    );
    await Promise.all([workflow.reconcile(), workflow.reconcile(), workflow.reconcile()]);
    assert.is(cluster.mostAtOnce, 7);
  });

  test("limit a fan-out of 100 to 50 concurrent writes by default", async () => {
    for (const [maxConcurrency, wanted] of [
      [undefined, 50],
      [1000, 100],
    ] as const) {
      const cluster = new FakeCluster();
      cluster.pauses = [5];
      const leaves = [...Array(100).keys()].map((index) => ({ name: `n${index}`, dependsOn: ["root"] }));
      const { reconcile } = createWorkflow(
        [{ name: "root" }, ...leaves],
        cluster,
        maxConcurrency ? { maxConcurrency } : {},
      );
      assert.ok((await reconcile()).isReady);
      assert.is(cluster.mostAtOnce, wanted);
      assert.is(cluster.writes.length, 101);
    }
  });

  test("let a chain of 10 and a grid of 10×10 converge in one run, with one write per dependent", async () => {
    const chain = [...Array(10).keys()].map((index) => ({
      name: `c${index}`,
      dependsOn: index === 0 ? [] : [`c${index - 1}`],
    }));
    const grid = [...Array(100).keys()].map((index) => {
      const [row, column] = [Math.floor(index / 10), index % 10];
      const left = column > 0 ? [`g${row}${column - 1}`] : [];
      return { name: `g${row}${column}`, dependsOn: [...(row > 0 ? [`g${row - 1}${column}`] : []), ...left] };
    });
    for (const nodes of [chain, grid]) {
      const calls = { desired: 0, ready: 0 };
      const { cluster, reconcile, cleanup } = createWorkflow(
        nodes.map((node) => ({
          ...node,
          desired: () => (calls.desired++, {}),
          readyPostcondition: () => (calls.ready++, true),
        })),
      );
      assert.ok((await reconcile()).isReady);
      assert.equal([...cluster.writes].sort(), nodes.map(({ name }) => name).sort());
      assert.equal(calls, { desired: nodes.length, ready: nodes.length });
      cluster.history.length = 0;
      assert.ok((await reconcile()).isReady);
      assert.equal(cluster.history, [], "the second run writes nothing");
      assert.ok((await cleanup()).isReady);
      assert.equal(cluster.removals.length, nodes.length);
      assert.equal(cluster.ids, []);
    }
  });
});
