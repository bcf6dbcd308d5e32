// What keeps a cache up to date whatever the embedded server does.
import { waitFor } from "#apiserver/wait-for.js";
import { createSafeLogger } from "#runtime/base/logger.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { ResourceCache } from "#runtime/cache/resource-cache.js";
import { SharedInformer } from "#runtime/watch/informer.js";
import { assert, suite } from "../../../support/suite.js";
import { ConfigMap, Secret, startPageServer } from "../page-operator.js";
import { follow, write, untilText, startProxy } from "./followed-cache.js";

suite("list-watch", (test) => {
  test("delivers the initial state and then each change", async () => {
    await using server = await startPageServer();
    await using first = follow(server);
    await write(first, "a", "one");
    await untilText(first, "a", "one");
    await using second = follow(server);
    await untilText(second, "a", "one");
    await write(first, "a", "two");
    await untilText(second, "a", "two");
    await first.client.delete(ConfigMap, { name: "a", namespace: "default" });
    await waitFor("it is gone", () => !second.cache.has("default/a"));
  });

  test("resumes after a watch breaks within a line, without a relist", async () => {
    await using server = await startPageServer();
    await using followed = follow(server);
    await write(followed, "a", "one");
    await untilText(followed, "a", "one");
    server.faults.cutWatches({ path: "/configmaps", at: "next-event" });
    await write(followed, "a", "two");
    await untilText(followed, "a", "two");
    server.faults.cutWatches({ path: "/configmaps", at: "now" });
    await write(followed, "a", "three");
    await untilText(followed, "a", "three");
    assert.is(followed.replacements(), 1, "the whole state was read once");
  });

  test("resumes after the server ends a watch, without a relist or an error", async () => {
    await using server = await startPageServer();
    await using followed = follow(server);
    await write(followed, "a", "one");
    await untilText(followed, "a", "one");
    server.faults.endWatches();
    await write(followed, "a", "two");
    await untilText(followed, "a", "two");
    assert.equal(followed.failures, []);
    assert.is(followed.replacements(), 1);
  });

  test("relists after 410 Gone without an error, and decodes only changed objects", async () => {
    await using server = await startPageServer();
    await using followed = follow(server);
    await write(followed, "a", "one");
    await write(followed, "b", "one");
    await write(followed, "known", "one");
    await untilText(followed, "known", "one");
    const gate = server.faults.add({ verb: "watch", path: "/configmaps", disconnect: true });
    server.faults.cutWatches();
    await write(followed, "a", "two");
    await followed.client.delete(ConfigMap, { name: "b", namespace: "default" });
    server.faults.compact();
    const before = followed.failures.length;
    gate.remove();
    await untilText(followed, "a", "two");
    await waitFor("what went unseen is gone", () => !followed.cache.has("default/b"));
    assert.is(followed.replacements(), 2);
    assert.equal(followed.listed, ["a"], "only what changed is decoded");
    assert.is(followed.textOf("known"), "one");
    assert.ok(
      followed.failures.slice(before).every((failure) => !failure.includes("410")),
      "410 is not news",
    );
  });

  test("relists after a 410 status", async () => {
    await using server = await startPageServer();
    await using followed = follow(server);
    await write(followed, "a", "one");
    await untilText(followed, "a", "one");
    server.faults.add({ verb: "watch", path: "/configmaps", times: 1, answer: { status: 410, reason: "Expired" } });
    server.faults.cutWatches();
    await waitFor("the whole state is read again", () => followed.replacements() === 2);
    await write(followed, "a", "two");
    await untilText(followed, "a", "two");
  });

  test("retries 500 and respects the Retry-After of 429", async () => {
    await using server = await startPageServer();
    server.faults.add({
      verb: "watch",
      times: 2,
      answer: { status: 500, reason: "InternalError", message: "no etcd" },
    });
    server.faults.add({
      verb: "watch",
      times: 1,
      answer: { status: 429, reason: "TooManyRequests", retryAfterSeconds: 1 },
    });
    const startedAt = Date.now();
    await using followed = follow(server);
    await waitFor("the state is known", () => followed.replacements() === 1);
    assert.ok(Date.now() - startedAt >= 950, "Retry-After is honoured");
    assert.match(followed.failures[0]!, "500 InternalError: no etcd");
  });

  test("reconnects after a restart of the API server", async () => {
    await using server = await startPageServer();
    await using followed = follow(server);
    await write(followed, "a", "one");
    await untilText(followed, "a", "one");
    await server.faults.restart({ downMs: 200 });
    await write(followed, "a", "two");
    await untilText(followed, "a", "two");
  });

  test("reports 401 and retries until credentials are accepted", async () => {
    await using server = await startPageServer();
    await using followed = follow(server);
    await write(followed, "a", "one");
    await untilText(followed, "a", "one");
    server.faults.refuseTokens(true);
    server.faults.cutWatches();
    await waitFor("the failure is reported", () => followed.failures.some((failure) => failure.includes("401")));
    server.faults.refuseTokens(false);
    await write(followed, "a", "two");
    await untilText(followed, "a", "two");
  });

  test("keeps a quiet watch while other kinds change", async () => {
    await using server = await startPageServer();
    await using followed = follow(server, { quietMs: 50 });
    await write(followed, "a", "one");
    await untilText(followed, "a", "one");
    const watches = server.faults.add({ verb: "watch", path: "/configmaps", delayMs: 0 });
    const lists = server.faults.add({ verb: "list", path: "/configmaps", delayMs: 0 });
    await followed.client.create(Secret, { metadata: { name: "other", namespace: "default" } });
    await waitFor("it is asked about", () => lists.hits >= 2 && watches.hits >= 2, { timeoutMs: 15_000 });
    assert.equal(followed.failures, []);
    server.faults.cutWatches({ path: "/configmaps" });
    await write(followed, "a", "two");
    await untilText(followed, "a", "two");
    assert.is(followed.replacements(), 1);
  });

  test("reports an unresponsive connection, and resumes without a relist", async () => {
    await using server = await startPageServer();
    await using proxy = await startProxy(server.url);
    await using writer = follow(server);
    await using followed = follow({ ...server, url: proxy.url }, { quietMs: 100, answerTimeoutMs: 200 });
    await write(writer, "a", "one");
    await untilText(followed, "a", "one");
    proxy.freeze(true);
    await write(writer, "a", "two");
    await waitFor("it is said", () => followed.failures.some((failure) => failure.includes("does not answer")));
    assert.is(followed.textOf("a"), "one");
    proxy.freeze(false);
    await untilText(followed, "a", "two");
    assert.is(followed.replacements(), 1);
  });

  test("reports an unreachable server with the cause", async () => {
    await using server = await startPageServer();
    await using followed = follow(server);
    await write(followed, "a", "one");
    await untilText(followed, "a", "one");
    await server.close();
    const isSaid = () => followed.failures.some((failure) => failure.includes("ECONNREFUSED"));
    await waitFor("it is said", isSaid, { timeoutMs: 7_000 });
    assert.not(followed.failures.some((failure) => failure.includes("does not answer")));
  });

  test("continues if the logger throws", async () => {
    await using server = await startPageServer();
    await using writer = follow(server);
    await write(writer, "a", "one");
    server.faults.add({
      verb: "watch",
      path: "/configmaps",
      times: 2,
      answer: { status: 500, reason: "InternalError" },
    });
    const fail = () => {
      throw new Error("the disk of the log is full");
    };
    const client = new ApiClient(createConnection(server));
    const cache = new ResourceCache();
    const logger = createSafeLogger({ debug: fail, info: fail, warn: fail, error: fail });
    const informer = new SharedInformer(
      { definition: ConfigMap.definition },
      { fieldManagers: [], cache, client, logger },
    );
    try {
      await informer.start();
      assert.ok(cache.has("default/a"));
      server.faults.cutWatches({ path: "/configmaps" });
      await write(writer, "a", "two");
      await waitFor("the watch goes on", () => {
        const { data } = (cache.get("default/a")?.object ?? {}) as { data?: { text: string } };
        return data?.text === "two";
      });
      assert.is(informer.health.status, "healthy");
    } finally {
      await informer.stop();
      await client.close();
    }
  });
});
