// How a second operator of one controller is noticed: another process writes under its field manager.
import { waitFor } from "#apiserver/wait-for.js";
import type { ApiServer } from "#apiserver/index.js";
import { apiRequestOrThrow } from "../../../support/api/api-request.js";
import { assert, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  setText,
  startPageServer,
  untilText,
  type PageOperator,
  type PageOperatorOptions,
} from "../page-operator.js";

const TEXT = "/api/v1/namespaces/default/configmaps/one-text";
const PAGE = "/apis/example.com/v1/namespaces/default/pages/one";
const HOUR_MS = 3_600_000;
const metrics = { metricsBindAddress: "127.0.0.1:0" };

/** Changes an object as another process does. */
async function patch(server: ApiServer, path: string, fieldManager: string, body: object): Promise<void> {
  const contentType = "application/merge-patch+json";
  await apiRequestOrThrow(server, `PATCH ${path}?fieldManager=${fieldManager}`, { contentType, body });
}

/** Applies an object again as another process does, with another text. */
async function apply(server: ApiServer, path: string, fieldManager: string): Promise<void> {
  const object = await apiRequestOrThrow<{ metadata: { [field: string]: unknown } }>(server, `GET ${path}`);
  const {
    managedFields: _,
    resourceVersion: _version,
    uid: _uid,
    creationTimestamp: _time,
    ...metadata
  } = object.metadata;
  const body = { ...object, metadata, data: { text: "theirs" } };
  const contentType = "application/apply-patch+yaml";
  await apiRequestOrThrow(server, `PATCH ${path}?fieldManager=${fieldManager}&force=true`, { contentType, body });
}

const reports = ({ logs }: PageOperator) => logs.filter((line) => line.includes("and not by this process"));

async function countOf({ logs }: PageOperator): Promise<number> {
  const line = logs.findLast((each) => each.startsWith("info serves the metrics"));
  const [, port] = /:(\d+)$/.exec(line ?? "") ?? [];
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return Number(/^gen_operator_foreign_writes_total\{controller="page"\} (\d+)$/m.exec(text)?.[1]);
}

/** Starts an operator that has written one page, so long ago that a write before it counts no more. */
async function startSettled(server: ApiServer, options: PageOperatorOptions = {}): Promise<PageOperator> {
  const page = createPageOperator(server, { operator: metrics, ...options });
  await page.operator.start();
  if (options.operator?.leaderElection !== undefined)
    await waitFor("it leads", () => page.operator.health().leadership?.isLeading);
  await createPage(page);
  await untilText(page, "first");
  await page.quiet();
  server.faults.shiftClock(HOUR_MS);
  return page;
}

suite("second operator process", (test) => {
  for (const [how, write] of Object.entries({
    apply: (server: ApiServer) => apply(server, TEXT, "page"),
    patch: (server: ApiServer) => patch(server, TEXT, "page", { data: { text: "theirs" } }),
  }))
    test(`is reported with object, time and field manager when it writes a dependent: ${how}`, async () => {
      await using server = await startPageServer();
      await using page = await startSettled(server);
      await write(server);
      await waitFor("it is reported", () => reports(page).length > 0);
      assert.match(
        reports(page)[0] ?? "",
        /^warn ConfigMap "default\/one-text" was written at \d{4}-\S+Z by field manager "page", and not by this process: another process runs controller "page"; stop one of the two, or give them /,
      );
      assert.is(await countOf(page), 1);
      await waitFor("an Event is about the page", async () => {
        const path = "GET /apis/events.k8s.io/v1/namespaces/default/events";
        const { items } = await apiRequestOrThrow<{ items: { reason: string; regarding: { name: string } }[] }>(
          server,
          path,
        );
        return items.some(({ reason, regarding }) => reason === "SecondOperator" && regarding.name === "one");
      });
      // Both go on.
      await untilText(page, "first");
      assert.is(page.operator.health().status, "healthy");
    });

  for (const [part, body] of Object.entries({
    "": { spec: { more: "theirs" } },
    "/status": { status: { text: "theirs" } },
  }))
    test(`is reported when it writes ${part === "" ? "a primary" : "the status of a primary"}`, async () => {
      await using server = await startPageServer();
      await using page = await startSettled(server);
      await patch(server, `${PAGE}${part}`, "page", body);
      await waitFor("it is reported", () => reports(page).length > 0);
      assert.match(reports(page)[0] ?? "", /^warn Page "default\/one" was written at /);
    });

  test("is logged once in 10 minutes, and counted for each write", async () => {
    await using server = await startPageServer();
    await using page = await startSettled(server);
    for (let count = 1; count <= 3; count++) {
      server.faults.shiftClock((count + 1) * HOUR_MS);
      await patch(server, TEXT, "page", { data: { text: `theirs ${count}` } });
      await waitFor("it is counted", async () => (await countOf(page)) === count);
      await untilText(page, "first");
    }
    assert.is(reports(page).length, 1);
  });

  test("is reported by the leader and not by a standby", async () => {
    await using server = await startPageServer();
    const operator = { ...metrics, leaderElection: { namespace: "default" } };
    await using leader = await startSettled(server, { operator });
    await using standby = createPageOperator(server, { operator });
    await standby.operator.start();
    server.faults.shiftClock(2 * HOUR_MS);
    await patch(server, TEXT, "page", { data: { text: "theirs" } });
    await waitFor("it is reported", () => reports(leader).length > 0);
    await standby.quiet();
    assert.equal(reports(standby), []);
  });

  test("is not reported if its primaries do not match the labelSelector", async () => {
    await using server = await startPageServer();
    await using page = await startSettled(server, { labelSelector: "!team" });
    const other = createPageOperator(server, { labelSelector: "team" });
    await using _other = other;
    await other.operator.start();
    await createPage(other, "two", { labels: { team: "b" } });
    await untilText(other, "first", "two-text");
    await patch(server, TEXT.replace("one", "two"), "page", { data: { text: "theirs" } });
    await patch(server, PAGE.replace("one", "two"), "page", { spec: { more: "theirs" } });
    await page.quiet();
    assert.equal(reports(page), []);
  });

  test("is not reported for writes within the first minute", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server);
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    await page.quiet();
    // Beyond what is allowed to a server whose clock differs.
    server.faults.shiftClock(30_000);
    await patch(server, TEXT, "page", { data: { text: "theirs" } });
    await untilText(page, "first");
    await page.quiet();
    assert.equal(reports(page), []);
  });

  test("is not reported for changes by other field managers", async () => {
    await using server = await startPageServer();
    await using page = await startSettled(server, { dependents: [configMapOf("text"), configMapOf("more")] });
    for (const text of ["second", "third"]) {
      await setText(page, text);
      await untilText(page, text);
      await patch(server, TEXT, "kubectl", { metadata: { labels: { text } } });
      await patch(server, TEXT, "kubectl", { data: { text: "theirs" } });
      await untilText(page, text);
    }
    await page.operator.client.delete(ConfigMap, { name: "one-more", namespace: "default" });
    await waitFor("it is there again", () =>
      page.operator.client.get(ConfigMap, { name: "one-more", namespace: "default" }),
    );
    await page.quiet();
    assert.equal(reports(page), []);
  });

  test("is not reported if responses to own writes are lost", async () => {
    await using server = await startPageServer();
    await using page = await startSettled(server);
    await setText(page, "second");
    await untilText(page, "second");
    const lost = server.faults.add({ verb: "patch", path: "/one-text", times: 3, loseAnswer: true });
    await setText(page, "third");
    await untilText(page, "third");
    lost.remove();
    await patch(server, TEXT, "kubectl", { metadata: { labels: { a: "b" } } });
    await page.quiet();
    assert.equal(reports(page), []);
  });

  test("is not reported for writes of another client of this process", async () => {
    await using server = await startPageServer();
    await using page = await startSettled(server);
    const { client } = page.operator;
    await client.apply(
      Page,
      { metadata: { name: "one", namespace: "default" }, spec: { text: "first", more: "ours" } },
      { fieldManager: "page", force: true },
    );
    await patch(server, PAGE, "kubectl", { metadata: { labels: { a: "b" } } });
    await page.quiet();
    assert.equal(reports(page), []);
  });

  test("is not reported for own writes by PUT", async () => {
    await using server = await startPageServer();
    await using page = await startSettled(server, { dependents: [{ ...configMapOf("text"), serverSideApply: false }] });
    await setText(page, "second");
    await untilText(page, "second");
    await createPage(page, "two");
    await untilText(page, "first", "two-text");
    await patch(server, TEXT, "kubectl", { metadata: { labels: { a: "b" } } });
    await patch(server, TEXT.replace("one", "two"), "kubectl", { metadata: { labels: { a: "b" } } });
    await page.quiet();
    assert.equal(reports(page), []);
  });
});
