// What an operator makes of requests that fail, and of answers that are lost or late.
import { sleep } from "#runtime/base/clock.js";
import { waitFor } from "#runtime/base/wait-for.js";
import { assert, suite } from "../../support/suite.js";
import {
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  setText,
  startPageServer,
  textReconciler,
  untilQuiet,
  untilText,
} from "./page-operator.js";

const ONE = { name: "one", namespace: "default" };
const CHILD = "/configmaps/one-text";

suite("operator with failing requests", (test) => {
  test("429 is tried again after the time that the server asks for, within the same reconcile", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server);
    await page.operator.start();
    const busy = { status: 429, reason: "TooManyRequests", retryAfterSeconds: 1 };
    server.faults.add({ verb: "patch", path: CHILD, times: 1, answer: busy });
    const startedAt = Date.now();
    await createPage(page);
    await untilText(page, "first");
    assert.ok(Date.now() - startedAt >= 1_000);
    await waitFor("the reconcile ends", () => page.events[0]);
    assert.is(page.events[0]?.error, undefined);
  });

  test("429 that may be tried again after no time at all waits longer each time", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server);
    await page.operator.start();
    const busy = { status: 429, reason: "TooManyRequests", retryAfterSeconds: 0 };
    server.faults.add({ verb: "patch", path: CHILD, times: 3, answer: busy });
    const startedAt = Date.now();
    await createPage(page);
    await untilText(page, "first");
    assert.ok(Date.now() - startedAt >= 100 + 200 + 400, "the waits of the backoff");
  });

  for (const status of [502, 503, 504])
    test(`${status} is tried again at once`, async () => {
      await using server = await startPageServer();
      await using page = createPageOperator(server);
      await page.operator.start();
      const fault = server.faults.add({ verb: "patch", path: CHILD, times: 2, answer: { status } });
      await createPage(page);
      await untilText(page, "first");
      assert.is(fault.hits, 2);
      await waitFor("the reconcile ends", () => page.events[0]);
      assert.is(page.events[0]?.error, undefined);
    });

  for (const { status, reason } of [
    { status: 500, reason: "InternalError" },
    { status: 409, reason: "Conflict" },
  ])
    test(`${status} fails the reconcile, which is tried again`, async () => {
      await using server = await startPageServer();
      await using page = createPageOperator(server);
      await page.operator.start();
      await createPage(page);
      await untilText(page, "first");
      await untilQuiet(page);
      const answer = { status, reason, message: "not now" };
      server.faults.add({ verb: "patch", path: CHILD, times: 1, answer });
      await setText(page, "second");
      await untilText(page, "second");
      const failed = page.events.find(({ error }) => error !== undefined);
      const [error] = [...failed!.workflow!.errors.values()] as Error[];
      assert.is(
        error!.message,
        `dependent "text": apply of ConfigMap "default/one-text" failed: ${status} ${reason}: not now`,
      );
      assert.is(failed?.retryAfterMs, 100);
    });

  test("a connection that breaks is used no more, and the request is repeated", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server);
    await page.operator.start();
    server.faults.add({ verb: "patch", path: CHILD, times: 2, disconnect: true });
    await createPage(page);
    await untilText(page, "first");
    await waitFor("the reconcile ends", () => page.events[0]);
    assert.is(page.events[0]?.error, undefined);
  });

  test("a creation of which the answer is lost ends well", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server);
    await page.operator.start();
    server.faults.add({ verb: "patch", path: CHILD, times: 1, loseAnswer: true });
    await createPage(page);
    await waitFor("the page is as it should be", () => page.events.at(-1)?.workflow?.isReady === true);
    await untilText(page, "first");
  });

  test("an update of which the answer is lost ends well", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server);
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    server.faults.add({ verb: "patch", path: CHILD, times: 1, loseAnswer: true });
    await setText(page, "second");
    await waitFor("the status follows", async () => {
      return (await page.operator.client.get(Page, ONE))?.status?.text === "second";
    });
    assert.ok(page.events.every(({ error }) => error === undefined));
  });

  test("a change of the spec that an answer brings ahead of its event is reconciled", async () => {
    await using server = await startPageServer();
    let release = () => {};
    let calls = 0;
    const reconciler = {
      ...textReconciler,
      reconcile: async (args: Parameters<typeof textReconciler.reconcile>[0]) => {
        if (++calls === 1) await new Promise<void>((resolve) => (release = resolve));
        return textReconciler.reconcile(args);
      },
    };
    await using page = createPageOperator(server, { reconciler, dependents: [] });
    await page.operator.start();
    await createPage(page);
    await waitFor("the reconciler is called", () => calls === 1);
    // The watch is late: the answer to the status is the first that the operator sees of the new spec.
    const late = server.faults.add({ verb: "watch", path: "/pages", disconnect: true });
    server.faults.cutWatches({ path: "/pages" });
    await setText(page, "second");
    release();
    await waitFor("the first reconcile ends", () => page.events.length === 1);
    assert.is((await page.operator.client.get(Page, ONE))?.status?.text, "first");
    late.remove();
    await waitFor("the status follows", async () => {
      return (await page.operator.client.get(Page, ONE))?.status?.text === "second";
    });
    await untilQuiet(page);
    assert.is(page.events.length, 2);
  });

  test("changes during a reconcile, however many, make one more", async () => {
    await using server = await startPageServer();
    let release = () => {};
    let calls = 0;
    const slow = configMapOf("text", {
      desired: async ({ primary }) => {
        if (++calls === 1) await new Promise<void>((resolve) => (release = resolve));
        return { metadata: { name: "one-text" }, data: { text: primary.spec.text } };
      },
    });
    await using page = createPageOperator(server, { dependents: [slow] });
    await page.operator.start();
    await createPage(page);
    await waitFor("desired is called", () => calls === 1);
    for (const text of ["a", "b", "c", "last"]) await setText(page, text);
    await sleep(100);
    release();
    await untilText(page, "last");
    await untilQuiet(page);
    assert.is(calls, 2);
  });

  test("a reconcile that keeps failing is given up after its attempts, and taken up by the next change", async () => {
    await using server = await startPageServer();
    let fails = true;
    const reconciler = {
      reconcile: () => {
        if (fails) throw new Error("no idea");
      },
    };
    const retry = { maxAttempts: 2, initialIntervalMs: 10 };
    await using page = createPageOperator(server, { reconciler, retry });
    await page.operator.start();
    await createPage(page);
    await waitFor("it is given up", () => page.logs.some((line) => line.startsWith("error reconcile failed")));
    await untilQuiet(page);
    assert.equal(
      page.events.map(({ retryAfterMs }) => retryAfterMs),
      [10, 10, undefined],
    );
    fails = false;
    await setText(page, "second");
    await waitFor("it succeeds", () => page.events.at(-1)?.error === undefined);
  });

  test("the rate of reconciles is limited, and nothing is lost", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server, { rateLimit: { maxReconciliations: 2, withinMs: 600 } });
    await page.operator.start();
    await createPage(page);
    const startedAt = Date.now();
    for (let index = 0; index < 8; index++) {
      await setText(page, `text ${index}`);
      await sleep(20);
    }
    await untilText(page, "text 7");
    const elapsedMs = Date.now() - startedAt;
    assert.ok(elapsedMs >= 400, "the last change waited for the next window");
    // The first window may have begun before, and a busy machine may need more of them.
    const windows = Math.floor(elapsedMs / 600) + 2;
    assert.ok(page.events.length <= 2 * windows, `${page.events.length} reconciles in ${windows} windows`);
  });
});
