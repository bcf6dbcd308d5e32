// What becomes of errors, on an embedded API server.
import { ApiError, TerminalError } from "#runtime/base/errors.js";
import type { ReconcileScope } from "#runtime/queue/controller.js";
import {
  noUpdate,
  patchResource,
  updateStatus,
  withoutRetry,
  type ErrorControl,
} from "#runtime/reconcile/reconciler.js";
import type { WorkflowResult } from "#runtime/workflow/run.js";
import { assert, suite } from "../../../../support/suite.js";
import { dependentOf } from "../../../../unit/runtime/workflow/graphs.js";
import {
  createDispatcher,
  type DispatcherOptions,
  type PageErrorArguments,
  type PageReconciler,
} from "./page-dispatcher.js";

const error = new Error("broken");
const fail = () => {
  throw error;
};

/** A dispatcher whose reconciler fails, and what its handler was called with. */
async function createFailing(
  updateErrorStatus: NonNullable<PageReconciler["updateErrorStatus"]>,
  { reconciler, ...options }: DispatcherOptions = {},
) {
  const calls: PageErrorArguments[] = [];
  const all = {
    reconcile: fail,
    updateErrorStatus: (args: PageErrorArguments) => {
      calls.push(args);
      return updateErrorStatus(args);
    },
    ...reconciler,
  };
  return { ...(await createDispatcher({ reconciler: all, ...options })), calls };
}

suite("updateErrorStatus", (test) => {
  test("is called from the first failure on, with the error and the retry state", async () => {
    const { run, create, calls } = await createFailing(() => {});
    const entry = await create("first-error");
    await run(entry);
    await run(entry, { retry: { attempt: 3, isLastAttempt: true } });
    assert.equal(
      calls.map(({ error: thrown, context }) => [thrown, context.retry]),
      [
        [error, { attempt: 0, isLastAttempt: false }],
        [error, { attempt: 3, isLastAttempt: true }],
      ],
    );
    assert.is(calls[0]?.primary, entry.object);
    assert.is(calls[0]?.workflow?.isReady, true, "the workflow was reached");
  });

  let answered = 0;
  /** Lets the handler answer, and checks what the reconcile makes of it. */
  const checkAnswer = async (answer: ErrorControl<{ text: string }> | undefined, expected: object) => {
    const { run, create, requests, read } = await createFailing(() => answer);
    const page = `answer-${answered++}`;
    const { failure, rescheduleAfterMs, wroteStatus } = await run(await create(page));
    const actual = {
      ...(failure === undefined ? {} : { isHandled: failure.isHandled }),
      ...(rescheduleAfterMs === undefined ? {} : { rescheduleAfterMs }),
    };
    assert.equal(actual, expected);
    if (failure !== undefined) assert.is(failure.error, error);
    const hasStatus = answer?.status !== undefined;
    assert.is(wroteStatus, hasStatus);
    assert.equal(requests, hasStatus ? [`PATCH ${page}/status 200`] : []);
    assert.equal((await read(page))?.status, hasStatus ? { text: "bad" } : undefined);
  };
  const bad = updateStatus({ text: "bad" });

  test("leaves the error to the retries if it returns nothing", () => checkAnswer(undefined, { isHandled: false }));

  test("marks the error as handled if it returns a control, and it is retried", async () => {
    await checkAnswer(noUpdate(), { isHandled: true });
    await checkAnswer(bad, { isHandled: true });
  });

  test("reports success for withoutRetry()", () => checkAnswer(withoutRetry(), {}));

  test("writes the status and reports success for withoutRetry(updateStatus())", () =>
    checkAnswer(withoutRetry(bad), {}));

  test("does not retry if it returns rescheduleAfterMs, even 0", async () => {
    await checkAnswer(noUpdate({ rescheduleAfterMs: 7 }), { rescheduleAfterMs: 7 });
    await checkAnswer(updateStatus({ text: "bad" }, { rescheduleAfterMs: 0 }), { rescheduleAfterMs: 0 });
    await checkAnswer(withoutRetry(noUpdate({ rescheduleAfterMs: 9 })), { rescheduleAfterMs: 9 });
  });

  const sources: [title: string, options: DispatcherOptions, isWorkflowReached: boolean][] = [
    ["initContext", { reconciler: { initContext: fail, reconcile() {} } }, false],
    ["reconcile", {}, true],
    ["an invalid resource to write", { reconciler: { reconcile: () => patchResource({ spec: { text: 5 } }) } }, true],
    ["an invalid status to write", { reconciler: { reconcile: () => updateStatus({ text: 5 }) } }, true],
    ["an invalid control", { reconciler: { reconcile: () => 5 as never } }, true],
  ];
  for (const [index, [title, options, isWorkflowReached]] of sources.entries())
    test(`is called for an error of ${title}`, async () => {
      const { run, create, calls } = await createFailing(() => noUpdate(), options);
      const { failure } = await run(await create(`source-${index}`));
      assert.is(calls.length, 1);
      assert.is(failure?.error, calls[0]?.error);
      assert.is(failure?.isHandled, true);
      assert.is(calls[0]?.workflow !== undefined, isWorkflowReached);
    });

  test("is called for failed dependents with a WorkflowError of all errors and the result", async () => {
    const { run, create, calls } = await createFailing(() => noUpdate(), {
      dependents: [dependentOf("a", { desired: fail }), dependentOf("b", { desired: fail })],
      dependencies: { reconcilerOf: () => ({}) as never },
    });
    const outcome = await run(await create("workflow"));
    assert.is((calls[0]?.error as Error).name, "WorkflowError");
    assert.is((calls[0]?.error as AggregateError).errors.length, 2);
    assert.is(calls[0]?.workflow, outcome.workflow as WorkflowResult<never>);
    assert.equal([...outcome.workflow!.errors.keys()], ["a", "b"]);
  });

  test("leaves the error to the retries if it is not defined", async () => {
    const { run, create } = await createDispatcher({ reconciler: { reconcile: fail } });
    const { failure } = await run(await create("no-handler"));
    assert.equal(failure, { error, isHandled: false });
  });

  test("is not called for an aborted reconcile", async () => {
    const { run, create, calls } = await createFailing(() => updateStatus({ text: "bad" }));
    const entry = await create("given-up");
    const { failure } = await run(entry, { signal: AbortSignal.abort(new Error("the operator stops")) });
    assert.equal([calls.length, failure?.isHandled], [0, false]);
  });

  const again = { retry: { attempt: 0, isLastAttempt: false } };
  const last = { retry: { attempt: 5, isLastAttempt: true } };
  const imminent = { ...last, isNextReconcileImminent: () => true };
  const lines: [title: string, status: number | undefined, scope: Partial<ReconcileScope>, levels: string[]][] = [
    ["a 409 before a retry at info and debug", 409, again, ["info", "debug"]],
    ["a 422 before a retry at info and debug", 422, again, ["info", "debug"]],
    ["a 409 on the last attempt at info and debug if the next reconcile is imminent", 409, imminent, ["info", "debug"]],
    ["a 403 before a retry as a warning", 403, again, ["warn"]],
    ["a 409 on the last attempt as an error", 409, last, ["error"]],
    ["an error that updateErrorStatus throws before a retry as a warning", undefined, again, ["warn"]],
    ["an error that updateErrorStatus throws on the last attempt as an error", undefined, last, ["error"]],
  ];
  for (const [index, [title, status, scope, levels]] of lines.entries())
    test(`keeps the original error and logs ${title}`, async () => {
      const { run, create, logs, server } = await createFailing(() => {
        if (status === undefined) throw new Error("also broken");
        return updateStatus({ text: "bad" });
      });
      const name = `line-${index}`;
      const entry = await create(name);
      const fault = server.faults.add({ path: `/pages/${name}`, verb: "patch", answer: { status: status ?? 500 } });
      const { failure } = await run(entry, scope);
      fault.remove();
      assert.equal(failure, { error, isHandled: status !== undefined });
      assert.equal(
        logs.map((line) => line.split(" ")[0]),
        levels,
      );
    });

  test("logs an error if it fails for a TerminalError", async () => {
    const { run, create, logs } = await createDispatcher({
      reconciler: {
        reconcile() {
          throw new TerminalError("never");
        },
        updateErrorStatus() {
          throw new ApiError(409, {});
        },
      },
    });
    await run(await create("terminal"));
    assert.equal(logs, ["error the status could not report the error: 409: no message"]);
  });

  test("logs an invalid control and writes nothing", async () => {
    const { run, create, logs, requests } = await createFailing(() => patchResource({ spec: {} }) as never);
    const { failure } = await run(await create("invalid"));
    assert.equal(failure, { error, isHandled: false });
    assert.equal(requests, []);
    assert.match(logs.join(), 'updateErrorStatus() returned a control with "resource"');
  });
});
