// What a reconcile expects of its primary, and what causes the next one.
import { waitFor } from "#apiserver/wait-for.js";
import type { Context, ExpectationResult } from "#runtime/workflow/context.js";
import { assert, suite } from "../../../support/suite.js";
import { ConfigMap, createPage, createPageOperator, Page, startPageServer } from "../page-operator.js";

type Args = { readonly primary: Page; readonly context: Context<Page> };

suite("expectations", (test) => {
  // JOSDK ExpectationIT: the timeout comes first, the state later.
  test("trigger a reconcile at their timeout, and are fulfilled by a later change", async () => {
    await using server = await startPageServer();
    const results: (ExpectationResult | undefined)[] = [];
    const reconciler = {
      async reconcile({ context }: Args) {
        if (results.length === 0)
          await context.expectations.expectUnlessFulfilled({
            name: "labelled",
            timeoutMs: 50,
            isFulfilled: ({ context }) => context.secondary(ConfigMap)?.metadata.labels?.["done"] === "yes",
          });
        results.push(await context.expectations.check());
      },
    };
    await using page = createPageOperator(server, { reconciler });
    await page.operator.start();
    await createPage(page);
    await waitFor("it timed out", () => results.at(-1)?.status === "timedOut");
    await page.quiet();
    assert.equal(page.events.at(-1)?.reasons, [
      { kind: "secondary", source: "expectations", isInitial: false, isTimer: true },
    ]);
    await page.operator.client.mergePatch(
      ConfigMap,
      { name: "one-text", namespace: "default" },
      { metadata: { labels: { done: "yes" } } },
    );
    await waitFor("it is fulfilled", () => results.at(-1)?.status === "fulfilled");
    await page.quiet();
    assert.equal(
      results.map((result) => result?.status),
      ["notYetFulfilled", "timedOut", "fulfilled"],
    );
  });

  // JOSDK PeriodicCleanerExpectationIT.
  test("are dropped with their primary", async () => {
    await using server = await startPageServer();
    const current: (string | undefined)[] = [];
    const reconciler = {
      reconcile({ primary, context }: Args) {
        current.push(context.expectations.current);
        if (primary.spec.text === "first")
          context.expectations.expect({ name: "never", timeoutMs: 60_000, isFulfilled: () => false });
      },
    };
    await using page = createPageOperator(server, { reconciler, dependents: [] });
    await page.operator.start();
    await createPage(page);
    await waitFor("it is reconciled", () => current.length === 1);
    await page.operator.client.delete(Page, { name: "one", namespace: "default" });
    await createPage(page);
    await waitFor("the new one is reconciled", () => current.length === 2);
    assert.equal(current, [undefined, undefined]);
  });

  test("set for a deleted primary do not apply to its successor", async () => {
    await using server = await startPageServer();
    const current: (string | undefined)[] = [];
    const reconciler = {
      async reconcile({ context }: Args) {
        current.push(context.expectations.current);
        if (current.length > 1) return;
        await page.operator.client.delete(Page, { name: "one", namespace: "default" });
        const { metadata } = await createPage(page);
        const isSeen = () => context.primaries.get("default/one")?.metadata.uid === metadata.uid;
        await waitFor("the new one is known", isSeen);
        context.expectations.expect({ name: "never", timeoutMs: 60_000, isFulfilled: () => false });
      },
    };
    await using page = createPageOperator(server, { reconciler, dependents: [] });
    await page.operator.start();
    await createPage(page);
    await waitFor("the new one is reconciled", () => current.length === 2);
    assert.equal(current, [undefined, undefined]);
  });
});
