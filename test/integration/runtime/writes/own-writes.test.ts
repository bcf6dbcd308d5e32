// What a reconcile writes through its context, in a running operator: how often it is reconciled because of that. JOSDK's integration tests
// of own writes; the names of the originals stand in brackets.
import type { ApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { updateStatus, type Reconciler } from "#runtime/reconcile/reconciler.js";
import type { Context } from "#runtime/workflow/context.js";
import { assert, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  createPage,
  createPageOperator,
  Page,
  setText,
  startPageServer,
  type PageOperator,
} from "../page-operator.js";

const ONE = { name: "one", namespace: "default" };

type Reconcile = Reconciler<Page, object, NonNullable<Page["status"]>>["reconcile"];

/** An operator whose reconciler is a function, which knows ConfigMaps. */
function startOperator(server: ApiServer, reconcile: Reconcile): PageOperator {
  return createPageOperator(server, {
    dependents: [],
    reconciler: { reconcile },
    defaultFilters: false,
    eventSources: () => [informerSource({ name: "config-maps", resource: ConfigMap })],
  });
}

/** Runs an operator on one page until nothing happens any more; returns how often it was reconciled. */
async function reconcilesOf(reconcile: Reconcile): Promise<number> {
  await using server = await startPageServer();
  await using page = startOperator(server, reconcile);
  await page.operator.start();
  await createPage(page);
  await waitFor("it is reconciled", () => page.events.length > 0);
  await page.quiet();
  assert.equal(
    page.events.flatMap(({ error }) => error ?? []),
    [],
  );
  return page.events.length;
}

const child = (primary: Page) => ({
  name: `${primary.metadata.name}-child`,
  namespace: "default",
  ownerReferences: [
    { apiVersion: "example.com/v1", kind: "Page", name: primary.metadata.name, uid: primary.metadata.uid! },
  ],
});

suite("own writes of the primary", (test) => {
  const writes: [string, (args: Parameters<Reconcile>[0]) => Promise<unknown>][] = [
    [
      "apply",
      ({ primary, context }) => context.resources.of(Page).apply({ metadata: ref(primary), spec: { more: "x" } }),
    ],
    [
      "update",
      ({ primary, context }) => context.resources.of(Page).update({ ...primary, spec: { ...primary.spec, more: "x" } }),
    ],
    [
      "jsonPatch",
      ({ primary, context }) => context.resources.of(Page).jsonPatch(primary, ({ spec }) => void (spec.more = "x")),
    ],
    [
      "mergePatch",
      ({ primary, context }) => context.resources.of(Page).mergePatch({ metadata: ref(primary), spec: { more: "x" } }),
    ],
    [
      "applyStatus",
      ({ primary, context }) =>
        context.resources.of(Page).applyStatus({ metadata: ref(primary), status: { text: "x" } }),
    ],
    [
      "updateStatus",
      ({ primary, context }) => context.resources.of(Page).updateStatus({ ...primary, status: { text: "x" } }),
    ],
    [
      "jsonPatchStatus",
      ({ primary, context }) =>
        context.resources.of(Page).jsonPatchStatus(primary, (draft) => void (draft.status = { text: "x" })),
    ],
    [
      "mergePatchStatus",
      ({ primary, context }) =>
        context.resources.of(Page).mergePatchStatus({ metadata: ref(primary), status: { text: "x" } }),
    ],
  ];
  for (const [name, write] of writes)
    test(`with ${name} trigger no reconcile (ResourceOperationsIT, FilterPatchEventIT)`, async () => {
      assert.is(await reconcilesOf(async (args) => void (await write(args))), 1);
    });

  test("in mode cacheOnly trigger one reconcile (FilterPatchEventIT)", async () => {
    const reconciles = await reconcilesOf(async ({ primary, context }) => {
      await context.resources
        .of(Page)
        .applyStatus({ metadata: ref(primary), status: { text: "x" } }, { mode: "cacheOnly" });
    });
    assert.is(reconciles, 2);
  });

  test("do not hide a concurrent change (ExternalUpdateDuringOwnUpdateIT, SpecChangeDuringStatusPatchIT)", async () => {
    for (const isNoop of [false, true]) {
      await using server = await startPageServer();
      const seen: string[] = [];
      await using page = startOperator(server, async ({ primary, context }) => {
        const { text } = primary.spec;
        seen.push(text);
        const slow = server.faults.add({ verb: "patch", path: "/pages/one/status", times: 1, delayMs: 250 });
        const mode = isNoop ? "forceFilter" : "matchAndFilter";
        const status = { text: isNoop ? "same" : text };
        const writing = context.resources.of(Page).mergePatchStatus({ metadata: ref(primary), status }, { mode });
        if (seen.length === 2) {
          await waitFor("the write is under way", () => slow.hits === 1);
          await setText(page, "third");
        }
        await writing;
        slow.remove();
      });
      await page.operator.start();
      await createPage(page);
      await waitFor("it is reconciled", () => page.events.length === 1);
      await page.quiet();
      await setText(page, "second");
      await waitFor("the change is seen", () => seen.includes("third"));
      await page.quiet();
      assert.equal(seen, ["first", "second", "third"]);
    }
  });

  test("do not prevent the cleanup after a concurrent deletion (DeletionDuringStatusUpdateIT)", async () => {
    await using server = await startPageServer();
    let cleanups = 0;
    await using page = createPageOperator(server, {
      dependents: [],
      reconciler: {
        reconcile: async ({ primary, context }: { primary: Page; context: Context<Page> }) => {
          const slow = server.faults.add({ verb: "patch", path: "/pages/one/status", times: 1, delayMs: 250 });
          const writing = context.resources
            .of(Page)
            .mergePatchStatus({ metadata: ref(primary), status: { text: "x" } });
          await waitFor("the write is under way", () => slow.hits === 1);
          await page.operator.client.delete(Page, ONE);
          await writing;
        },
        cleanup: () => void cleanups++,
      },
    });
    await page.operator.start();
    await createPage(page);
    await waitFor("it is gone", async () => (await page.operator.client.get(Page, ONE)) === undefined);
    assert.is(cleanups, 1);
  });

  test("of the status do not conflict with other changes (StatusUpdateLockingIT, StatusPatchNotLockingForNonSSAIT)", async () => {
    const reconciles = await reconcilesOf(async ({ primary, context }) => {
      const pages = context.resources.of(Page);
      if (primary.status !== undefined) return;
      const { object } = await pages.mergePatchStatus({
        metadata: ref(primary),
        status: { text: "x", observedGeneration: 1 },
      });
      // `primary` is what the reconcile began with, which is not the latest any more.
      await pages.mergePatchStatus({ metadata: ref(primary), status: { text: null } });
      const { object: last } = await pages.applyStatus({ metadata: primary.metadata, status: { text: "y" } });
      assert.equal(object.status, { text: "x", observedGeneration: 1 });
      assert.equal(last.status, { text: "y", observedGeneration: 1 });
    });
    assert.is(reconciles, 1);
  });

  test("of the status are visible to the next reconcile of 50 primaries (ReadOwnUpdatesIT, StatusPatchCacheIT)", async () => {
    await using server = await startPageServer();
    const counts = new Map<string, number>();
    const wrong: string[] = [];
    await using page = startOperator(server, async ({ primary, context }) => {
      const { name } = primary.metadata;
      const last = counts.get(name) ?? 0;
      const count = primary.status?.observedGeneration ?? 0;
      if (count !== last) wrong.push(`${name} reads ${count} after ${last}`);
      if (count === 4) return;
      counts.set(name, count + 1);
      await context.resources
        .of(Page)
        .applyStatus({ metadata: ref(primary), status: { observedGeneration: count + 1 } });
      return { rescheduleAfterMs: 0 };
    });
    await page.operator.start();
    const pages = Array.from({ length: 50 }, (_, index) => `page-${index}`);
    await Promise.all(pages.map((name) => createPage(page, name)));
    await waitFor("all have counted", () => pages.every((name) => counts.get(name) === 4), { timeoutMs: 15_000 });
    await page.quiet();
    assert.equal(wrong, []);
  });

  test("of a status with only an empty list are sent once", async () => {
    await using server = await startPageServer();
    await using page = startOperator(server, () => updateStatus({ conditions: [] }));
    await page.operator.start();
    await createPage(page);
    await page.quiet();
    await setText(page, "second");
    await page.quiet();
    const writes = page.requests.filter((request) => request.includes("/status"));
    assert.equal(writes, ["PATCH /apis/example.com/v1/namespaces/default/pages/one/status 200"]);
  });

  test("with applyStatus keep fields of an earlier updateStatus (StatusPatchSSAMigrationIT)", async () => {
    await reconcilesOf(async ({ primary, context }) => {
      const pages = context.resources.of(Page);
      if (primary.status !== undefined) return;
      const { object } = await pages.updateStatus({ ...primary, status: { text: "x", observedGeneration: 1 } });
      const applied = await pages.applyStatus({ metadata: ref(object), status: { text: "y" } });
      assert.equal(applied.object.status, { text: "y", observedGeneration: 1 });
    });
  });
});

suite("own writes of secondaries", (test) => {
  test("with any verb trigger no reconcile (SecondaryResourceOperationsIT, OwnSecondaryUpdateIT)", async () => {
    const reconciles = await reconcilesOf(async ({ primary, context }) => {
      const configMaps = context.resources.of(ConfigMap);
      const metadata = child(primary);
      if (context.secondary(ConfigMap) === undefined) await configMaps.create({ metadata, data: { a: "1" } });
      for (const b of ["1", "2", "3"]) await configMaps.apply({ metadata, data: { b } });
      const { object } = await configMaps.mergePatch({ metadata: ref({ metadata }), data: { c: "1" } });
      const { object: patched } = await configMaps.jsonPatch(object, ({ data }) => void (data!["d"] = "1"));
      await configMaps.update({ ...patched, data: { ...patched.data, e: "1" } });
      assert.equal(context.secondary(ConfigMap)?.data, { a: "1", b: "3", c: "1", d: "1", e: "1" });
    });
    assert.is(reconciles, 1);
  });

  test("do not hide a concurrent change (ExternalSecondaryUpdateIT)", async () => {
    await using server = await startPageServer();
    await using page = startOperator(server, async ({ primary, context }) => {
      const slow = server.faults.add({ verb: "patch", path: "/configmaps/one-child", times: 1, delayMs: 250 });
      const isFirst = context.secondary(ConfigMap) === undefined;
      if (isFirst) await page.operator.client.create(ConfigMap, { metadata: child(primary) });
      const writing = context.resources.of(ConfigMap).apply({ metadata: child(primary), data: { text: "x" } });
      if (isFirst) {
        await waitFor("the write is under way", () => slow.hits === 1);
        await page.operator.client.mergePatch(ConfigMap, child(primary), { metadata: { labels: { theirs: "x" } } });
      }
      await writing;
      slow.remove();
    });
    await page.operator.start();
    await createPage(page);
    await waitFor("it is reconciled again", () => page.events.length > 1);
    await page.quiet();
    assert.ok(page.events.length <= 4, `${page.events.length} reconciles`);
  });

  test("together with updateStatus trigger no reconcile", async () => {
    const reconciles = await reconcilesOf(async ({ primary, context }) => {
      await context.resources.of(ConfigMap).apply({ metadata: child(primary), data: { text: "x" } });
      return updateStatus({ text: primary.spec.text });
    });
    assert.is(reconciles, 1);
  });
});

function ref({ metadata: { name, namespace } }: { metadata: { name: string; namespace?: string | undefined } }): {
  name: string;
  namespace: string;
} {
  return { name, namespace: namespace ?? "default" };
}
