// Starts, stops and changes of what is watched that come at the wrong moment.
import { sleep } from "#runtime/base/wait.js";
import { waitFor } from "#apiserver/wait-for.js";
import type { EventSource } from "#runtime/sources/event-source.js";
import { untypedResource } from "#runtime/api/define-resource.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { assert, suite } from "../../../support/suite.js";
import {
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  Secret,
  setText,
  startPageOperator,
  startPageServer,
  untilText,
} from "../page-operator.js";

const Missing = untypedResource({
  apiVersion: "example.com/v1",
  kind: "Missing",
  plural: "missings",
  scope: "Namespaced",
});

/** A source of which the test says when it has started. */
function gatedSource(rest: Partial<EventSource> & { name: string }) {
  const history: string[] = [];
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  const source: EventSource = {
    health: { status: "unknown" },
    async start() {
      history.push("start");
      await opened;
    },
    async stop() {
      history.push("stop");
    },
    secondariesOf: () => [],
    ...rest,
  };
  return { source, history, open };
}

const outcomeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "done",
    (error: Error) => error.message,
  );

suite("concurrent start and stop", (test) => {
  test("accepts only one of two starts after a stop", async () => {
    await using page = await startPageOperator();
    const stopped = page.operator.stop();
    const starts = [outcomeOf(page.operator.start()), outcomeOf(page.operator.start())];
    assert.equal(await Promise.all(starts), ["done", "operator is already started"]);
    assert.is(await stopped, true);
    await createPage(page);
    await untilText(page, "first");
  });

  test("delays a start until reconciles of the previous run have returned", async () => {
    await using server = await startPageServer();
    let letGo = () => {};
    const hanging = new Promise<void>((resolve) => (letGo = resolve));
    let [underWay, mostAtOnce, calls] = [0, 0, 0];
    const reconcile = async () => {
      mostAtOnce = Math.max(mostAtOnce, ++underWay);
      // A function that does not look at its signal.
      if (++calls === 1) await hanging;
      underWay--;
    };
    await using page = createPageOperator(server, {
      dependents: [],
      reconciler: { reconcile },
      operator: { stopTimeoutMs: 20 },
    });
    await createPage(page);
    await page.operator.start();
    await waitFor("a reconcile", () => calls === 1);
    assert.is(await page.operator.stop(), false);
    const stopped = outcomeOf(page.operator.start());
    await waitFor("it says what it waits for", () =>
      page.logs.some((line) => line.includes("the last run still has 1 reconcile in progress")),
    );
    await page.operator.stop();
    assert.is(await stopped, "the operator was stopped");
    const started = outcomeOf(page.operator.start());
    letGo();
    assert.is(await started, "done");
    await waitFor("a second reconcile", () => calls === 2);
    assert.is(mostAtOnce, 1);
  });

  test("aborts a start that waits for the previous stop", async () => {
    await using page = await startPageOperator();
    const first = page.operator.stop();
    const restarted = outcomeOf(page.operator.start());
    const second = page.operator.stop();
    assert.equal([await first, await second, await restarted], [true, true, "the operator was stopped"]);
    assert.is(page.operator.health().status, "stopped");
    await sleep(50);
    const open = page.server.requests.length;
    await sleep(300);
    assert.is(page.server.requests.length, open, "nothing is asked any more");
  });

  test("starts no further event sources if the operator is stopped during the start", async () => {
    await using server = await startPageServer();
    const first = gatedSource({ name: "first", startPriority: "first" });
    const other = gatedSource({ name: "other" });
    await using page = createPageOperator(server, { eventSources: () => [first.source, other.source] });
    const started = outcomeOf(page.operator.start());
    await waitFor("the first one starts", () => first.history.length === 1);
    await page.operator.stop();
    first.open();
    assert.is(await started, "the operator was stopped");
    await sleep(20);
    assert.equal(
      other.history.filter((each) => each === "start"),
      [],
    );
  });

  test("completes a start once event sources that cannot start are deregistered", async () => {
    await using server = await startPageServer();
    const hanging = gatedSource({ name: "hanging" });
    const missing = informerSource({ name: "missing", resource: Missing, mapper: () => [] });
    await using page = createPageOperator(server, { eventSources: () => [missing, hanging.source] });
    const started = outcomeOf(page.operator.start());
    await waitFor("it starts", () => hanging.history.length > 0);
    const { sources } = page.operator.controller("page");
    await Promise.all([sources.deregister("missing"), sources.deregister("hanging")]);
    assert.is(await Promise.race([started, sleep(3_000).then(() => "still starting")]), "done");
  });

  test("waits only for the namespaces that are watched by then", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server, { namespaces: ["closed"] });
    server.faults.add({ namespace: "closed", forbid: true });
    const started = page.operator.start();
    const controller = await waitFor("it tries", () =>
      page.operator.health().status === "unhealthy" ? page.operator.controller("page") : undefined,
    );
    await controller.setNamespaces(["default"]);
    await started;
    assert.is(page.operator.health().status, "healthy");
    await createPage(page);
    await untilText(page, "first");
  });

  test("applies a change of namespaces during the initial list", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server, { namespaces: ["default"] });
    const slow = server.faults.add({ verb: "watch", path: "/namespaces/default/pages", times: 1, delayMs: 300 });
    const started = page.operator.start();
    await waitFor("it lists", () => slow.hits > 0);
    const controller = page.operator.controller("page");
    await controller.setNamespaces(["kube-system"]);
    await started;
    await createPage(page);
    await page.operator.client.create(Page, {
      metadata: { name: "two", namespace: "kube-system" },
      spec: { text: "first" },
    });
    await waitFor("the new namespace is reconciled", () => page.events.length > 0);
    assert.equal(
      page.events.map(({ primary }) => primary),
      ["kube-system/two"],
    );
  });

  test("delays reconciles until the last of several changes of namespaces is complete", async () => {
    await using page = await startPageOperator({ namespaces: ["default"] });
    await createPage(page);
    await untilText(page, "first");
    await waitFor("the reconcile is over", () => page.events.length === 1);
    const slow = page.server.faults.add({ verb: "watch", path: "/namespaces/kube-public/pages", delayMs: 300 });
    const controller = page.operator.controller("page");
    const first = controller.setNamespaces(["default", "kube-system"]);
    const second = controller.setNamespaces(["default", "kube-public"]);
    await first;
    await waitFor("the second is under way", () => slow.hits > 0);
    const during: number[] = [];
    const counted = second.then(() => during.push(page.events.length));
    await setText(page, "second");
    await counted;
    assert.equal(during, [1]);
    await untilText(page, "second");
  });

  test("rejects invalid namespace names, and keeps the current namespaces", async () => {
    await using page = await startPageOperator({ namespaces: ["default"] });
    const controller = page.operator.controller("page");
    for (const [namespaces, what] of [
      [[""], '""'],
      [["A b"], '"A b"'],
      [[5], "5"],
      ["default", 'must be an array, but are "default"'],
    ] as const) {
      const outcome = await outcomeOf(controller.setNamespaces(namespaces as never));
      assert.ok(outcome.includes(what) && outcome.includes('controller "page"'), outcome);
    }
    assert.equal(controller.namespaces, ["default"]);
    assert.throws(
      () => createPageOperator(page.server, { namespaces: ["A b"] }),
      '"A b" is not a valid namespace name (namespaces of controller "page")',
    );
  });

  test("applies a change of namespaces to an event source registered in the meantime", async () => {
    await using page = await startPageOperator({ namespaces: ["default"] });
    await page.operator.client.create(
      { definition: { ...Secret.definition, kind: "Namespace", plural: "namespaces", scope: "Cluster" } },
      { metadata: { name: "other" } },
    );
    const controller = page.operator.controller("page");
    // The change takes as long as the list of the new namespace.
    const slow = page.server.faults.add({ verb: "watch", path: "/namespaces/other/pages", delayMs: 300 });
    const changed = controller.setNamespaces(["other"]);
    await waitFor("the change is under way", () => slow.hits > 0);
    const secrets = informerSource({ name: "secrets", resource: Secret, mapper: () => [] });
    await controller.sources.register(secrets);
    await changed;
    await page.operator.client.create(Secret, { metadata: { name: "here", namespace: "other" } });
    await waitFor("the source sees the new namespace", () => secrets.list().length === 1, { timeoutMs: 3_000 });
  });

  test("stops calling primaryToSecondary of a deregistered event source", async () => {
    await using page = await startPageOperator();
    let calls = 0;
    const primaryToSecondary = () => {
      calls++;
      return ["default/nothing"];
    };
    const { sources } = page.operator.controller("page");
    await sources.register(informerSource({ name: "secrets", resource: Secret, primaryToSecondary }));
    await createPage(page);
    await untilText(page, "first");
    await sources.deregister("secrets");
    const before = calls;
    await setText(page, "second");
    await untilText(page, "second");
    assert.is(calls, before);
  });

  test("does not watch a dependent that is activated by a reconcile that outlives the stop", async () => {
    await using server = await startPageServer();
    let activate: ((isActive: boolean) => void) | undefined;
    const activationCondition = () => new Promise<boolean>((resolve) => (activate = resolve));
    const dependent = configMapOf("text", { activationCondition });
    await using page = createPageOperator(server, { dependents: [dependent], operator: { stopTimeoutMs: 50 } });
    await page.operator.start();
    await createPage(page);
    await waitFor("the condition is asked", () => activate);
    assert.is(await page.operator.stop(), false);
    const isAsked = () => server.requests.some(({ path }) => path.includes("configmaps"));
    assert.is(isAsked(), false);
    activate?.(true);
    await sleep(1_000);
    assert.is(isAsked(), false);
    assert.equal(
      page.logs.filter((line) => line.includes("cannot watch")),
      [],
    );
  });

  test("aborts a request that waits for Retry-After: 15 when its primary is deleted", async () => {
    await using server = await startPageServer();
    const cleaned: string[] = [];
    const reconciler = {
      reconcile: () => {},
      cleanup: ({ primary }: { primary: Page }) => void cleaned.push(primary.metadata.name),
    };
    await using page = createPageOperator(server, { reconciler });
    // Longer than the test waits.
    const busy = { status: 429, reason: "TooManyRequests", retryAfterSeconds: 15 };
    const fault = server.faults.add({ verb: "patch", path: "/configmaps/one-text", answer: busy });
    await page.operator.start();
    await createPage(page);
    await waitFor("the write is refused", () => fault.hits > 0);
    await page.operator.client.delete(Page, { name: "one", namespace: "default" });
    await waitFor("the cleanup has run", () => cleaned.length > 0);
    const gone = async () =>
      (await page.operator.client.get(Page, { name: "one", namespace: "default" })) === undefined;
    await waitFor("the primary is gone", gone);
    const loud = page.logs.filter((line) => /^(warn|error)/.test(line));
    assert.is(loud.length, 1, loud.join("\n"));
    assert.match(loud[0]!, /one-text waits 15 s: 429/);
  });

  test("aborts the signal of a reconcile when its primary is deleted", async () => {
    await using server = await startPageServer();
    const seen: string[] = [];
    const reconciler = {
      reconcile: ({ context }: { context: { signal: AbortSignal } }) => {
        seen.push("reconcile");
        return new Promise<void>((_, reject) => {
          context.signal.addEventListener("abort", () => reject(context.signal.reason), { once: true });
        });
      },
      cleanup: () => void seen.push("cleanup"),
    };
    await using page = createPageOperator(server, { reconciler, dependents: [] });
    await page.operator.start();
    await createPage(page);
    await waitFor("it reconciles", () => seen.length > 0);
    await page.operator.client.delete(Page, { name: "one", namespace: "default" });
    await waitFor("the cleanup has run", () => seen.includes("cleanup"));
    assert.equal(seen, ["reconcile", "cleanup"]);
  });
});
