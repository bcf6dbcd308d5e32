// What an operator makes of requests that fail, and of answers that are lost or late.
import { sleep } from "#runtime/base/wait.js";
import { ApiError } from "#runtime/base/errors.js";
import { waitFor } from "#apiserver/wait-for.js";
import { failuresOf } from "../../../support/runtime/recorded-operator.js";
import { errorOf } from "../../../support/runtime/failures.js";
import { assert, suite } from "../../../support/suite.js";
import { createClient } from "../watches/own-client.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  setText,
  startPageOperator,
  startPageServer,
  textReconciler,
  untilText,
} from "../page-operator.js";

const ONE = { name: "one", namespace: "default" };
const CHILD = "/configmaps/one-text";

suite("failing requests", (test) => {
  test("are retried after the Retry-After of 429 within the same reconcile", async () => {
    await using page = await startPageOperator();
    const busy = { status: 429, reason: "TooManyRequests", retryAfterSeconds: 1 };
    page.server.faults.add({ verb: "patch", path: CHILD, times: 1, answer: busy });
    const startedAt = Date.now();
    await createPage(page);
    await untilText(page, "first");
    assert.ok(Date.now() - startedAt >= 950);
    await waitFor("the reconcile ends", () => page.events[0]);
    assert.is(page.events[0]?.error, undefined);
  });

  test("are retried with backoff after 429 with Retry-After: 0", async () => {
    await using page = await startPageOperator();
    const busy = { status: 429, reason: "TooManyRequests", retryAfterSeconds: 0 };
    page.server.faults.add({ verb: "patch", path: CHILD, times: 3, answer: busy });
    const startedAt = Date.now();
    await createPage(page);
    await untilText(page, "first");
    assert.ok(Date.now() - startedAt >= 650, "the waits of the backoff");
  });

  for (const status of [502, 503, 504])
    test(`are retried within the same reconcile after ${status}`, async () => {
      await using page = await startPageOperator();
      const fault = page.server.faults.add({ verb: "patch", path: CHILD, times: 2, answer: { status } });
      await createPage(page);
      await untilText(page, "first");
      assert.is(fault.hits, 2);
      await waitFor("the reconcile ends", () => page.events[0]);
      assert.is(page.events[0]?.error, undefined);
      await page.quiet();
      assert.is(page.events.length, 1);
      assert.equal(
        page.requests.flatMap((each) => (each.includes(CHILD) && each.startsWith("PATCH") ? each.slice(-3) : [])),
        [String(status), String(status), "201"],
      );
    });

  for (const { status, reason } of [
    { status: 500, reason: "InternalError" },
    { status: 409, reason: "Conflict" },
    { status: 302, reason: "Found" },
  ])
    test(`fail the reconcile with ${status}, and its retry succeeds`, async () => {
      await using page = await startPageOperator();
      await createPage(page);
      await untilText(page, "first");
      await page.quiet();
      const answer = { status, reason, message: "not now" };
      page.server.faults.add({ verb: "patch", path: CHILD, times: 1, answer });
      await setText(page, "second");
      await untilText(page, "second");
      const failed = page.events.find(({ error }) => error !== undefined);
      const [error] = [...failed!.workflow!.errors.values()] as Error[];
      assert.is(
        error!.message,
        `dependent "text": apply of ConfigMap "default/one-text" failed: ${status} ${reason}: not now`,
      );
      assert.ok(failed!.retryAfterMs! >= 100 && failed!.retryAfterMs! <= 120);
    });

  test("are retried on another connection after a disconnect", async () => {
    await using page = await startPageOperator();
    page.server.faults.add({ verb: "patch", path: CHILD, times: 2, disconnect: true });
    await createPage(page);
    await untilText(page, "first");
    await waitFor("the reconcile ends", () => page.events[0]);
    assert.is(page.events[0]?.error, undefined);
  });

  test("recover if the response to a creation is lost", async () => {
    await using page = await startPageOperator();
    page.server.faults.add({ verb: "patch", path: CHILD, times: 1, loseAnswer: true });
    await createPage(page);
    await waitFor("the page is as it should be", () => page.events.at(-1)?.workflow?.isReady === true);
    await untilText(page, "first");
  });

  test("recover if the response to an update is lost", async () => {
    await using page = await startPageOperator();
    await createPage(page);
    await untilText(page, "first");
    page.server.faults.add({ verb: "patch", path: CHILD, times: 1, loseAnswer: true });
    await setText(page, "second");
    await waitFor("the status follows", async () => {
      return (await page.operator.client.get(Page, ONE))?.status?.text === "second";
    });
    assert.equal(failuresOf(page.events), []);
  });

  test("do not hide a spec change that a write response contains before its watch event", async () => {
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
    await page.quiet();
    assert.is(page.events.length, 2);
  });

  test("coalesce 4 changes during a reconcile into one more reconcile", async () => {
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
    await page.quiet();
    assert.is(calls, 2);
  });

  test("exhaust the retries, which health reports, until the next change", async () => {
    await using server = await startPageServer();
    let fails = true;
    const reconciler = {
      reconcile: () => {
        if (fails) throw new Error("no idea");
      },
    };
    const retry = { maxRetries: 2, initialIntervalMs: 10 };
    await using page = createPageOperator(server, { reconciler, retry });
    await page.operator.start();
    await createPage(page);
    await waitFor("it is given up", () => page.logs.some((line) => line.startsWith("error reconcile failed")));
    await page.quiet();
    assert.equal(
      page.events.map(({ retryAfterMs, isGivenUp }) => [Math.floor(Math.log10(retryAfterMs!)), isGivenUp]),
      [
        [1, undefined],
        [1, undefined],
        [4, true],
      ],
      "10 ms twice, and then a minute",
    );
    const { status, controllers } = page.operator.health();
    const { count, primaries } = controllers["page"]!.givenUp;
    assert.equal([status, count], ["healthy", 1]);
    assert.equal(primaries, [{ primary: "default/one", failures: 3, error: "no idea" }]);
    fails = false;
    await setText(page, "second");
    await waitFor("it succeeds", () => page.events.at(-1)?.error === undefined);
    assert.is(page.operator.health().controllers["page"]?.givenUp.count, 0);
  });

  test("respect the rate limit without losing the last change", async () => {
    await using page = await startPageOperator({ rateLimit: { maxReconciliations: 2, withinMs: 600 } });
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

suite("Retry-After", (test) => {
  test("fails the request at once if it exceeds 1 minute, and is capped at 5 minutes", async () => {
    await using server = await startPageServer();
    await using client = createClient(server);
    const answer = { status: 429, reason: "TooManyRequests", retryAfterSeconds: 3_600 };
    const fault = server.faults.add({ path: "/pages", answer });
    const error = await errorOf(client.get(Page, ONE));
    assert.is(fault.hits, 1);
    assert.instance(error, ApiError);
    assert.is((error as ApiError).retryAfterMs, 300_000);
  });

  test("of an hour does not block other primaries", async () => {
    await using page = await startPageOperator({ maxConcurrentReconciles: 1 });
    const answer = { status: 429, reason: "TooManyRequests", retryAfterSeconds: 3_600 };
    page.server.faults.add({ verb: "patch", path: "/configmaps/one-", answer });
    await createPage(page, "one");
    await waitFor("it fails", () => page.events.some(({ error, workflow }) => error ?? workflow?.errors.size));
    await createPage(page, "two");
    await untilText(page, "first", "two-text");
  });

  test("does not keep connections that other requests need", async () => {
    await using server = await startPageServer();
    await using client = createClient(server);
    const answer = { status: 429, reason: "TooManyRequests", retryAfterSeconds: 3 };
    const fault = server.faults.add({ path: "/pages", times: 40, answer });
    let ended = 0;
    const waiting = Array.from({ length: 40 }, () => client.get(Page, ONE).then(() => ended++));
    await waitFor("all of them wait", () => fault.hits === 40);
    assert.is(await client.get(ConfigMap, ONE), undefined);
    assert.is(ended, 0);
    await Promise.all(waiting);
  });

  test("of 6 s is logged once with request and reason", async () => {
    await using server = await startPageServer();
    const lines: string[] = [];
    const warn = (_: object, message: string) => void lines.push(message);
    const logger = { debug() {}, info() {}, warn, error() {} };
    await using client = createClient(server, { logger });
    const answer = { status: 429, reason: "TooManyRequests", message: "too busy", retryAfterSeconds: 6 };
    server.faults.add({ path: "/pages", times: 1, answer });
    const ended = client.get(Page, ONE);
    await waitFor("it is said", () => lines.length > 0);
    const path = "/apis/example.com/v1/namespaces/default/pages/one";
    assert.equal(lines, [`GET ${path} waits 6 s: 429 TooManyRequests: too busy`]);
    assert.is(await ended, undefined);
  });

  test("is respected within one reconcile while the storage of a kind initializes", async () => {
    await using server = await startPageServer();
    const message = "storage is (re)initializing";
    const answer = { status: 429, reason: "TooManyRequests", message, retryAfterSeconds: 1 };
    const fault = server.faults.add({ verb: "watch", path: "/configmaps", times: 2, answer });
    // Its watch begins with the first primary, as that of a kind that has just appeared.
    const dependents = [configMapOf("text", { activationCondition: () => true })];
    await using page = createPageOperator(server, { dependents });
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    await waitFor("the reconcile ends", () => page.events[0]);
    assert.is(fault.hits, 2);
    assert.is(page.events[0]?.error, undefined);
    assert.equal([...(page.events[0]?.workflow?.errors.keys() ?? [])], []);
  });
});

suite("fence", (test) => {
  const metadata = ONE;

  test("is called before each attempt of a write, and not before reads", async () => {
    await using server = await startPageServer();
    const asked: string[] = [];
    await using client = createClient(server, { fence: ({ method }) => void asked.push(method) });
    server.faults.add({ verb: "patch", times: 1, answer: { status: 503 } });
    server.faults.add({ verb: "patch", times: 1, disconnect: true });
    await client.list(ConfigMap);
    const object = { metadata, data: {} };
    await client.apply(ConfigMap, object, { fieldManager: "a" });
    await client.get(ConfigMap, ONE);
    await client.delete(ConfigMap, ONE);
    assert.equal(asked, ["PATCH", "PATCH", "PATCH", "DELETE"]);
  });

  for (const name of ["Error", "ConnectionError"])
    test(`that throws ${name} rejects the retry without sending it, and no later request`, async () => {
      await using server = await startPageServer();
      const refusal = Object.assign(new Error("the lease is lost"), { name });
      let attempts = 0;
      const fence = () => {
        if (++attempts === 2) throw refusal;
      };
      await using client = createClient(server, { fence });
      server.faults.add({ verb: "create", times: 1, answer: { status: 429 } });
      const failure = await errorOf(client.create(ConfigMap, { metadata }));
      assert.is(failure, refusal);
      assert.is(attempts, 2);
      assert.equal(
        server.requests.filter(({ verb }) => verb === "create").map(({ status }) => status),
        [429],
      );
      await client.create(ConfigMap, { metadata });
      assert.is((await client.list(ConfigMap, { namespace: "default" })).length, 1);
    });
});
