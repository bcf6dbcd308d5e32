// Primaries that somebody has paused by an annotation.
import { waitFor } from "#apiserver/wait-for.js";
import { PAUSED } from "#runtime/base/primary-link.js";
import { type KubernetesObject, builtinKindOf } from "#runtime/base/kubernetes-object.js";
import { assert, suite } from "../../../support/suite.js";
import {
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  type PageOperator,
  setText,
  startPageOperator,
  startPageServer,
  textOf,
  untilText,
} from "../page-operator.js";

const ref = { name: "one", namespace: "default" };
const event = { definition: builtinKindOf<KubernetesObject & { reason: string }>({ kind: "Event", plural: "events" }) };

const setPaused = ({ operator }: PageOperator, value: string | null) =>
  operator.client.mergePatch(Page, ref, { metadata: { annotations: { [PAUSED]: value } } });
const writesOf = ({ requests }: PageOperator) =>
  requests.filter((line) => !line.startsWith("GET") && !line.includes("/pages/one 200") && !line.includes("/events"));

suite("paused primary", (test) => {
  test("is not reconciled until it is resumed", async () => {
    await using page = await startPageOperator();
    await createPage(page);
    await untilText(page, "first");
    await page.quiet();
    await setPaused(page, "true");
    await page.quiet();
    const before = writesOf(page).length;
    await setText(page, "second");
    await page.operator.client.delete(
      { definition: builtinKindOf({ kind: "ConfigMap", plural: "configmaps" }) },
      { ...ref, name: "one-text" },
    );
    await page.quiet();
    assert.equal(
      writesOf(page)
        .slice(before)
        .filter((line) => !line.startsWith("DELETE")),
      [],
    );
    assert.is(await textOf(page), undefined);
    const events = await page.operator.client.list(event, { namespace: "default" });
    assert.equal(
      events.map(({ reason }) => reason),
      ["Paused"],
    );
    await setPaused(page, "false");
    await untilText(page, "second");
  });

  test("keeps its finalizer and dependents while it is being deleted", async () => {
    await using page = await startPageOperator({ dependents: [configMapOf("text", { deletion: "ordered" })] });
    await createPage(page);
    await untilText(page, "first");
    await setPaused(page, "true");
    await page.operator.client.delete(Page, ref);
    await page.quiet();
    assert.is((await page.operator.client.get(Page, ref))?.metadata.finalizers?.length, 1);
    assert.is(await textOf(page), "first");
    await setPaused(page, null);
    await waitFor("it is gone", async () => (await page.operator.client.get(Page, ref)) === undefined);
    assert.is(await textOf(page), undefined);
  });

  test("has the condition Paused beside Ready until it is resumed", async () => {
    await using page = await startPageOperator({ statusConditions: "managed", reconciler: { reconcile: () => {} } });
    await createPage(page);
    const conditions = async () =>
      Object.fromEntries(
        ((await page.operator.client.get(Page, ref))?.status?.conditions ?? []).map(({ type, status }) => [
          type,
          status,
        ]),
      );
    await waitFor("it is ready", async () => (await conditions())["Ready"] === "True");
    await setPaused(page, "true");
    await waitFor("it says so", async () => (await conditions())["Paused"] === "True");
    assert.equal(await conditions(), { Ready: "True", Paused: "True" });
    await page.quiet();
    await setPaused(page, null);
    await waitFor("it goes on", async () => (await conditions())["Paused"] === undefined);
    assert.equal(await conditions(), { Ready: "True" });
  });

  test("aborts the running reconcile", async () => {
    await using server = await startPageServer();
    const reasons: string[] = [];
    const reconcile = ({ context }: { context: { signal: AbortSignal } }) =>
      new Promise<void>((resolve) =>
        context.signal.addEventListener("abort", () => {
          reasons.push((context.signal.reason as Error).message);
          resolve();
        }),
      );
    await using page = createPageOperator(server, { reconciler: { reconcile } });
    await page.operator.start();
    await createPage(page);
    await waitFor("it reconciles", () => page.operator.controller("page").counts().running === 1);
    await setPaused(page, "true");
    await waitFor("it has ended", () => reasons.length === 1);
    assert.equal(reasons, ["the primary is paused"]);
    await page.quiet();
    assert.is(page.operator.controller("page").counts().running, 0);
    assert.is(page.operator.controller("page").paused, 1);
  });
});
