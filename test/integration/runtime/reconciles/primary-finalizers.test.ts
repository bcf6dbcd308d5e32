// Finalizers and other changes of a primary that are made anew after a conflict: JOSDK's ResourceOperationsTest on an API server; the names
// of the originals stand in brackets.
import { waitFor } from "#apiserver/wait-for.js";
import { keyOf } from "#runtime/base/kubernetes-object.js";
import { messageOf } from "#runtime/base/logger.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { assert, suite } from "../../../support/suite.js";
import {
  admitChanged,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  startPageServer,
  textOf,
} from "../page-operator.js";
import { newName, refOf, server } from "../writes/ways-to-write.js";
import { FINALIZER, knownIn, startWrittenKinds, type WrittenKinds } from "../writes/written-kinds.js";

suite("finalizer operations", (test) => {
  test("fail if an admission policy removes the finalizer, and create no dependents that need it", async () => {
    await using server = await startPageServer();
    const dependents = [configMapOf("text", { deletion: "ordered" })];
    for (const serverSideApply of [true, false]) {
      await using page = createPageOperator(server, { dependents, serverSideApply });
      await page.operator.start();
      await using _policy = await admitChanged(
        server,
        "pages",
        "[JSONPatch{op: 'add', path: '/metadata/finalizers', value: []}]",
      );
      await createPage(page);
      const failed = await waitFor("the reconcile fails", () => page.events.find(({ error }) => error !== undefined));
      assert.is(
        messageOf(failed.error),
        'the workflow failed: dependent "text": Page "default/one" was stored without the finalizer "pages.example.com/finalizer": an admission policy or webhook removed it. ' +
          "Exempt this kind; nothing that needs cleanup is created until the finalizer is stored",
      );
      assert.is(await textOf(page), undefined);
      await page.operator.client.delete(Page, { name: "one", namespace: "default" });
    }
  });

  const has = (
    object: { metadata: { finalizers?: readonly string[] | undefined } } | undefined,
    finalizer = FINALIZER,
  ) => object?.metadata.finalizers?.includes(finalizer) === true;

  test("add and remove a finalizer without events (addsFinalizer, removesFinalizer)", async () => {
    await using kinds = await startWrittenKinds(await server());
    const page = await createPageIn(kinds);
    const added = await kinds.operations.addFinalizer(page);
    assert.is(added?.kind, "updated");
    assert.ok(has(await kinds.foreign.get(Page, page.metadata)));
    const removed = await kinds.operations.removeFinalizer(added!.object);
    assert.not(has(removed?.object));
    await kinds.settle();
    assert.equal(kinds.pages.changes, []);
  });

  test("write nothing if the finalizer exists, is missing, or the object is terminating", async () => {
    await using kinds = await startWrittenKinds(await server());
    const page = await createPageIn(kinds, { finalizers: [FINALIZER] });
    assert.is((await kinds.operations.addFinalizer(page))?.kind, "unchanged");
    assert.is((await kinds.operations.applyFinalizer(page)).kind, "unchanged");
    await kinds.foreign.delete(Page, page.metadata);
    const deleting = (await kinds.foreign.get(Page, page.metadata))!;
    const other = "example.com/other";
    assert.is((await kinds.operations.addFinalizer(deleting, { finalizer: other }))?.kind, "unchanged");
    assert.is((await kinds.operations.applyFinalizer(deleting, { finalizer: other })).kind, "unchanged");
    assert.is((await kinds.operations.removeFinalizer(deleting, { finalizer: other }))?.kind, "unchanged");
    assert.equal(kinds.writes, []);
  });

  test("add a finalizer by server-side apply (addsFinalizerWithSSA)", async () => {
    await using kinds = await startWrittenKinds(await server());
    const page = await createPageIn(kinds);
    assert.is((await kinds.operations.applyFinalizer(page, { mode: "cacheOnly" })).kind, "updated");
    assert.ok(has(knownIn(kinds.pages, keyOf(page.metadata))));
    await kinds.settle();
    assert.is(kinds.pages.changes.length, 1);
  });

  test("keep the finalizer when an apply omits it", async () => {
    await using kinds = await startWrittenKinds(await server());
    const page = await createPageIn(kinds);
    await kinds.operations.applyFinalizer(page);
    const { object } = await kinds.operations.of(Page).apply({ metadata: refOf(page), spec: { text: "applied" } });
    assert.ok(has(object));
    const bare = await kinds.operations.of(Page).apply({
      metadata: { ...refOf(page), finalizers: [] },
      spec: { text: "applied" },
    });
    assert.not(has(bare.object));
  });

  test("keep finalizers of other controllers that are added concurrently (retriesAddingFinalizerWithoutSSA)", async () => {
    await using kinds = await startWrittenKinds(await server());
    const page = await createPageIn(kinds);
    await kinds.foreign.mergePatch(Page, page.metadata, { metadata: { finalizers: ["example.com/theirs"] } });
    const added = await kinds.operations.addFinalizer(page);
    assert.equal(added?.object.metadata.finalizers, ["example.com/theirs", FINALIZER]);
    // There were no finalizers when the patch was made, which it tests.
    assert.equal(kinds.writes, ["PATCH 422", "PATCH 200"]);
  });

  test("use the latest object although they are called with the primary of the reconcile", async () => {
    await using kinds = await startWrittenKinds(await server());
    const page = await createPageIn(kinds);
    const finalizers = async () => (await kinds.foreign.get(Page, page.metadata))!.metadata.finalizers ?? [];
    await kinds.operations.addFinalizer(page);
    await kinds.operations.removeFinalizer(page);
    assert.equal(await finalizers(), []);
    const again = await kinds.operations.addFinalizer(page);
    await kinds.operations.removeFinalizer(again!.object);
    await kinds.operations.applyFinalizer(again!.object);
    assert.equal(await finalizers(), [FINALIZER]);
    assert.equal(new Set(kinds.writes), new Set(["PATCH 200"]));
  });

  test("remove a finalizer after a conflict and keep foreign ones (retriesFinalizerRemovalWithFreshResource)", async () => {
    await using kinds = await startWrittenKinds(await server());
    const page = await createPageIn(kinds, { finalizers: [FINALIZER, "example.com/theirs"] });
    // The controller does not see that its finalizer moves to another index, which the patch tests.
    using _held = (await server()).faults.holdWatches();
    const finalizers = ["example.com/theirs", FINALIZER, "example.com/more"];
    await kinds.foreign.mergePatch(Page, page.metadata, { metadata: { finalizers } });
    const removed = await kinds.operations.removeFinalizer(page);
    const left = ["example.com/theirs", "example.com/more"];
    assert.equal(removed?.object.metadata.finalizers, left);
    assert.equal((await kinds.foreign.get(Page, page.metadata))?.metadata.finalizers, left);
    assert.equal(kinds.writes, ["PATCH 422", "PATCH 200"]);
  });

  test("succeed if the object is already gone (nullResourceIsGracefullyHandledOnFinalizerRemovalRetry)", async () => {
    await using kinds = await startWrittenKinds(await server());
    const page = await createPageIn(kinds, { finalizers: [FINALIZER] });
    await kinds.foreign.mergePatch(Page, page.metadata, { metadata: { finalizers: null } });
    await kinds.foreign.delete(Page, page.metadata);
    assert.is(await kinds.operations.removeFinalizer(page), undefined);
    await createPageNamed(kinds, page.metadata.name, { finalizers: [FINALIZER] });
    assert.is(await kinds.operations.removeFinalizer(page), undefined, "another one of the name is left alone");
    assert.ok(has(await kinds.foreign.get(Page, page.metadata)));
  });

  test("emit one deletion when the last finalizer is removed", async () => {
    await using kinds = await startWrittenKinds(await server());
    const page = await createPageIn(kinds, { finalizers: [FINALIZER] });
    await kinds.foreign.delete(Page, page.metadata);
    await kinds.forget();
    await kinds.operations.removeFinalizer(knownIn(kinds.pages, keyOf(page.metadata)));
    await kinds.settle();
    assert.equal(
      kinds.pages.changes.map(({ kind }) => kind),
      ["deleted"],
    );
    assert.not(kinds.pages.view.has(keyOf(page.metadata)));
  });

  test("fail after 10 conflicts", async () => {
    await using kinds = await startWrittenKinds(await server());
    const page = await createPageIn(kinds);
    const { faults } = await server();
    const answer = { status: 409, reason: "Conflict", message: "not now" };
    const fault = faults.add({ verb: "patch", path: `/${page.metadata.name}`, answer });
    const message = await failureOf(() => kinds.operations.addFinalizer(page));
    fault.remove();
    assert.match(
      message,
      /Page "default\/.*" could not be patched in 10 attempts: patch of Page .* 409 Conflict: not now/,
    );
    assert.is(fault.hits, 10);
  });

  test("do not retry 403", async () => {
    await using kinds = await startWrittenKinds(await server());
    const page = await createPageIn(kinds);
    const { faults } = await server();
    const answer = { status: 403, reason: "Forbidden", message: "no" };
    const fault = faults.add({ verb: "patch", path: `/${page.metadata.name}`, answer });
    assert.match(await failureOf(() => kinds.operations.addFinalizer(page)), "403 Forbidden: no");
    fault.remove();
    assert.is(fault.hits, 1);
  });

  test("write once if the response is lost", async () => {
    await using kinds = await startWrittenKinds(await server());
    const page = await createPageIn(kinds);
    const { faults } = await server();
    faults.add({ verb: "patch", path: `/${page.metadata.name}`, times: 1, loseAnswer: true });
    assert.ok(has((await kinds.operations.addFinalizer(page))?.object));
    assert.equal(kinds.writes, ["PATCH lost"]);
  });

  test("retry any change on conflict with the latest object (conflictRetryingPatchPrimary)", async () => {
    await using kinds = await startWrittenKinds(await server());
    const page = await createPageIn(kinds);
    await kinds.foreign.mergePatch(Page, page.metadata, { spec: { more: "1" } });
    const counted = await kinds.operations.patchWithConflictRetry(page, {
      isNeeded: ({ spec }) => spec.more !== "2",
      change: ({ spec }) => void (spec.more = String(Number(spec.more ?? 0) + 1)),
    });
    assert.is(counted?.object.spec.more, "2", "it was made of what is there, not of what was read");
  });
});

function createPageIn(kinds: WrittenKinds, metadata: object = {}): Promise<Page> {
  return createPageNamed(kinds, newName(), metadata);
}

async function createPageNamed(kinds: WrittenKinds, name: string, metadata: object): Promise<Page> {
  const page = await kinds.foreign.create(Page, {
    metadata: { name, namespace: "default", ...metadata },
    spec: { text: "first" },
  });
  await kinds.forget();
  return page;
}
