import { waitFor } from "#apiserver/wait-for.js";
import { sleep } from "#runtime/base/wait.js";
import { deleted } from "#runtime/workflow/conditions.js";
import { assert, suite } from "../../../support/suite.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  Secret,
  setText,
  startPageOperator,
  startPageServer,
  textOf,
  textReconciler,
  untilText,
} from "../page-operator.js";

const ONE = { name: "one", namespace: "default" };
const CHILD = { name: "one-text", namespace: "default" };

suite("reconcile", (test) => {
  test("creates a dependent and the status in one reconcile with one request each", async () => {
    await using page = await startPageOperator();
    await createPage(page);
    await untilText(page, "first");
    await waitFor(
      "the status is written",
      async () => (await page.operator.client.get(Page, ONE))?.status?.text === "first",
    );
    await page.quiet();
    assert.is(page.events.length, 1, "own writes cause no second reconcile");
    const writes = page.requests.filter((request) => !request.startsWith("GET") && !request.startsWith("POST"));
    assert.equal(writes, [
      "PATCH /api/v1/namespaces/default/configmaps/one-text 201",
      "PATCH /apis/example.com/v1/namespaces/default/pages/one/status 200",
    ]);
  });

  test("applies a change of the primary in one reconcile", async () => {
    await using page = await startPageOperator();
    await createPage(page);
    await untilText(page, "first");
    await page.quiet();
    const before = page.events.length;
    await setText(page, "second");
    await untilText(page, "second");
    await page.quiet();
    assert.is(page.events.length, before + 1);
  });

  test("fails only a dependent whose desired() throws or is rejected, and gives the reason", async () => {
    await using server = await startPageServer();
    const dependents = [
      configMapOf("good"),
      configMapOf("thrown", {
        desired: () => {
          throw new Error("no text");
        },
      }),
      configMapOf("refused", { desired: () => ({ metadata: { name: "Not A Name" }, data: { a: "b" } }) }),
      configMapOf("after", { dependsOn: ["refused"] }),
    ];
    await using page = createPageOperator(server, { dependents });
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first", "one-good");
    const { workflow, error } = await waitFor("a reconcile", () => page.events[0]);
    assert.is(workflow?.dependents["good"]?.kind, "created");
    assert.equal(workflow?.dependents["after"], { kind: "waiting", for: ["refused"] });
    const messages = [...workflow!.errors.values()].map((each) => (each as Error).message);
    assert.is(messages[0], 'dependent "thrown": no text');
    assert.match(
      messages[1]!,
      /^dependent "refused": apply of ConfigMap "default\/Not A Name" failed: 422 Invalid: .*metadata\.name: /,
    );
    assert.instance(error, AggregateError);
    const line = await waitFor("a warning", () => page.logs.find((each) => each.startsWith("warn reconcile failed")));
    assert.match(line, 'dependent "thrown": no text');
    assert.match(line, "metadata.name");
    await waitFor("another attempt", () => page.events.length > 2);
    assert.ok(page.events[0]!.retryAfterMs! >= 100 && page.events[0]!.retryAfterMs! <= 120);
  });

  test("fails if the status has a field that the schema lacks, and names its path", async () => {
    await using server = await startPageServer();
    const reconciler = { reconcile: () => ({ status: { text: "known", odd: 1 } }) };
    await using page = createPageOperator(server, { reconciler, dependents: [] });
    await page.operator.start();
    await createPage(page);
    const { error } = await waitFor("a reconcile", () => page.events[0]);
    assert.match((error as Error).message, 'apply of the status of Page "default/one" failed: 500');
    assert.match((error as Error).message, ".status.odd: field not declared in schema");
  });
});

suite("unchanged objects", (test) => {
  test("cause no requests when a resync finds no drift", async () => {
    await using page = await startPageOperator({ maxReconciliationIntervalMs: 50 });
    await createPage(page);
    await untilText(page, "first");
    await waitFor("two reconciles", () => page.events.length >= 2);
    const [requests, events] = [page.requests.length, page.events.length];
    await waitFor("three more reconciles", () => page.events.length >= events + 3);
    assert.is(page.requests.length, requests);
    assert.equal(page.events.at(-1)!.workflow?.dependents, { text: { kind: "unchanged", isReady: true } });
  });

  test("cause no requests after a restart", async () => {
    await using server = await startPageServer();
    {
      await using page = createPageOperator(server);
      await page.operator.start();
      await createPage(page);
      await untilText(page, "first");
      await page.quiet();
    }
    await using again = createPageOperator(server);
    await again.operator.start();
    await waitFor("a reconcile", () => again.events.length > 0);
    await again.quiet();
    assert.equal(again.requests, []);
    assert.is(again.events.length, 1);
  });

  test("include a Secret with stringData, which is written again only after another client changes it", async () => {
    await using server = await startPageServer();
    const secret = configMapOf("secret", {
      resource: Secret.definition,
      desired: () => ({ metadata: { name: "one-secret" }, stringData: { password: "s3cret" } }),
    });
    await using page = createPageOperator(server, { dependents: [secret], maxReconciliationIntervalMs: 50 });
    await page.operator.start();
    await createPage(page);
    await waitFor("five reconciles", () => page.events.length >= 5);
    assert.is(page.requests.filter((request) => request.includes("/secrets/")).length, 1);
    const ref = { name: "one-secret", namespace: "default" };
    await page.operator.client.mergePatch(Secret, ref, { data: { password: "b3RoZXI=" } });
    await waitFor("the password is ours again", async () => {
      return (await page.operator.client.get(Secret, ref))?.data?.["password"] === "czNjcmV0";
    });
  });
});

suite("drift", (test) => {
  test("restores dependents that were modified or deleted", async () => {
    await using page = await startPageOperator();
    await createPage(page);
    await untilText(page, "first");
    await page.operator.client.mergePatch(ConfigMap, CHILD, { data: { text: "theirs" } });
    await untilText(page, "first");
    // The same written once more would be taken for a loop.
    await setText(page, "second");
    await untilText(page, "second");
    await page.operator.client.delete(ConfigMap, CHILD);
    await untilText(page, "second");
    await page.quiet();
    assert.equal(
      page.logs.filter((line) => /^(warn|error)/.test(line)),
      [],
    );
  });

  test("ignores fields added by other managers", async () => {
    await using page = await startPageOperator();
    await createPage(page);
    await untilText(page, "first");
    await page.quiet();
    await page.operator.client.mergePatch(ConfigMap, CHILD, { data: { theirs: "x" } });
    await waitFor("a reconcile", () => page.events.length > 1);
    await page.quiet();
    assert.equal(page.requests.filter((request) => request.startsWith("PATCH")).length, 3);
    assert.is((await page.operator.client.get(ConfigMap, CHILD))?.data?.["theirs"], "x");
  });
});

suite("existing object", (test) => {
  test("is not adopted by default", async () => {
    await using server = await startPageServer();
    await using page = createPageOperator(server);
    await page.operator.client.create(ConfigMap, { metadata: CHILD, data: { text: "theirs" } });
    await page.operator.start();
    await createPage(page);
    const { workflow } = await waitFor("a reconcile", () => page.events[0]);
    const message = (workflow!.errors.get("text") as Error).message;
    assert.match(message, 'ConfigMap "default/one-text" already exists and is not owned by this primary');
    assert.is(await textOf(page), "theirs");
  });
});

suite("finalizer", (test) => {
  test("is added before dependents are created and removed after they are deleted", async () => {
    await using server = await startPageServer();
    const dependents = [
      configMapOf("a", { deletion: "ordered" }),
      configMapOf("b", { deletion: "ordered", dependsOn: ["a"], deletePostcondition: deleted }),
    ];
    await using page = createPageOperator(server, { dependents });
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first", "one-b");
    const live = await page.operator.client.get(Page, ONE);
    assert.equal(live?.metadata.finalizers, ["pages.example.com/finalizer"]);
    const patches = page.requests.filter((request) => request.startsWith("PATCH"));
    assert.is(patches[0], "PATCH /apis/example.com/v1/namespaces/default/pages/one 200");
    // Something else holds one of them for a while.
    const held = { name: "one-b", namespace: "default" };
    await page.operator.client.mergePatch(ConfigMap, held, { metadata: { finalizers: ["example.com/hold"] } });
    await page.operator.client.delete(Page, ONE);
    await waitFor("b is being deleted", async () => {
      return (await page.operator.client.get(ConfigMap, held))?.metadata.deletionTimestamp !== undefined;
    });
    await page.quiet();
    assert.ok(await textOf(page, "one-a"), "a stays until b is gone");
    assert.ok(await page.operator.client.get(Page, ONE), "the primary stays");
    await page.operator.client.mergePatch(ConfigMap, held, { metadata: { finalizers: null } });
    await waitFor("the primary is gone", async () => (await page.operator.client.get(Page, ONE)) === undefined);
    assert.is(await textOf(page, "one-a"), undefined);
    assert.is(page.events.at(-1)?.error, undefined);
  });

  test("leaves those of other controllers when it is removed", async () => {
    await using server = await startPageServer();
    const reconciler = { ...textReconciler, cleanup: () => {} };
    await using page = createPageOperator(server, { reconciler });
    await page.operator.start();
    await createPage(page, "one", { finalizers: ["example.com/theirs"] });
    await waitFor("the finalizer", async () => {
      return (await page.operator.client.get(Page, ONE))?.metadata.finalizers?.length === 2;
    });
    await page.operator.client.delete(Page, ONE);
    await waitFor("ours is removed", async () => {
      const finalizers = (await page.operator.client.get(Page, ONE))?.metadata.finalizers;
      return finalizers?.length === 1 && finalizers[0] === "example.com/theirs";
    });
    await page.quiet();
    const before = page.events.length;
    await sleep(100);
    assert.is(page.events.length, before, "a terminating primary without our finalizer is left alone");
  });

  test("does not recreate a deleted primary when it is added", async () => {
    await using server = await startPageServer();
    const reconciler = { ...textReconciler, cleanup: () => {} };
    await using page = createPageOperator(server, { reconciler });
    await page.operator.start();
    server.faults.add({ verb: "patch", path: "/pages/one", delayMs: 300, times: 1 });
    await createPage(page);
    await waitFor("the finalizer is being applied", () => server.requests.length > 0);
    await sleep(100);
    await page.operator.client.delete(Page, ONE);
    await waitFor("the reconcile ends", () => page.events[0]);
    await page.quiet();
    assert.is(await page.operator.client.get(Page, ONE), undefined);
  });
});

suite("deleted primary", (test) => {
  test("is not recreated by the status of the running reconcile", async () => {
    await using server = await startPageServer();
    let go = () => {};
    const reconciler = {
      reconcile: async () => {
        await new Promise<void>((resolve) => (go = resolve));
        return { status: { text: "late" } };
      },
    };
    await using page = createPageOperator(server, { reconciler });
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    await page.quiet();
    // The operator learns of it only after it has written.
    server.faults.add({ verb: "watch", path: "/pages", hang: true });
    server.faults.cutWatches({ path: "/pages" });
    await page.operator.client.delete(Page, ONE);
    go();
    await waitFor("the reconcile ends", () => page.events[0]);
    assert.is(page.events[0]?.error, undefined);
    assert.is(await page.operator.client.get(Page, ONE), undefined);
  });

  test("does not pass its status to a recreated primary", async () => {
    await using server = await startPageServer();
    const waiting: (() => void)[] = [];
    const reconciler = {
      reconcile: async ({ primary }: { primary: Page }) => {
        await new Promise<void>((resolve) => waiting.push(resolve));
        return { status: { text: `status of ${primary.metadata.uid}` } };
      },
    };
    await using page = createPageOperator(server, { reconciler, dependents: [] });
    await page.operator.start();
    await createPage(page);
    await waitFor("the reconciler is called", () => waiting.length === 1);
    server.faults.add({ verb: "watch", path: "/pages", disconnect: true, times: 1 });
    server.faults.cutWatches({ path: "/pages" });
    await page.operator.client.delete(Page, ONE);
    const { uid } = (await createPage(page)).metadata;
    waiting[0]!();
    await waitFor("the reconciler is called again", () => waiting.length === 2);
    waiting[1]!();
    await waitFor("the status is that of the new one", async () => {
      return (await page.operator.client.get(Page, ONE))?.status?.text === `status of ${uid}`;
    });
  });
});

suite("operator stop", (test) => {
  test("waits for a running reconcile", async () => {
    await using server = await startPageServer();
    let finish = () => {};
    const reconciler = { reconcile: () => new Promise<void>((resolve) => (finish = resolve)) };
    await using page = createPageOperator(server, { reconciler });
    await page.operator.start();
    await createPage(page);
    await untilText(page, "first");
    await page.quiet();
    const stopped = page.operator.stop();
    await sleep(50);
    assert.is(page.events.length, 0);
    finish();
    assert.is(await stopped, true);
    assert.is(page.events.length, 1);
  });

  test("ends after stopTimeoutMs if a function never returns, which blocks no other primary before", async () => {
    await using server = await startPageServer();
    const dependents = [
      configMapOf("text"),
      configMapOf("hung", {
        desired: ({ primary }) =>
          primary.metadata.name === "one" ? new Promise(() => {}) : { metadata: { name: "two-hung" } },
      }),
    ];
    await using page = createPageOperator(server, { dependents, operator: { stopTimeoutMs: 300 } });
    await page.operator.start();
    await createPage(page, "one");
    await untilText(page, "first");
    await createPage(page, "two");
    await untilText(page, "first", "two-text");
    await waitFor("two is reconciled", () => page.events.find(({ primary }) => primary === "default/two"));
    assert.is(await page.operator.stop(), false);
    assert.ok(page.logs.some((line) => line.startsWith("warn stopped with reconciles still in progress")));
  });
});

suite("maxConcurrentReconciles", (test) => {
  test("rejects 0 and NaN", async () => {
    await using page = await startPageOperator();
    const controller = page.operator.controller("page");
    for (const count of [0, NaN])
      assert.throws(
        () => controller.setMaxConcurrentReconciles(count),
        `controller "page" has ${count} for maxConcurrentReconciles; it needs 1 or more`,
      );
    controller.setMaxConcurrentReconciles();
    await createPage(page);
    await untilText(page, "first");
  });
});
