// What others do to the status that a controller keeps: their own fields are theirs, and what they overwrite is put right.
import type { ApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import type { StatusCondition } from "#runtime/base/kubernetes-object.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import type { MergePatchOf } from "#runtime/apply/resource-operations.js";
import type { LoopEvent } from "#runtime/base/activity.js";
import { apiRequestOrThrow } from "../../../support/api/api-request.js";
import { openWatch } from "../../../support/api/watch-client.js";
import { failuresOf } from "../../../support/runtime/recorded-operator.js";
import { assert, suite } from "../../../support/suite.js";
import {
  createPage,
  createPageOperator,
  Page,
  setText,
  startPageServer,
  type PageOperator,
  type PageOperatorOptions,
} from "../page-operator.js";

type Status = NonNullable<Page["status"]>;

const one = { name: "one", namespace: "default" };
const PATH = "/apis/example.com/v1/namespaces/default/pages/one/status";
const managed: PageOperatorOptions = { dependents: [], statusConditions: "managed" };
const idle = { reconcile: () => {} };
const READY = "Ready=True";

/** Somebody writes a part of the status of the page. */
async function patchStatus(server: ApiServer, status: MergePatchOf<Status>): Promise<void> {
  const patch = { contentType: "application/merge-patch+json", body: { status } };
  await apiRequestOrThrow(server, `PATCH ${PATH}`, patch);
}

async function statusOf({ operator }: PageOperator): Promise<Status> {
  return (await operator.client.get(Page, one))?.status ?? {};
}

const textOf = ({ conditions = [] }: Status) => conditions.map(({ type, status }) => `${type}=${status}`).join();

/** Starts an operator, and waits until the page is ready and nothing happens any more. */
async function startReady(page: PageOperator): Promise<Status> {
  await page.operator.start();
  await createPage(page);
  await waitFor("the page is ready", async () => textOf(await statusOf(page)) === READY);
  await page.quiet();
  return statusOf(page);
}

const statusWrites = ({ requests }: PageOperator) => requests.filter((line) => /^(PATCH|PUT) .*\/status /.test(line));

function conditionOf(type: string, status: StatusCondition["status"]): StatusCondition {
  return { type, status, reason: "Theirs", message: "theirs", lastTransitionTime: "2026-01-02T03:04:05Z" };
}

suite("status of a primary", (test) => {
  for (const serverSideApply of [true, false])
    test(`is restored in one reconcile after another client overwrites Ready: ${serverSideApply ? "apply" : "patches"}`, async () => {
      await using server = await startPageServer();
      await using page = createPageOperator(server, { ...managed, serverSideApply, reconciler: idle });
      const before = await startReady(page);
      // The third write of the same would be a loop.
      const theirs = [
        [serverSideApply ? conditionOf("Ready", "False") : { ...before.conditions![0]!, message: "theirs" }],
        [],
      ];
      for (const conditions of theirs) {
        const { length } = page.events;
        const writes = statusWrites(page).length;
        await patchStatus(server, { conditions });
        await waitFor("Ready is as it was", async () => {
          const [ready] = (await statusOf(page)).conditions ?? [];
          return ready?.status === "True" && ready.message === before.conditions![0]!.message;
        });
        await page.quiet();
        assert.is(page.events.length - length, 1, "one reconcile");
        assert.is(statusWrites(page).length - writes, 1, "one write");
      }
      assert.equal(failuresOf(page.events), []);
    });

  test("is restored in one reconcile after another client overwrites a field of the reconciler", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server, managed);
    await startReady(page);
    for (const status of [{ observedGeneration: 7 }, { text: null }]) {
      const { length } = page.events;
      await patchStatus(server, status);
      await waitFor("it is as it was", async () => {
        const { text, observedGeneration } = await statusOf(page);
        return text === "first" && observedGeneration === 1;
      });
      await page.quiet();
      assert.is(page.events.length - length, 1);
    }
  });

  for (const serverSideApply of [true, false])
    test(`is not restored for fields and conditions of other managers: ${serverSideApply ? "apply" : "patches"}`, async () => {
      await using server = await startPageServer();
      await using page = createPageOperator(server, { ...managed, serverSideApply, reconciler: idle });
      const { conditions } = await startReady(page);
      const { length } = page.requests;
      await patchStatus(server, { text: "theirs" });
      await patchStatus(server, { conditions: [...conditions!, conditionOf("Theirs", "False")] });
      await patchStatus(server, { text: "theirs again" });
      await page.quiet();
      assert.is(page.events.length, 1);
      assert.equal(page.requests.slice(length), []);
    });

  test("triggers no reconcile if another client writes another field during an own write", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server, { ...managed, reconciler: idle });
    await page.operator.start();
    const held = server.faults.add({ verb: "patch", path: "/pages/one/status", times: 1, delayMs: 500 });
    await createPage(page);
    await waitFor("the write is held", () => held.hits === 1);
    await patchStatus(server, { text: "theirs" });
    await waitFor("the page is ready", async () => textOf(await statusOf(page)) === READY);
    await page.quiet();
    assert.is((await statusOf(page)).text, "theirs");
    assert.is(page.events.length, 1);
  });

  test("is restored at startup after another client overwrote it", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server, managed);
    await startReady(page);
    await page.operator.stop();
    await patchStatus(server, { text: "theirs", conditions: [] });
    await page.operator.start();
    await waitFor("it is as it was", async () => {
      const status = await statusOf(page);
      return status.text === "first" && textOf(status) === READY;
    });
  });
});

suite("metadata of a primary", (test) => {
  test("is restored after another client overwrites own labels, and keeps foreign ones", async () => {
    await using server = await startPageServer();
    const labels = { ours: "a", more: "b" };
    const reconciler = { reconcile: () => ({ resource: { metadata: { labels } } }), cleanup: () => {} };
    await using page = createPageOperator(server, { dependents: [], reconciler });
    await page.operator.start();
    await createPage(page);
    const labelsOf = async () => (await page.operator.client.get(Page, one))?.metadata.labels;
    await waitFor("the labels are there", async () => (await labelsOf())?.["ours"] === "a");
    await page.quiet();
    assert.is(page.events.length, 1);
    const patchLabels = (patch: object) => page.operator.client.mergePatch(Page, one, { metadata: { labels: patch } });
    await patchLabels({ theirs: "x" });
    await page.quiet();
    assert.is(page.events.length, 1, "what others add is no event");
    for (const patch of [{ ours: "theirs" }, { more: null }]) {
      const { length } = page.events;
      await patchLabels(patch);
      await waitFor("the labels are as they were", async () => {
        const found = await labelsOf();
        return found?.["ours"] === "a" && found["more"] === "b";
      });
      await page.quiet();
      assert.is(page.events.length - length, 1);
    }
    assert.is((await labelsOf())?.["theirs"], "x");
  });
});

suite("in-flight status write", (test) => {
  test("that lands after a restart is overwritten with the current status", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server, { ...managed, operator: { stopTimeoutMs: 50 } });
    await startReady(page);
    // As a proxy holds it: the next run has written its status by then.
    const held = server.faults.add({ verb: "patch", path: "/pages/one/status", times: 1, delayMs: 1_500 });
    await setText(page, "second");
    await waitFor("the write is held", () => held.hits === 1);
    assert.is(await page.operator.stop(), false);
    const patch = { contentType: "application/merge-patch+json", body: { spec: { text: "third" } } };
    await apiRequestOrThrow(server, `PATCH ${PATH.replace(/\/status$/, "")}`, patch);
    await page.operator.start();
    await waitFor("the status follows the text", async () => (await statusOf(page)).text === "third");
    await page.quiet();
    const landed = () => server.requests.filter(({ method, path }) => method === "PATCH" && path.endsWith("/status"));
    const before = landed().length;
    await waitFor("the held write lands", () => landed().length > before);
    await waitFor("it is put right", async () => (await statusOf(page)).text === "third");
    await page.quiet();
    const { text, observedGeneration } = await statusOf(page);
    assert.equal([text, observedGeneration], ["third", 3]);
  });
});

suite("repeatedly overwritten status", (test) => {
  const cases: [string, PageOperatorOptions, (status: Status) => Status | undefined, string][] = [
    [
      "the condition Ready",
      { ...managed, reconciler: idle },
      (status) => (textOf(status) === READY ? { conditions: [conditionOf("Ready", "False")] } : undefined),
      "status.conditions",
    ],
    [
      "a field of the reconciler",
      { dependents: [] },
      ({ text }) => (text === "first" ? { text: "theirs" } : undefined),
      "status.text",
    ],
  ];
  for (const [title, options, answer, path] of cases)
    test(`is written 3 times, then with increasing backoff: ${title}`, async () => {
      await using server = await startPageServer();
      const { url, token } = server;
      const client = new ApiClient(createConnection({ url, token }));
      using watch = await openWatch({ url, token }, "/apis/example.com/v1/namespaces/default/pages?watch=true");
      const run = async () => {
        for (let event = await watch.next(); event !== undefined; event = await watch.next()) {
          const status = answer((event.object as unknown as Page).status ?? {});
          if (status !== undefined) await patchStatus(server, status);
        }
      };
      const ended = run().catch(() => undefined);
      const loops: LoopEvent[] = [];
      const operator = { onLoop: (event: LoopEvent) => void loops.push(event) };
      await using page = createPageOperator(server, { ...options, operator });
      await page.operator.start();
      await createPage(page);
      const found = await waitFor("two writes of the loop", () => loops[1] && loops);
      assert.equal(
        found.map(({ loop, writes, pauseMs }) => [loop, writes, pauseMs]),
        [
          ["undone", 3, 2_000],
          ["undone", 4, 4_000],
        ],
      );
      assert.ok(found.every(({ paths }) => paths.every((each) => each.startsWith(path))));
      assert.is(statusWrites(page).filter((line) => line.endsWith(" 200")).length >= 4, true);
      const warnings = page.logs.filter((line) => line.startsWith("warn"));
      assert.is(warnings.length, 1, warnings.join("\n"));
      watch[Symbol.dispose]();
      await ended;
      await client.close();
    });
});
