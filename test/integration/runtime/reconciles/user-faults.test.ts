// Nothing that the user wrote ends the process, hangs the operator, or loses an event for another: this file runs with --unhandled-rejections=strict
// semantics, which Node has by default.
import { sleep } from "#runtime/base/wait.js";
import { waitFor } from "#apiserver/wait-for.js";
import type { EventSource } from "#runtime/sources/event-source.js";
import { informerSource } from "#runtime/sources/informer-source.js";
import { createOperator } from "#runtime/api/operator.js";
import { failuresOf } from "../../../support/runtime/recorded-operator.js";
import { assert, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  setText,
  startPageOperator,
  startPageServer,
  untilText,
} from "../page-operator.js";

const ONE = { name: "one", namespace: "default" };

/** A source that does nothing. */
function idleSource(rest: Partial<EventSource> & { name: string }): EventSource {
  return {
    health: { status: "healthy" },
    start: async () => {},
    stop: async () => {},
    secondariesOf: () => [],
    ...rest,
  };
}

suite("user errors", (test) => {
  test("of a function that modifies its primary fail the first reconcile", async () => {
    await using server = await startPageServer();
    const desired = ({ primary }: { primary: Page }) => {
      primary.spec.text = "changed";
      return { metadata: { name: "one-text" } };
    };
    await using page = createPageOperator(server, {
      dependents: [configMapOf("text", { deletion: "ordered", desired })],
    });
    await page.operator.start();
    await createPage(page);
    await waitFor("a reconcile", () => page.events.length > 0);
    assert.match(String(page.events[0]?.error), "Cannot assign to read only property 'text'");
  });

  test("of a primary index that throws or returns nothing lose no event", async () => {
    await using server = await startPageServer();
    const indexes = {
      throwing: (page: Page) => {
        if (page.spec.text === "bad") throw new Error("no index today");
        return [page.spec.text];
      },
      nothing: () => undefined,
    };
    await using page = createPageOperator(server, { indexes: indexes as never });
    await createPage(page);
    await page.operator.start();
    await untilText(page, "first");
    await setText(page, "bad");
    await untilText(page, "bad");
    await setText(page, "good");
    await untilText(page, "good");
    assert.is(server.requests.filter(({ verb, path }) => verb === "watch" && path.endsWith("/pages")).length, 1);
  });

  test("of stop() in an event source do not prevent a stop or restart", async () => {
    await using server = await startPageServer();
    const sources = [
      idleSource({
        name: "throws",
        stop: () => {
          throw new Error("I do not stop");
        },
      }),
      idleSource({ name: "plain", stop: (() => {}) as never }),
    ];
    await using page = createPageOperator(server, { eventSources: () => sources });
    await page.operator.start();
    assert.is(await page.operator.stop(), true);
    assert.ok(
      page.logs.some((line) => line.includes('"throws" could not be stopped: I do not stop')),
      page.logs.join(),
    );
    await page.operator.start();
    assert.is(await page.operator.stop(), true);
  });

  test("of the health of an event source mark only that source as unhealthy", async () => {
    await using server = await startPageServer();
    const source = Object.defineProperty(idleSource({ name: "opaque" }), "health", {
      get: () => {
        throw new Error("ask me later");
      },
    });
    await using page = createPageOperator(server, { eventSources: () => [source] });
    await page.operator.start();
    const { status, controllers } = page.operator.health();
    const { sources } = controllers["page"]!;
    assert.equal([status, sources["primary"]], ["unhealthy", { status: "healthy" }]);
    assert.equal(sources["opaque"], { status: "unhealthy", reason: "health failed: ask me later" });
  });

  test("of setNamespaces() in one event source do not prevent other sources from following", async () => {
    await using server = await startPageServer();
    const source = idleSource({
      name: "stubborn",
      setNamespaces: () => {
        throw new Error("I stay here");
      },
    });
    await using page = createPageOperator(server, { eventSources: () => [source] });
    await page.operator.start();
    const controller = page.operator.controller("page");
    await controller.setNamespaces(["default"]);
    assert.equal(controller.namespaces, ["default"]);
    const health = controller.health();
    assert.equal(health["stubborn"], { status: "unhealthy", reason: "setNamespaces failed: I stay here" });
    await createPage(page);
    await untilText(page, "first");
  });

  test("of setNamespaces([]) are rejected, and the namespaces are kept", async () => {
    await using page = await startPageOperator({ namespaces: ["default"] });
    const controller = page.operator.controller("page");
    const error = await controller.setNamespaces([]).then(
      () => undefined,
      (thrown: Error) => thrown.message,
    );
    assert.match(error ?? "nothing thrown", /controller "page".*namespaces/);
    assert.equal(controller.namespaces, ["default"]);
  });

  test("of start() in an event source fail the start with its name", async () => {
    await using server = await startPageServer();
    const source = idleSource({
      name: "broken",
      start: () => {
        throw new Error("no webhook");
      },
    });
    await using page = createPageOperator(server, { eventSources: () => [source] });
    const error = await page.operator.start().then(
      () => undefined,
      (thrown: Error) => thrown.message,
    );
    assert.is(error, 'event source "broken" of controller "page" could not be started: no webhook');
  });

  test("of one event source in two controllers fail the start", async () => {
    await using server = await startPageServer();
    const shared = informerSource({ name: "configs", resource: ConfigMap, mapper: () => ["default/one"] });
    const controllerOf = (name: string) => ({
      name,
      workflow: { primary: Page.definition, dependents: [] },
      eventSources: () => [shared],
    });
    const { url, token, ca } = server;
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    await using operator = createOperator({
      controllers: [controllerOf("a"), controllerOf("b")],
      connection: { url, token, ca },
      logger,
    });
    const error = await operator.start().then(
      () => undefined,
      (thrown: Error) => thrown.message,
    );
    assert.match(error ?? "nothing thrown", /event source "configs" of controller "b" .*controller "a"/);
  });

  for (const [what, thrown] of [
    ["an error that is its own cause", cyclicError()],
    ["an object without a prototype", Object.create(null)],
    ["an AggregateError without errors", new AggregateError([], "nothing worked")],
    ["undefined", undefined],
  ] as const)
    test(`of a reconciler that throws ${what} are retried`, async () => {
      await using server = await startPageServer();
      let fails = true;
      const reconciler = {
        reconcile: () => {
          if (fails) throw thrown;
        },
      };
      await using page = createPageOperator(server, { reconciler, dependents: [] });
      await page.operator.start();
      await createPage(page);
      await waitFor("it failed", () => page.events.length > 0);
      fails = false;
      await waitFor("it succeeds", () => page.events.at(-1) !== undefined && !("error" in page.events.at(-1)!));
    });

  test("of a request observer fail no request", async () => {
    await using server = await startPageServer();
    const onRequest = () => {
      throw new Error("no metrics");
    };
    await using page = createPageOperator(server, { operator: { onRequest } });
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    await waitFor("the status is written", async () => (await page.operator.client.get(Page, ONE))?.status?.text);
    assert.equal(failuresOf(page.events), []);
  });

  test("do not include a 404 with an HTML body, which deletes no primary", async () => {
    await using server = await startPageServer();
    const deleted: string[] = [];
    const reconciler = {
      reconcile: ({ primary, context }: { primary: Page; context: { isPrimaryDeleted: boolean } }) => {
        if (context.isPrimaryDeleted) deleted.push(primary.metadata.name);
      },
    };
    await using page = createPageOperator(server, { reconciler, dependents: [], onAllEvents: true });
    await page.operator.start();
    await createPage(page);
    await waitFor("it is reconciled", () => page.events.length === 1);
    const answer = { status: 404, contentType: "text/html", body: "<html><h1>404 Not Found</h1>nginx</html>" };
    const fault = server.faults.add({ verb: "watch", path: "/pages", answer });
    server.faults.cutWatches({ path: "/pages" });
    await waitFor("the watch fails", () => fault.hits > 0);
    await sleep(100);
    fault.remove();
    await setText(page, "second");
    await waitFor("the next change is seen", () => page.events.length === 2);
    assert.equal(deleted, []);
  });

  test("do not include a list with items: null, which is empty", async () => {
    await using server = await startPageServer();
    const unsupported = { verb: "watch", path: "/pages", times: 1, answer: { status: 400, reason: "BadRequest" } };
    server.faults.add(unsupported);
    const body = JSON.stringify({
      apiVersion: "v1",
      kind: "PageList",
      metadata: { resourceVersion: "1" },
      items: null,
    });
    server.faults.add({
      verb: "list",
      path: "/pages",
      times: 1,
      answer: { status: 200, body, contentType: "application/json" },
    });
    await using page = createPageOperator(server, { operator: { startTimeoutMs: 3_000 } });
    await page.operator.start();
    await page.quiet();
    assert.equal(
      page.logs.filter((line) => line.startsWith("warn")),
      [],
    );
  });
});

function cyclicError(): Error {
  const error = new Error("round");
  error.cause = new Error("and round", { cause: error });
  return error;
}
