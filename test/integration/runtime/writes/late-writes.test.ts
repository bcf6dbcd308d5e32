// Writes that are given up: they are cancelled, and what they do all the same is put right.
import type { ApiServer } from "#apiserver/index.js";
import { keyOf } from "#runtime/base/kubernetes-object.js";
import { sleep } from "#runtime/base/wait.js";
import { waitFor } from "#apiserver/wait-for.js";
import { updateStatus } from "#runtime/reconcile/reconciler.js";
import type { ExternalDependent } from "#runtime/workflow/workflow-definition.js";
import { ConfigMap } from "#kinds/core/v1.js";
import { assert, suite } from "../../../support/suite.js";
import { openWatch } from "../../../support/api/watch-client.js";
import {
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  setText,
  startPageServer,
  textOf,
  untilText,
  type DataObject,
  type PageOperator,
  type PageOperatorOptions,
} from "../page-operator.js";

/** Every text that the ConfigMap of page "one" had, in order. */
async function recordTexts({ url, token }: ApiServer): Promise<AsyncDisposable & { readonly texts: string[] }> {
  const watch = await openWatch({ url, token }, "/api/v1/namespaces/default/configmaps?watch=true");
  const texts: string[] = [];
  const read = async () => {
    for (let event = await watch.next(); event !== undefined; event = await watch.next())
      texts.push((event.object as unknown as DataObject).data?.["text"] ?? "none");
  };
  const ended = read().catch(() => undefined);
  return {
    texts,
    [Symbol.asyncDispose]: async () => {
      watch[Symbol.dispose]();
      await ended;
    },
  };
}

const LATE_MS = 1_500;
const RETRY = { initialIntervalMs: 50, maxIntervalMs: 100, maxRetries: -1 };

suite("aborted write", (test) => {
  const cases: [string, PageOperatorOptions][] = [
    ["by server-side apply", { dependents: [configMapOf("text", { timeoutMs: 300 })] }],
    ["by PUT", { dependents: [configMapOf("text", { timeoutMs: 300, serverSideApply: false })] }],
  ];
  for (const [title, options] of cases)
    test(`${title} is overwritten if it lands after a newer write`, async () => {
      await using server = await startPageServer();
      await using recorded = await recordTexts(server);
      await using page = createPageOperator(server, { retry: RETRY, ...options });
      await page.operator.start();
      await createPage(page);
      await untilText(page, "first");
      const held = server.faults.add({ verb: ["patch", "update"], path: "/configmaps/", times: 1, delayMs: LATE_MS });
      await setText(page, "second");
      await waitFor("the write is held", () => held.hits === 1);
      await waitFor("its step ran out of time", () =>
        page.events.some(({ error }) => String(error).includes("longer than the 300 ms")),
      );
      assert.match(page.requests.join("\n"), /\/configmaps\/one-text undefined$/m, "its request was broken off");
      await setText(page, "third");
      await untilText(page, "third");
      await sleep(LATE_MS);
      await waitFor("the newest text is there to stay", async () => (await textOf(page)) === "third");
      assert.is(recorded.texts.at(-1), "third", recorded.texts.join(", "));
    });

  test("of a status is canceled when the operator stops", async () => {
    await using server = await startPageServer();
    const reconciler = { reconcile: () => updateStatus({ text: "late" }) };
    await using page = createPageOperator(server, { dependents: [], reconciler, operator: { stopTimeoutMs: 200 } });
    await page.operator.start();
    const held = server.faults.add({ verb: "patch", path: "/status", hang: true });
    await createPage(page);
    await waitFor("the write is held", () => held.hits === 1);
    assert.is(await page.operator.stop(), false);
    await waitFor("the reconcile ended with its write", () => page.events.length === 1);
    assert.ok(page.events[0]?.error !== undefined);
  });

  test("prevents another reconcile of its primary while create() is still running", async () => {
    await using server = await startPageServer();
    const created: string[] = [];
    let underWay = 0;
    let most = 0;
    const create = async ({ id }: { id: string }) => {
      most = Math.max(most, ++underWay);
      // It does not look at its signal.
      await sleep(600);
      underWay--;
      created.push(id);
      return { id };
    };
    const account: ExternalDependent = {
      name: "account",
      dependsOn: [],
      timeoutMs: 100,
      desired: ({ primary }: { primary: Page }) => ({ id: keyOf(primary.metadata) }),
      source: { kind: "perPrimaryPoll", intervalMs: 60_000, fetch: () => created.map((id) => ({ id })) },
      idOf: ({ id }: { id: string }) => id,
      create,
    };
    await using page = createPageOperator(server, { dependents: [account], retry: RETRY });
    await page.operator.start();
    await createPage(page);
    await waitFor("a reconcile without an error", () => page.events.some(({ error }) => error === undefined), {
      timeoutMs: 15_000,
    });
    assert.is(most, 1);
    assert.equal(created, ["default/one"]);
  });
});

suite("creation that lands during deletion", (test) => {
  const untilGone = ({ operator }: PageOperator) =>
    waitFor(
      "the page is gone",
      async () => (await operator.client.get(Page, { name: "one", namespace: "default" })) === undefined,
    );

  const ways: [string, Parameters<typeof configMapOf>[1]][] = [
    ["by apply, aborted with its step", { timeoutMs: 300 }],
    ["by POST, aborted with its reconcile", { serverSideApply: false }],
  ];
  for (const [way, rest] of ways)
    test(`is deleted before the finalizer is removed: ${way}`, async () => {
      await using server = await startPageServer();
      const dependents = [configMapOf("text", { deletion: "ordered", ...rest })];
      await using page = createPageOperator(server, { retry: RETRY, dependents });
      await page.operator.start();
      await using recorded = await recordTexts(server);
      const rule = { verb: ["patch", "create"], path: "/configmaps", times: 1, delayMs: LATE_MS };
      const held = server.faults.add(rule);
      await createPage(page);
      await waitFor("the creation is held", () => held.hits === 1);
      await page.operator.client.delete(Page, { name: "one", namespace: "default" });
      await untilGone(page);
      assert.equal(recorded.texts, ["first", "first"], "it landed, and was deleted");
      assert.is(await textOf(page), undefined);
    });

  test("is deleted before the finalizer is removed, after a foreign object used its name", async () => {
    await using server = await startPageServer();
    const dependents = [configMapOf("text", { deletion: "ordered", timeoutMs: 300 })];
    await using page = createPageOperator(server, { retry: RETRY, dependents });
    const { client } = await page.operator.start();
    await using recorded = await recordTexts(server);
    const held = server.faults.add({ verb: "patch", path: "/configmaps", times: 1, delayMs: LATE_MS });
    await createPage(page);
    await waitFor("the creation is held", () => held.hits === 1);
    const name = { name: "one-text", namespace: "default" };
    await client.create(ConfigMap, { metadata: name, data: { text: "theirs" } } as never);
    const lookedFor = () => page.requests.some((line) => /^GET .*\/configmaps\/one-text 200$/.test(line));
    await waitFor("the creation is given up, and looked for", lookedFor);
    await client.delete(ConfigMap, name);
    await client.delete(Page, { name: "one", namespace: "default" });
    await untilGone(page);
    await waitFor("the creation has landed", () => recorded.texts.includes("first"));
    await waitFor("it was deleted", async () => (await textOf(page)) === undefined);
  });

  test("does not delay a primary whose dependents are garbage-collected", async () => {
    await using server = await startPageServer();
    const reconciler = { reconcile() {}, cleanup() {} };
    await using page = createPageOperator(server, { retry: RETRY, reconciler });
    await page.operator.start();
    const held = server.faults.add({ verb: "patch", path: "/configmaps", times: 1, delayMs: LATE_MS });
    await createPage(page);
    await waitFor("the creation is held", () => held.hits === 1);
    await page.operator.client.delete(Page, { name: "one", namespace: "default" });
    await untilGone(page);
    assert.ok(!page.logs.some((line) => line.includes("delaying finalizer removal")));
  });
});

suite("creation with a lost response", (test) => {
  for (const serverSideApply of [true, false])
    test(`is deleted with its primary, although no watch event arrived: ${serverSideApply ? "apply" : "POST"}`, async () => {
      await using server = await startPageServer();
      const dependents = [configMapOf("text", { deletion: "ordered", serverSideApply })];
      await using page = createPageOperator(server, { dependents, retry: { ...RETRY, initialIntervalMs: 5_000 } });
      await page.operator.start();
      using _held = server.faults.holdWatches({ path: "/configmaps" });
      const lost = server.faults.add({ verb: ["patch", "create"], path: "/configmaps", times: 1, loseAnswer: true });
      await createPage(page);
      await waitFor("the reconcile fails", () => lost.hits === 1 && page.events.length > 0);
      assert.is(await textOf(page), "first");
      await page.operator.client.delete(Page, { name: "one", namespace: "default" });
      const gone = async () =>
        (await page.operator.client.get(Page, { name: "one", namespace: "default" })) === undefined;
      await waitFor("the page is gone", gone);
      assert.is(await textOf(page), undefined);
    });
});
