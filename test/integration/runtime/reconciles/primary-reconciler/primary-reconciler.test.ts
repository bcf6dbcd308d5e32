// What a reconcile of one primary consists of, on an embedded API server.
import { noUpdate, keepFinalizer, updateStatus, type DeleteControl } from "#runtime/reconcile/reconciler.js";
import { assert, suite } from "../../../../support/suite.js";
import {
  createDispatcher,
  FINALIZER,
  inBothWays,
  managersOf,
  markForDeletion,
  Page,
  type Dispatcher,
  type DispatcherOptions,
  type PageArguments,
  type PageInitArguments,
} from "./page-dispatcher.js";

const FOREIGN = "example.com/foreign";

/** A dispatcher whose reconciler cleans up, and the calls of its functions. */
async function createCleaning(cleanup: () => DeleteControl | void = () => {}, options: DispatcherOptions = {}) {
  const calls: string[] = [];
  const reconciler = {
    reconcile: () => void calls.push("reconcile"),
    cleanup: () => {
      calls.push("cleanup");
      return cleanup();
    },
  };
  return { ...(await createDispatcher({ reconciler, ...options })), calls };
}

async function createDeleting(dispatcher: Dispatcher, name: string, finalizers: string[] = [FINALIZER]) {
  await dispatcher.create(name, { metadata: { finalizers } });
  const entry = await markForDeletion(dispatcher, name);
  dispatcher.changes.length = 0;
  return entry;
}

/** Checks that the finalizer comes first, and that the reconcile goes on with the answer. */
async function checkAddedFirst(serverSideApply: boolean): Promise<void> {
  let seen: readonly string[] | undefined;
  const name = `adds-${serverSideApply}`;
  const dispatcher = await createDispatcher({
    serverSideApply,
    reconciler: {
      reconcile: ({ primary }: PageArguments) => void (seen = primary.metadata.finalizers),
      cleanup: () => {},
    },
  });
  const entry = await dispatcher.create(name);
  const outcome = await dispatcher.run(entry);
  assert.equal(seen, [FINALIZER]);
  assert.equal(dispatcher.requests, [`PATCH ${name} 200`]);
  assert.equal((await dispatcher.read(name))?.metadata.finalizers, [FINALIZER]);
  assert.is(outcome.failure, undefined);
  assert.is(outcome.wroteResource, false, "a finalizer is not what the reconciler wrote");
  assert.is((await managersOf(dispatcher, name)).includes("page Apply"), serverSideApply);
  await dispatcher.observe(name);
  assert.equal(dispatcher.changes, [], "the own event is not told");
}

suite("finalizer of a primary", (test) => {
  test("is added by server-side apply before the reconcile, which receives the response", () => checkAddedFirst(true));

  test("is added by a JSON patch before the reconcile, which receives the response", () => checkAddedFirst(false));

  test("is not written again if the primary already has it", () =>
    inBothWays(async ({ serverSideApply, nameOf }) => {
      const dispatcher = await createCleaning(undefined, { serverSideApply });
      await dispatcher.run(await dispatcher.create(nameOf("has"), { metadata: { finalizers: [FINALIZER] } }));
      assert.equal(dispatcher.calls, ["reconcile"]);
      assert.equal(dispatcher.requests, []);
    }));

  test("is added beside foreign finalizers, even if they are not in the cache yet", () =>
    inBothWays(async ({ serverSideApply, nameOf }) => {
      const dispatcher = await createCleaning(undefined, { serverSideApply });
      const name = nameOf("others");
      const entry = await dispatcher.create(name);
      await dispatcher.edit(name, { metadata: { finalizers: [FOREIGN] } });
      await dispatcher.run(entry);
      assert.equal(dispatcher.calls, ["reconcile"]);
      const { finalizers = [] } = (await dispatcher.read(name))!.metadata;
      assert.equal([...finalizers].sort(), [FOREIGN, FINALIZER].sort());
      if (!serverSideApply)
        assert.equal(dispatcher.requests, [`PATCH ${name} 422`, `GET ${name} 200`, `PATCH ${name} 200`]);
    }));

  test("is added without removing fields applied with the same field manager before", async () => {
    const dispatcher = await createCleaning();
    const labels = { kept: "yes" };
    const applied = { metadata: { name: "applied", namespace: "default", labels }, spec: { text: "first" } };
    await dispatcher.client.apply(Page, applied, { fieldManager: "page" });
    await dispatcher.run(await dispatcher.observe("applied"));
    const page = await dispatcher.read("applied");
    assert.equal(
      [page?.metadata.labels, page?.spec, page?.metadata.finalizers],
      [labels, { text: "first" }, [FINALIZER]],
    );
  });

  test("is not added to a primary that was deleted or recreated, which is not reconciled", () =>
    inBothWays(async ({ serverSideApply, nameOf }) => {
      const dispatcher = await createCleaning(undefined, { serverSideApply });
      const name = nameOf("gone");
      const entry = await dispatcher.create(name);
      await dispatcher.client.delete(Page, entry.object.metadata);
      assert.is((await dispatcher.run(entry)).failure, undefined);
      await dispatcher.create(name);
      assert.is((await dispatcher.run(entry)).failure, undefined);
      assert.is((await dispatcher.read(name))?.metadata.finalizers, undefined);
      assert.equal(dispatcher.calls, []);
    }));

  test("fails the reconcile if it cannot be added, without calling updateErrorStatus", async () => {
    const calls: string[] = [];
    const dispatcher = await createDispatcher({
      reconciler: {
        reconcile: () => void calls.push("reconcile"),
        cleanup() {},
        updateErrorStatus: () => void calls.push("updateErrorStatus"),
      },
    });
    const entry = await dispatcher.create("cannot-add");
    const fault = dispatcher.server.faults.add({ verb: "patch", path: "/pages/cannot-add", answer: { status: 403 } });
    const { failure } = await dispatcher.run(entry);
    fault.remove();
    assert.is(fault.hits, 1);
    assert.match((failure?.error as Error).message, 'apply of Page "default/cannot-add" failed');
    assert.equal(calls, []);
    // With the finalizer the same primary is reconciled.
    assert.is((await dispatcher.run(entry)).failure, undefined);
    assert.equal(calls, ["reconcile"]);
  });
});

suite("cleanup of a primary", (test) => {
  test("calls cleanup() of a terminating primary and removes the finalizer", async () => {
    const dispatcher = await createCleaning();
    const outcome = await dispatcher.run(await createDeleting(dispatcher, "marked"));
    assert.equal(dispatcher.calls, ["cleanup"]);
    assert.is(await dispatcher.read("marked"), undefined);
    assert.is(outcome.kind, "cleanup");
    assert.ok(outcome.isFinalizerRemoved);
    assert.equal(dispatcher.requests, ["PATCH marked 200"]);
  });

  test("keeps foreign finalizers and filters the own event", async () => {
    const dispatcher = await createCleaning();
    const outcome = await dispatcher.run(await createDeleting(dispatcher, "shared", [FOREIGN, FINALIZER]));
    assert.ok(outcome.isFinalizerRemoved);
    assert.equal((await dispatcher.read("shared"))?.metadata.finalizers, [FOREIGN]);
    assert.equal(dispatcher.cache.get("default/shared")?.object.metadata.finalizers, [FOREIGN]);
    await dispatcher.observe("shared");
    assert.equal(dispatcher.changes, []);
  });

  const checkUntouched = async (name: string, finalizers: string[], { hasCleanup = true } = {}) => {
    const calls: string[] = [];
    const reconcile = () => void calls.push("reconcile");
    const cleanup = { cleanup: () => void calls.push("cleanup") };
    const dispatcher = await createDispatcher({ reconciler: { reconcile, ...(hasCleanup ? cleanup : {}) } });
    const outcome = await dispatcher.run(await createDeleting(dispatcher, name, finalizers));
    assert.equal([calls, dispatcher.requests], [[], []]);
    assert.equal(outcome, { kind: "cleanup", isFinalizerRemoved: false, wroteStatus: false, wroteResource: false });
  };

  test("calls nothing if the controller has no cleanup()", () =>
    checkUntouched("untouched-none", [FOREIGN], { hasCleanup: false }));

  test("calls nothing if the own finalizer is already removed", async () => {
    await checkUntouched("untouched-gone", [FOREIGN]);
  });

  test("calls nothing if there are only foreign finalizers, even of the same domain", () =>
    checkUntouched("untouched-foreign", ["pages.example.com/other"]));

  test("removes a finalizer that a previous version left, even without cleanup()", async () => {
    const dispatcher = await createDispatcher({ reconciler: { reconcile() {} } });
    const outcome = await dispatcher.run(await createDeleting(dispatcher, "left"));
    assert.ok(outcome.isFinalizerRemoved);
    assert.is(await dispatcher.read("left"), undefined);
  });

  test("keeps the finalizer for keepFinalizer() and reschedules", async () => {
    const dispatcher = await createCleaning(() => keepFinalizer({ rescheduleAfterMs: 1000 }));
    const outcome = await dispatcher.run(await createDeleting(dispatcher, "kept"));
    assert.is(outcome.rescheduleAfterMs, 1000);
    assert.is(outcome.isFinalizerRemoved, false);
    assert.equal(dispatcher.requests, []);
    assert.equal((await dispatcher.read("kept"))?.metadata.finalizers, [FINALIZER]);
  });

  test("keeps the finalizer and is retried if cleanup() throws, without calling updateErrorStatus", async () => {
    const calls: string[] = [];
    const error = new Error("not yet");
    const cleanup = () => {
      throw error;
    };
    const dispatcher = await createDispatcher({
      reconciler: { reconcile() {}, cleanup, updateErrorStatus: () => void calls.push("handler") },
    });
    const outcome = await dispatcher.run(await createDeleting(dispatcher, "fails"));
    assert.equal(outcome.failure, { error, isHandled: false });
    assert.is(outcome.isFinalizerRemoved, false);
    assert.equal([calls, dispatcher.requests], [[], []]);
  });

  test("retries a 422 if the finalizers were changed concurrently", async () => {
    const dispatcher: Dispatcher = await createDispatcher({
      reconciler: {
        reconcile() {},
        cleanup: () => dispatcher.edit("moves", { metadata: { finalizers: [FOREIGN, FINALIZER] } }).then(() => {}),
      },
    });
    const outcome = await dispatcher.run(await createDeleting(dispatcher, "moves", [FINALIZER, FOREIGN]));
    assert.equal(dispatcher.requests, ["PATCH moves 422", "GET moves 200", "PATCH moves 200"]);
    assert.ok(outcome.isFinalizerRemoved);
    assert.equal((await dispatcher.read("moves"))?.metadata.finalizers, [FOREIGN]);
  });

  test("succeeds if the primary was deleted concurrently", async () => {
    const dispatcher: Dispatcher = await createDispatcher({
      reconciler: {
        reconcile() {},
        cleanup: () => dispatcher.edit("went", { metadata: { finalizers: null } }).then(() => {}),
      },
    });
    const outcome = await dispatcher.run(await createDeleting(dispatcher, "went"));
    assert.is(outcome.failure, undefined);
    assert.ok(outcome.isFinalizerRemoved);
  });

  test("fails after 10 conflicts, and immediately after a 400", async () => {
    const dispatcher = await createCleaning();
    const entry = await createDeleting(dispatcher, "conflicts");
    const path = "/pages/conflicts";
    const conflict = dispatcher.server.faults.add({ verb: "patch", path, answer: { status: 409, reason: "Conflict" } });
    const exhausted = await dispatcher.run(entry);
    conflict.remove();
    assert.is(dispatcher.requests.filter((request) => request.startsWith("PATCH")).length, 10);
    assert.match((exhausted.failure?.error as Error).message, "409 Conflict");
    dispatcher.requests.length = 0;
    const forbidden = dispatcher.server.faults.add({ verb: "patch", path, answer: { status: 400 } });
    const refused = await dispatcher.run(entry);
    forbidden.remove();
    assert.equal(dispatcher.requests, ["PATCH conflicts 400"]);
    assert.ok(refused.failure !== undefined && !refused.isFinalizerRemoved);
  });

  test("keeps the finalizer if the reconcile is aborted", async () => {
    const abort = new AbortController();
    const dispatcher = await createCleaning(() => abort.abort(new Error("the operator stops")));
    const outcome = await dispatcher.run(await createDeleting(dispatcher, "given-up"), { signal: abort.signal });
    assert.is((outcome.failure?.error as Error).message, "the operator stops");
    assert.equal(dispatcher.requests, []);
  });
});

suite("calls of the reconciler", (test) => {
  test("run reconcile() even if the generation is unchanged", async () => {
    const dispatcher = await createCleaning();
    const entry = await dispatcher.create("generation", { metadata: { finalizers: [FINALIZER] } });
    await dispatcher.run(entry);
    await dispatcher.run(entry);
    assert.equal(dispatcher.calls, ["reconcile", "reconcile"]);
  });

  test("receive retry, reasons and isNextReconcileImminent in the context", async () => {
    let seen: unknown;
    const dispatcher = await createDispatcher({
      reconciler: {
        reconcile({ context }: PageArguments) {
          const { retry, reasons, isNextReconcileImminent } = context;
          seen = [retry, reasons, isNextReconcileImminent()];
        },
      },
    });
    const retry = { attempt: 2, isLastAttempt: true };
    const reasons = [{ kind: "retry", attempt: 2 }] as const;
    await dispatcher.run(await dispatcher.create("retry"), { retry, reasons, isNextReconcileImminent: () => true });
    assert.equal(seen, [retry, reasons, true]);
  });

  test("receive the same primary object, which is that of the cache", async () => {
    const seen = new Set<unknown>();
    const note = ({ primary, context }: PageInitArguments) => {
      seen.add(primary);
      seen.add(context.primaries.get(primary.metadata));
    };
    const dispatcher = await createDispatcher({
      reconciler: {
        initContext: note,
        reconcile: (args: PageArguments) => {
          note(args);
          throw new Error("no");
        },
        updateErrorStatus: note,
      },
    });
    const entry = await dispatcher.create("same");
    await dispatcher.run(entry);
    assert.equal([...seen], [entry.object]);
    assert.is([...seen][0], entry.object);
  });

  test("run initContext() before reconcile() and cleanup(), with attributes of that call only", async () => {
    const seen: unknown[] = [];
    const read = ({ context }: PageArguments) => void seen.push([...context.attributes]);
    const dispatcher = await createDispatcher({
      reconciler: {
        initContext: ({ primary, context }: PageInitArguments) =>
          void context.attributes.set(context.attributes.size, primary.metadata.deletionTimestamp !== undefined),
        reconcile: read,
        cleanup: read,
      },
    });
    await dispatcher.run(await dispatcher.create("init", { metadata: { finalizers: [FINALIZER] } }));
    await dispatcher.run(await markForDeletion(dispatcher, "init"));
    assert.equal(seen, [[[0, false]], [[0, true]]]);
  });

  test("write nothing for noUpdate()", async () => {
    const dispatcher = await createDispatcher({ reconciler: { reconcile: () => noUpdate() } });
    const run = await dispatcher.run(await dispatcher.create("no-update"));
    const { workflow: _workflow, rescheduleAfterMs, ...outcome } = run;
    assert.is(rescheduleAfterMs, undefined);
    assert.equal(outcome, { kind: "reconcile", isFinalizerRemoved: false, wroteStatus: false, wroteResource: false });
    assert.equal(dispatcher.requests, []);
  });

  test("return rescheduleAfterMs, also 0", async () => {
    let rescheduleAfterMs = 0;
    const dispatcher = await createDispatcher({ reconciler: { reconcile: () => noUpdate({ rescheduleAfterMs }) } });
    const entry = await dispatcher.create("reschedule");
    assert.is((await dispatcher.run(entry)).rescheduleAfterMs, 0);
    rescheduleAfterMs = 500;
    assert.is((await dispatcher.run(entry)).rescheduleAfterMs, 500);
  });

  test("fail if reconcile() returns something else than a control", async () => {
    const dispatcher = await createDispatcher({ reconciler: { reconcile: () => "done" as never } });
    const { failure } = await dispatcher.run(await dispatcher.create("no-control"));
    assert.is((failure?.error as Error).message, "reconcile() returned a string instead of a control or nothing");
  });

  test("add no observedGeneration to the status", async () => {
    const dispatcher = await createDispatcher({ reconciler: { reconcile: () => updateStatus({ text: "x" }) } });
    await dispatcher.run(await dispatcher.create("observed"));
    assert.equal((await dispatcher.read("observed"))?.status, { text: "x" });
  });
});
