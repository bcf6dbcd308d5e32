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

suite("disturbed watch", (test) => {
  test("does not restore an object when an update arrives after its deletion", async () => {
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

  test("does not delete a recreated object when the old deletion arrives late", async () => {
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

  test("emits each change once if events are duplicated", async () => {
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

  test("is replaced if it is silent, without missed changes", async () => {
    await using server = await startPageServer();
    await using followed = follow(server, { quietMs: 50 });
    await write(followed, "a", "one");
    await untilText(followed, "a", "one");
    server.faults.silenceWatches({ kind: "ConfigMap" }).release();
    await write(followed, "a", "two");
    await untilText(followed, "a", "two");
  });

  test("recovers from stale responses, a shifted clock, compaction and a restart", async () => {
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
    test(`does not block recreation or ownership checks while silent, ${serverSideApply ? "with apply" : "with PUT"}`, async () => {
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

  test("leaves no state for a deleted primary if events are reordered", async () => {
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
