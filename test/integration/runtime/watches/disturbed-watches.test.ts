// What no API server should do to a watch, and some proxies, caches and clocks do.
import { waitFor } from "#apiserver/wait-for.js";
import { assert, suite } from "../../../support/suite.js";
import { follow, untilText, write } from "./followed-cache.js";
import {
  ConfigMap,
  configMapOf,
  createPage,
  createPageOperator,
  Page,
  setText,
  startPageServer,
  textReconciler,
  untilText as untilPageText,
} from "../page-operator.js";
import { messageOf } from "#runtime/base/logger.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";

const ref = { name: "a", namespace: "default" };

suite("a disturbed watch", (test) => {
  test("that tells an object's change after its deletion does not bring it back", async () => {
    await using server = await startPageServer();
    await using followed = follow(server);
    await write(followed, "a", "one");
    await untilText(followed, "a", "one");
    server.faults.reorderEvents({ kind: "ConfigMap" });
    await write(followed, "a", "two");
    await followed.client.delete(ConfigMap, ref);
    await write(followed, "b", "one");
    await untilText(followed, "b", "one");
    assert.not(followed.cache.has("default/a"));
  });

  test("that tells an object's deletion after its creation anew does not delete it", async () => {
    await using server = await startPageServer();
    await using followed = follow(server);
    await write(followed, "a", "one");
    await untilText(followed, "a", "one");
    server.faults.reorderEvents({ kind: "ConfigMap" });
    await followed.client.delete(ConfigMap, ref);
    await write(followed, "a", "two");
    await write(followed, "b", "one");
    await untilText(followed, "b", "one");
    await untilText(followed, "a", "two");
  });

  test("that tells everything twice tells of each state once", async () => {
    await using server = await startPageServer();
    await using followed = follow(server);
    const told: string[] = [];
    const onChange = ({ kind, key }: { kind: string; key: string }) => void told.push(`${kind} ${key}`);
    followed.cache.subscribe({ onChange, onVersion: () => {}, onReset: () => {} });
    server.faults.duplicateEvents();
    await write(followed, "a", "one");
    await write(followed, "a", "two");
    await followed.client.delete(ConfigMap, ref);
    await write(followed, "b", "one");
    await untilText(followed, "b", "one");
    const added = "added default/a";
    assert.equal(told.slice(told.indexOf(added)), [added, "updated default/a", "deleted default/a", "added default/b"]);
  });

  test("that is dead is replaced, and nothing is missed", async () => {
    await using server = await startPageServer();
    await using followed = follow(server, { quietMs: 50 });
    await write(followed, "a", "one");
    await untilText(followed, "a", "one");
    server.faults.silenceWatches({ kind: "ConfigMap" }).release();
    await write(followed, "a", "two");
    await untilText(followed, "a", "two");
  });

  test("that begins in the past or under another clock comes to the present", async () => {
    await using server = await startPageServer();
    await using followed = follow(server);
    await write(followed, "a", "one");
    await untilText(followed, "a", "one");
    server.faults.add({ kind: "ConfigMap", stale: true });
    server.faults.shiftClock(-86_400_000);
    await write(followed, "a", "two");
    server.faults.compact();
    await server.faults.restart({ downMs: 20 });
    await write(followed, "a", "three");
    await untilText(followed, "a", "three");
  });

  for (const serverSideApply of [true, false])
    test(`that is dead does not keep what is gone from being created anew, nor what took a name from being refused, ${serverSideApply ? "by apply" : "by PUT"}`, async () => {
      await using server = await startPageServer();
      const dependents = ["a", "b"].map((name) => configMapOf(name, { serverSideApply }));
      await using page = createPageOperator(server, { dependents });
      await page.operator.start();
      await createPage(page);
      for (const name of ["one-a", "one-b"]) await untilPageText(page, "first", name);
      await page.quiet();
      using _dead = server.faults.silenceWatches({ kind: "ConfigMap" });
      const { client } = page.operator;
      for (const name of ["one-a", "one-b"]) await client.delete(ConfigMap, { name, namespace: "default" });
      await client.create(ConfigMap, { metadata: { name: "one-b", namespace: "default" }, data: { theirs: "theirs" } });
      await setText(page, "second");
      await untilPageText(page, "second", "one-a");
      const failure = () => page.events.map(({ error }) => messageOf(error)).at(-1) ?? "";
      await waitFor("what took the name is refused", () => failure().includes("is not owned by this primary"));
      const theirs = await client.get(ConfigMap, { name: "one-b", namespace: "default" });
      assert.equal([theirs?.data, theirs?.metadata.labels], [{ theirs: "theirs" }, undefined]);
    });

  test("makes no operator reconcile a primary that is deleted", async () => {
    await using server = await startPageServer({ simulate: true });
    await using page = createPageOperator(server, {
      dependents: [],
      reconciler: { reconcile: textReconciler.reconcile },
    });
    await page.operator.start();
    const client = new ApiClient(createConnection({ url: server.url, token: server.token }));
    await client.create(Page, { metadata: ref, spec: { text: "one" } });
    await waitFor("a status", async () => (await client.get(Page, ref))?.status?.text === "one");
    await page.quiet();
    const before = page.events.length;
    server.faults.reorderEvents({ kind: "Page" });
    const late = client.mergePatch(Page, ref, { spec: { text: "two" } });
    await Promise.all([late, late.then(() => client.delete(Page, ref))]);
    await page.quiet();
    const after = page.events.slice(before).map((event) => JSON.stringify(event));
    assert.is(page.operator.controller("page").counts().states, 0, after.join("\n"));
    await client.close();
  });
});
