// What never returns: it is said what that is, a start gives up when it is told to, and a stop ends in time.
import { startApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { createConnection, type Connection } from "#runtime/client/connection.js";
import type { EventSource } from "#runtime/sources/event-source.js";
import { perPrimaryPollingSource, pollingSource } from "#runtime/sources/polling-sources.js";
import { noUpdate } from "#runtime/reconcile/reconciler.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { assert, suite } from "../../../support/suite.js";
import { createPage, createPageOperator, Page, pageCrd, startPageServer, untilText } from "../page-operator.js";

const forever = () => new Promise<never>(() => {});

function sourceThat(rest: Partial<EventSource>): EventSource {
  return {
    name: "slow",
    health: { status: "healthy" },
    start: async () => {},
    stop: async () => {},
    secondariesOf: () => [],
    ...rest,
  };
}

const START = { startTimeoutMs: 300 };

suite("hanging operations", (test) => {
  test("fail the start after startTimeoutMs with the name of the event source", async () => {
    const prices = pollingSource({ name: "slow", type: "price", idOf: () => "", intervalMs: 100, fetch: forever });
    for (const source of [sourceThat({ start: forever }), prices]) {
      await using server = await startPageServer();
      // Long enough for all that does start.
      const operator = { startTimeoutMs: 3_000 };
      await using page = createPageOperator(server, { eventSources: () => [source], operator });
      const failure = await failureOf(() => page.operator.start());
      const reason = 'event source "slow" of controller "page" has not started yet';
      assert.is(failure, `the operator could not start within 3000 ms: ${reason}`);
    }
  });

  test("fail the start if the watch of the primaries never responds", async () => {
    await using server = await startPageServer();
    server.faults.add({ verb: "watch", path: "/pages", hang: true });
    await using page = createPageOperator(server, { operator: START });
    const failure = await failureOf(() => page.operator.start());
    assert.match(failure, 'within 300 ms: the pages of controller "page" are not known yet');
  });

  test("fail the start during checkCrds", async () => {
    await using server = await startApiServer({ tls: false, crds: [pageCrd], faults: [{ hang: true }] });
    await using page = createPageOperator(server, { operator: { ...START, checkCrds: true } });
    assert.match(await failureOf(() => page.operator.start()), "the operator could not start within 300 ms");
  });

  test("open no watch if the operator is stopped during checkCrds", async () => {
    await using server = await startPageServer();
    const check = server.faults.add({ path: "/customresourcedefinitions", delayMs: 100 });
    await using page = createPageOperator(server, { operator: { checkCrds: true } });
    const started = failureOf(() => page.operator.start());
    await waitFor("it checks", () => check.hits > 0);
    assert.is(await page.operator.stop(), true);
    assert.match(await started, /the operator was stopped|the client is closed/);
    assert.equal(
      server.requests.filter(({ verb }) => verb === "watch"),
      [],
    );
  });

  test("of an event source do not block the stop of other sources beyond stopTimeoutMs", async () => {
    await using server = await startPageServer();
    const stopped: string[] = [];
    const other = sourceThat({ name: "first", startPriority: "first", stop: async () => void stopped.push("first") });
    const sources = [sourceThat({ stop: forever }), other];
    const options = { eventSources: () => sources, operator: { stopTimeoutMs: 200 } };
    await using page = createPageOperator(server, options);
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    assert.is(await page.operator.stop(), false);
    assert.equal(stopped, ["first"]);
    assert.ok(page.logs.includes('warn event source "slow" could not be stopped: it did not return in time'));
    await page.operator.start();
    await untilText(page, "first");
  });

  test("of credentials block neither a stop nor a start with startTimeoutMs", async () => {
    await using server = await startPageServer();
    const given = createConnection({ url: server.url, token: server.token });
    let hangs = false;
    const asked = { times: 0 };
    const connection: Connection = {
      ...given,
      credentials: async (options) => {
        asked.times++;
        return hangs ? forever() : given.credentials(options);
      },
    };
    await using page = createPageOperator(server, { operator: { connection } });
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    hangs = true;
    const before = asked.times;
    server.faults.cutWatches();
    await waitFor("they are asked for", () => asked.times > before);
    assert.is(await page.operator.stop(), true);
    await using second = createPageOperator(server, { operator: { connection, ...START } });
    assert.match(await failureOf(() => second.operator.start()), "could not start within 300 ms");
  });

  test("of fetch for a deleted primary are aborted, and other primaries are polled", async () => {
    await using server = await startPageServer();
    let fetches = 0;
    const visits = perPrimaryPollingSource<string>({
      name: "visits",
      idOf: () => "",
      intervalMs: 60_000,
      maxConcurrentPolls: 1,
      fetch: (_, { signal }) => {
        if (++fetches > 1) return [];
        return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      },
    });
    await using page = createPageOperator(server, { eventSources: () => [visits] });
    await page.operator.start();
    await createPage(page);
    await waitFor("its fetch hangs", () => fetches === 1);
    await page.operator.client.delete(Page, { name: "one", namespace: "default" });
    await createPage(page, "two");
    await untilText(page, "first", "two-text");
  });

  test("of 30 concurrent reconciles cause no listener warnings, although 60 requests fail with 503", async () => {
    await using server = await startPageServer();
    const warnings: string[] = [];
    const note = ({ message }: Error) => void warnings.push(message);
    process.on("warning", note);
    let waiting = 0;
    let open = () => {};
    const opened = new Promise<void>((resolve) => (open = resolve));
    const reconciler = {
      reconcile: async ({ context }: { context: { signal: AbortSignal } }) => {
        context.signal.addEventListener("abort", () => {}, { once: true });
        waiting++;
        await opened;
        return noUpdate();
      },
    };
    await using page = createPageOperator(server, { reconciler });
    const busy = server.faults.add({ verb: "patch", path: "/configmaps", times: 60, answer: { status: 503 } });
    for (let index = 0; index < 30; index++) await createPage(page, `page-${index}`);
    await page.operator.start();
    await waitFor("all of them wait", () => waiting === 30);
    assert.is(busy.hits, 60);
    open();
    await waitFor("all of them end", () => page.events.length >= 30);
    process.removeListener("warning", note);
    assert.equal(warnings, []);
  });
});
