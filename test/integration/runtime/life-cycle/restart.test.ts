// One operator over several starts and stops.
import { startApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { createOperator } from "#runtime/api/operator.js";
import { sleep } from "#runtime/base/wait.js";
import { apiRequestOrThrow } from "../../../support/api/api-request.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { assert, suite } from "../../../support/suite.js";
import {
  createPage,
  createPageOperator,
  Page,
  pageCrd,
  setText,
  startPageOperator,
  startPageServer,
  untilText,
} from "../page-operator.js";

suite("operator restart", (test) => {
  test("reconciles changes made while the operator was stopped", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server);
    await using other = createPageOperator(server);
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    assert.is(await page.operator.stop(), true);
    await setText(other, "second");
    const before = page.events.length;
    await page.operator.start();
    await untilText(page, "second");
    await waitFor("the reconcile ends", () => page.events.length > before);
  });

  test("rejects a second start of a running operator", async () => {
    await using page = await startPageOperator();
    assert.is(await failureOf(() => page.operator.start()), "operator is already started");
  });

  test("provides a client without controllers", async () => {
    await using server = await startPageServer();
    const operator = createOperator({ connection: server, controllers: [] });
    await operator.start();
    assert.is(operator.health().status, "healthy");
    await operator.client.create(Page, { metadata: { name: "one", namespace: "default" }, spec: { text: "first" } });
    assert.is((await operator.client.get(Page, { name: "one", namespace: "default" }))?.spec.text, "first");
    assert.is(await operator.stop(), true);
  });

  test("calls eventSources() once per start", async () => {
    await using server = await startPageServer();
    let made = 0;
    const eventSources = () => {
      made++;
      return [];
    };
    await using page = createPageOperator(server, { eventSources });
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    await setText(page, "second");
    await untilText(page, "second");
    assert.is(made, 1);
    await page.operator.stop();
    await page.operator.start();
    assert.is(made, 2);
  });

  test("ignores repeated stops of an operator that was never started", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server);
    assert.is(await page.operator.stop(), true);
    assert.is(await page.operator.stop(), true);
  });

  test("provides a controller only while the operator is started", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server);
    const missing = 'controller "page" is not available: the operator is not started';
    assert.throws(() => page.operator.controller("page"), new RegExp(missing));
    assert.is(page.operator.health().status, "stopped");
    await page.operator.start();
    assert.is(page.operator.controller("page").isStarted, true);
    assert.throws(() => page.operator.controller("book"), /controller "book" not found; the controllers are page/);
    assert.is(page.operator.health().status, "healthy");
    await page.operator.stop();
    assert.throws(() => page.operator.controller("page"), new RegExp(missing));
  });

  test("starts after failed starts, which report the same reason and leave no requests behind", async () => {
    await using server = await startPageServer({ withoutCrd: true });
    await using page = createPageOperator(server, { operator: { startTimeoutMs: 500 } });
    assert.match(
      await failureOf(() => page.operator.start()),
      /could not start within 500 ms: Page\.v1\.example\.com is not served/,
    );
    const { length } = server.requests;
    assert.is(page.operator.health().status, "stopped");
    assert.match(await failureOf(() => page.operator.start()), /could not start within 500 ms: Page\.v1\.example/);
    assert.ok(server.requests.length > length);
    await apiRequestOrThrow(server, "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: pageCrd });
    // A watch that were left behind would ask for the kind again.
    const before = server.requests.length;
    await sleep(2_000);
    assert.is(server.requests.length, before);
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    await page.quiet();
    assert.is(page.events.length, 1);
    assert.equal(
      server.requests.slice(before).filter(({ verb, path }) => verb === "watch" && path.endsWith("/pages")).length,
      1,
    );
  });
});

suite("checkCrds", (test) => {
  test("accepts an installed kind", async () => {
    await using page = await startPageOperator({ operator: { checkCrds: true } });
    assert.is((await page.operator.client.list(Page)).length, 0);
  });

  test("fails if a kind is not installed, and names the remedy", async () => {
    await using server = await startPageServer({ withoutCrd: true });
    await using page = createPageOperator(server, { operator: { checkCrds: true } });
    const message = await failureOf(() => page.operator.start());
    assert.is(
      message,
      `${server.url}: the CustomResourceDefinition pages.example.com is not installed; install it (kinds of this project: kubectl apply -f crds/)`,
    );
  });

  test("fails with all differences in scope and version in one error", async () => {
    await using server = await startPageServer();
    const connection = { url: server.url, token: server.token, ca: server.ca };
    await using operator = createOperator({
      controllers: [
        {
          name: "page",
          workflow: { primary: { ...Page.definition, scope: "Cluster", version: "v2" }, dependents: [] },
        },
      ],
      connection,
      checkCrds: true,
    });
    assert.is(
      await failureOf(() => operator.start()),
      `${server.url}: pages.example.com is namespaced in the cluster and cluster-scoped in the operator; run gen-operator generate with ` +
        "the CRD of the cluster; pages.example.com does not serve v2, only v1",
    );
  });
});

suite("restored API server", (test) => {
  test("is detected with a warning, and nothing is written for objects that no longer exist", async () => {
    const settings = { tls: false, crds: [pageCrd], token: "the-same-before-and-after" };
    const before = await startApiServer(settings);
    await using page = createPageOperator(before, {
      // Every page is reconciled again and again, so that something is tried at any time.
      maxReconciliationIntervalMs: 20,
    });
    await page.operator.start();
    for (const name of ["one", "later"]) {
      await createPage(page, name);
      await untilText(page, "first", `${name}-text`);
    }
    for (let write = 0; write < 100; write++) await setText(page, `second ${write}`);
    await untilText(page, "second 99");
    await before.close();
    await using after = await startApiServer({ ...settings, port: Number(new URL(before.url).port) });
    await using other = createPageOperator(after);
    await createPage(other, "one");
    await untilText(page, "first");
    await waitFor("all is well again", () => page.operator.health().status === "healthy");
    assert.ok(page.logs.some((line) => /^warn .*the store of the API server was restored/.test(line)));
    const written = after.requests
      .filter(({ path, method }) => method !== "GET" && path.includes("configmaps"))
      .map(({ path }) => path.replace(/.*\//, ""));
    assert.equal(
      [...new Set(written)],
      ["one-text"],
      "the later page is not there, and neither is what belonged to it",
    );
    await setText(other, "third");
    await untilText(page, "third");
  });
});
