// What the controls of a reconciler make of a primary, on an embedded API server.
import { patchResource, patchResourceAndStatus, updateStatus } from "#runtime/reconcile/reconciler.js";
import { assert, suite } from "../../../../support/suite.js";
import {
  createDispatcher,
  FINALIZER,
  inBothWays,
  Page,
  type Dispatcher,
  type DispatcherOptions,
  type PageReconciler,
} from "./page-dispatcher.js";
import { compareResourceVersions } from "#runtime/base/kubernetes-object.js";

type Reconcile = PageReconciler["reconcile"];

function createWriting(reconcile: Reconcile, options: DispatcherOptions = {}): Promise<Dispatcher> {
  return createDispatcher({ reconciler: { reconcile }, ...options });
}

const labelled = (primary: Page, labels: { [key: string]: string }): Page => ({
  ...primary,
  metadata: { ...primary.metadata, labels: { ...primary.metadata.labels, ...labels } },
});

/** The same wish in both modes: only what is intended, or the whole primary as it should become. */
const labelOf = (serverSideApply: boolean, primary: Page): object =>
  serverSideApply ? { metadata: { labels: { by: "us" } } } : labelled(primary, { by: "us" });

suite("primary writes", (test) => {
  test("write the status to its subresource once and filter the own event", () =>
    inBothWays(async ({ serverSideApply, nameOf }) => {
      const dispatcher = await createWriting(() => updateStatus({ text: "done" }), { serverSideApply });
      const name = nameOf("status");
      const outcome = await dispatcher.run(await dispatcher.create(name));
      assert.equal(dispatcher.requests, [`PATCH ${name}/status 200`]);
      assert.equal([outcome.wroteStatus, outcome.wroteResource], [true, false]);
      assert.equal((await dispatcher.read(name))?.status, { text: "done" });
      const again = await dispatcher.run(dispatcher.cache.get(`default/${name}`)!);
      assert.is(again.wroteStatus, false);
      assert.is(dispatcher.requests.length, 1, "the next read sees the write, and nothing is written twice");
      await dispatcher.observe(name);
      assert.equal(dispatcher.changes, [], "the own event is not told");
    }));

  test("compare the status by its JSON", () =>
    inBothWays(async ({ serverSideApply, nameOf }) => {
      const text = { toJSON: () => "done" } as unknown as string;
      const dispatcher = await createWriting(() => updateStatus({ text }), { serverSideApply });
      const name = nameOf("json");
      await dispatcher.run(await dispatcher.create(name));
      await dispatcher.run(dispatcher.cache.get(`default/${name}`)!);
      assert.equal(dispatcher.requests, [`PATCH ${name}/status 200`]);
    }));

  test("write the resource once and filter the own event", () =>
    inBothWays(async ({ serverSideApply, nameOf }) => {
      const dispatcher = await createWriting(({ primary }) => patchResource(labelOf(serverSideApply, primary)), {
        serverSideApply,
      });
      const name = nameOf("resource");
      const outcome = await dispatcher.run(await dispatcher.create(name, { metadata: { labels: { a: "b" } } }));
      assert.equal(dispatcher.requests, [`PATCH ${name} 200`]);
      assert.equal([outcome.wroteStatus, outcome.wroteResource], [false, true]);
      const page = await dispatcher.read(name);
      assert.equal([page?.metadata.labels, page?.spec], [{ a: "b", by: "us" }, { text: "first" }]);
      await dispatcher.run(dispatcher.cache.get(`default/${name}`)!);
      assert.is(dispatcher.requests.length, 1);
      await dispatcher.observe(name);
      assert.equal(dispatcher.changes, []);
    }));

  test("write the resource before the status", () =>
    inBothWays(async ({ serverSideApply, nameOf }) => {
      const reconcile: Reconcile = ({ primary }) =>
        patchResourceAndStatus(labelOf(serverSideApply, primary), { text: "done" });
      const dispatcher = await createWriting(reconcile, { serverSideApply });
      const name = nameOf("both");
      const outcome = await dispatcher.run(await dispatcher.create(name, { status: { text: "old" } }));
      assert.equal(dispatcher.requests, [`PATCH ${name} 200`, `PATCH ${name}/status 200`]);
      assert.equal([outcome.wroteStatus, outcome.wroteResource], [true, true]);
      const page = await dispatcher.read(name);
      assert.equal([page?.metadata.labels, page?.status], [{ by: "us" }, { text: "done" }]);
      await dispatcher.observe(name);
      assert.equal(dispatcher.changes, []);
    }));

  test("keep the finalizer when the resource is written", () =>
    inBothWays(async ({ serverSideApply, nameOf }) => {
      const reconcile: Reconcile = ({ primary }) => patchResource(labelOf(serverSideApply, primary));
      const dispatcher = await createDispatcher({ reconciler: { reconcile, cleanup() {} }, serverSideApply });
      const name = nameOf("finalizer");
      await dispatcher.run(await dispatcher.create(name));
      const { metadata } = (await dispatcher.read(name))!;
      assert.equal([metadata.finalizers, metadata.labels], [[FINALIZER], { by: "us" }]);
    }));

  test("keep a concurrent foreign change and emit it", () =>
    inBothWays(async ({ serverSideApply, nameOf }) => {
      const dispatcher: Dispatcher = await createWriting(
        async ({ primary }) => {
          await dispatcher.edit(primary.metadata.name, { metadata: { labels: { foreign: "yes" } } });
          return patchResourceAndStatus(labelOf(serverSideApply, primary), { text: "done" });
        },
        { serverSideApply },
      );
      const name = nameOf("meanwhile");
      const outcome = await dispatcher.run(await dispatcher.create(name, { metadata: { labels: { a: "b" } } }));
      assert.is(outcome.failure, undefined, "nothing is locked");
      const page = await dispatcher.read(name);
      assert.equal([page?.metadata.labels, page?.status], [{ a: "b", by: "us", foreign: "yes" }, { text: "done" }]);
      await dispatcher.observe(name);
      assert.is(dispatcher.changes.length, 1);
    }));

  test("fail with 409 if the returned resourceVersion is outdated", () =>
    inBothWays(async ({ serverSideApply, nameOf }) => {
      const dispatcher = await createWriting(
        ({ primary }) => {
          const wanted = labelled(primary, { by: "us" });
          return patchResource({ ...wanted, metadata: { ...wanted.metadata, resourceVersion: "1" } });
        },
        { serverSideApply },
      );
      const name = nameOf("locked");
      const { failure, wroteResource } = await dispatcher.run(await dispatcher.create(name));
      assert.match((failure?.error as Error).message, /409 Conflict/);
      assert.is(wroteResource, false);
    }));

  test("skip a primary that was recreated concurrently, without failing", () =>
    inBothWays(async ({ serverSideApply, nameOf }) => {
      for (const control of ["resource", "status", "both"] as const) {
        const name = nameOf(`anew-${control}`);
        const dispatcher: Dispatcher = await createWriting(
          async ({ primary }) => {
            await dispatcher.client.delete(Page, primary.metadata);
            await dispatcher.client.create(Page, { metadata: { name, namespace: "default" }, spec: { text: "new" } });
            const resource = labelOf(serverSideApply, primary);
            if (control === "resource") return patchResource(resource);
            return control === "status"
              ? updateStatus({ text: "old" })
              : patchResourceAndStatus(resource, { text: "old" });
          },
          { serverSideApply },
        );
        const { failure } = await dispatcher.run(await dispatcher.create(name));
        assert.is(failure, undefined);
        const page = await dispatcher.read(name);
        assert.is(page?.metadata.labels, undefined);
        // Applying a status does not look at the uid (1.36).
        if (control !== "status" || !serverSideApply) assert.is(page?.status, undefined);
      }
    }));

  test("fail the reconcile if the API server rejects the status, after the resource was written", () =>
    inBothWays(async ({ serverSideApply, nameOf }) => {
      const reconcile: Reconcile = ({ primary }) =>
        patchResourceAndStatus(labelOf(serverSideApply, primary), { text: 5 as unknown as string });
      const dispatcher = await createWriting(reconcile, { serverSideApply });
      const { failure, wroteResource, wroteStatus } = await dispatcher.run(await dispatcher.create(nameOf("refused")));
      assert.ok(failure !== undefined && !failure.isHandled);
      assert.equal([wroteResource, wroteStatus], [true, false]);
    }));

  test("reject another object in the returned control", () =>
    inBothWays(async ({ serverSideApply, nameOf }) => {
      const dispatcher = await createWriting(
        ({ primary }) => patchResource({ ...primary, metadata: { ...primary.metadata, name: "other" } }),
        { serverSideApply },
      );
      const name = nameOf("not-other");
      const { failure } = await dispatcher.run(await dispatcher.create(name));
      assert.match(
        (failure?.error as Error).message,
        `the reconciler of Page "default/${name}" returned another object to write, "default/other"; use context.resources for that`,
      );
      assert.equal(dispatcher.requests, []);
    }));

  test("send nothing after the reconcile is aborted", () =>
    inBothWays(async ({ serverSideApply, nameOf }) => {
      const abort = new AbortController();
      const dispatcher = await createWriting(
        () => {
          abort.abort(new Error("the operator stops"));
          return updateStatus({ text: "late" });
        },
        { serverSideApply },
      );
      const { failure } = await dispatcher.run(await dispatcher.create(nameOf("aborted")), { signal: abort.signal });
      assert.is((failure?.error as Error).message, "the operator stops");
      assert.equal(dispatcher.requests, []);
    }));

  test("remove fields that are no longer applied and keep foreign fields with server-side apply", async () => {
    let labels: { [key: string]: string } = { a: "1", b: "2" };
    const dispatcher = await createWriting(() => patchResource({ metadata: { labels } }));
    await dispatcher.create("intent", { metadata: { labels: { theirs: "yes" } } });
    await dispatcher.run(await dispatcher.observe("intent"));
    labels = { a: "1" };
    await dispatcher.run(await dispatcher.observe("intent"));
    assert.equal((await dispatcher.read("intent"))?.metadata.labels, { a: "1", theirs: "yes" });
    assert.is(dispatcher.requests.length, 2);
  });

  test("remove omitted fields with JSON patches", async () => {
    const dispatcher = await createWriting(({ primary }) => patchResource({ ...primary, spec: { text: "new" } }), {
      serverSideApply: false,
    });
    await dispatcher.run(await dispatcher.create("removes", { spec: { text: "first", more: "x" } }));
    assert.equal((await dispatcher.read("removes"))?.spec, { text: "new" });
  });

  test("reject a partial primary with JSON patches", async () => {
    const dispatcher = await createWriting(() => patchResource({ metadata: { labels: { a: "b" } } }), {
      serverSideApply: false,
    });
    const { failure } = await dispatcher.run(await dispatcher.create("part"));
    assert.is((failure?.error as Error).name, "TerminalError");
    assert.match((failure?.error as Error).message, "return { ...primary, … }");
    assert.equal(dispatcher.requests, []);
  });

  test("never lock the status with JSON patches, despite another resourceVersion", async () => {
    const dispatcher: Dispatcher = await createWriting(
      async ({ primary }) => {
        await dispatcher.edit(primary.metadata.name, { spec: { more: "theirs" } });
        return updateStatus({ text: "done" });
      },
      { serverSideApply: false },
    );
    const entry = await dispatcher.create("never-locks", { status: { text: "old", observedGeneration: 1 } });
    const { failure } = await dispatcher.run(entry);
    assert.is(failure, undefined);
    const page = await dispatcher.read("never-locks");
    assert.equal([page?.status, page?.spec.more], [{ text: "done" }, "theirs"]);
    const known = dispatcher.cache.get("default/never-locks")!.object.metadata.resourceVersion!;
    assert.ok(compareResourceVersions(known, entry.object.metadata.resourceVersion!) > 0, "the next read sees it");
  });
});
