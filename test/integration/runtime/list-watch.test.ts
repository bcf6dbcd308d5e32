// What keeps a cache up to date whatever the server does: a list-watch on the embedded server, and on scripted ones where that is too
// well-behaved.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { once } from "node:events";
import { Backoff } from "#runtime/base/backoff.js";
import { messageOf } from "#runtime/base/logger.js";
import { waitFor } from "#runtime/base/wait-for.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection, type ConnectionOptions } from "#runtime/client/connect/connection.js";
import { ResourceCache } from "#runtime/cache/resource-cache.js";
import { Informer } from "#runtime/watch/informer.js";
import { runListWatch } from "#runtime/watch/list-watch.js";
import { assert, suite } from "../../support/suite.js";
import { ConfigMap, Secret, startPageServer } from "./page-operator.js";

const QUICK = { initialMs: 5, factor: 1.5, maxMs: 100 };

/** A cache that follows the ConfigMaps of a server. */
function follow(
  connection: ConnectionOptions,
  options: { quietMs?: number; answerTimeoutMs?: number; initialTimeoutMs?: number; labelSelector?: string } = {},
) {
  const client = new ApiClient(createConnection(connection));
  const cache = new ResourceCache();
  const failures: string[] = [];
  const versions: string[] = [];
  const listed: string[] = [];
  let replacements = 0;
  const abort = new AbortController();
  const { transport, requester } = client;
  const ended = runListWatch(
    {
      definition: ConfigMap.definition,
      fieldManagers: [],
      transport,
      requester,
      backoff: new Backoff(QUICK),
      ...options,
    },
    {
      beginReplace: (replaced) => cache.beginReplace(replaced),
      onConnected: () => undefined,
      observeKnown: (key, version) => cache.observeKnown(key, version),
      observeListed: (entry) => {
        listed.push(entry.object.metadata.name);
        cache.observeListed(entry);
      },
      forgetListed: (object) => cache.forgetListed(object),
      endReplace: (version) => {
        replacements++;
        versions.push(version);
        cache.endReplace(version);
      },
      observe: (entry) => cache.observe(entry),
      expectsOwn: () => cache.expectsOwn,
      observeOwn: (version: string) => cache.observeOwn(version),
      observeDeletion: (object) => cache.observeDeletion(object),
      observeVersion: (version) => {
        versions.push(version);
        cache.observeVersion(version);
      },
      onFailure: (error) => void failures.push(messageOf(error)),
    } as Parameters<typeof runListWatch>[1],
    abort.signal,
  );
  return {
    cache,
    client,
    failures,
    versions,
    listed,
    replacements: () => replacements,
    textOf: (name: string) =>
      (cache.get(`default/${name}`)?.object as { data?: { text: string } } | undefined)?.data?.text,
    async [Symbol.asyncDispose]() {
      abort.abort(new Error("the test is over"));
      await ended;
      await client.close();
    },
  };
}

type Followed = ReturnType<typeof follow>;

async function write({ client }: Followed, name: string, text: string): Promise<void> {
  const object = { metadata: { name, namespace: "default" }, data: { text } };
  await client.apply(ConfigMap, object, { fieldManager: "test" });
}

async function untilText(followed: Followed, name: string, text: string): Promise<void> {
  await waitFor(`${name} says ${text}`, () => followed.textOf(name) === text);
}

/** A server of which the test writes every answer. */
async function startScripted(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    // Only its version is wanted.
    if (/limit=1$/.test(request.url ?? "")) return list(response, [], { resourceVersion: "999" });
    requests.push(request.url ?? "");
    answer(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** A proxy of which the connections may be frozen: they stay open, and nothing passes; new ones are taken and not served. */
async function startProxy(target: string) {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let isFrozen = false;
  const proxy = createTcpServer((client) => {
    const server = connect(Number(port), hostname);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        if (!isFrozen) to.destroy();
      });
      // What was frozen stays lost.
      let isDead = isFrozen;
      from.on("data", (bytes) => (isDead ||= isFrozen) || to.write(bytes));
    }
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    freeze: (freeze: boolean) => void (isFrozen = freeze),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      proxy.close();
      await once(proxy, "close");
    },
  };
}

const configMap = (name: string, resourceVersion: string, text = "") => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: "default", uid: name, resourceVersion },
  data: { text },
});

const line = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`;

const endOfInitialEvents = (resourceVersion: string) =>
  line("BOOKMARK", { metadata: { resourceVersion, annotations: { "k8s.io/initial-events-end": "true" } } });

const isWatch = ({ url = "" }: IncomingMessage) => url.includes("watch=true");
const isWatchList = ({ url = "" }: IncomingMessage) => url.includes("sendInitialEvents=true");

function list(response: ServerResponse, items: object[], metadata: object): void {
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ kind: "ConfigMapList", apiVersion: "v1", metadata, items }));
}

suite("list-watch", (test) => {
  test("the state comes first, then every change", async () => {
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

  test("a watch that breaks in the middle of a line goes on where it was", async () => {
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

  test("a watch that the server ends goes on where it was, without a word", async () => {
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

  test("a version that is too old leads to the whole state, without a word", async () => {
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

  test("410 as a status of the answer leads to the whole state, too", async () => {
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

  test("a busy or broken server is asked again until it answers", async () => {
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
    assert.ok(Date.now() - startedAt >= 1_000, "Retry-After is honoured");
    assert.match(followed.failures[0]!, "500 InternalError: no etcd");
  });

  test("a server that restarts is found again", async () => {
    await using server = await startPageServer();
    await using followed = follow(server);
    await write(followed, "a", "one");
    await untilText(followed, "a", "one");
    await server.faults.restart({ downMs: 200 });
    await write(followed, "a", "two");
    await untilText(followed, "a", "two");
  });

  test("refused credentials are said and asked for again", async () => {
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

  for (const status of [400, 422])
    test(`a server that answers ${status} to a WatchList is listed page by page`, async () => {
      await using server = await startScripted((request, response) => {
        if (isWatchList(request)) response.writeHead(status).end("{}");
        else if (isWatch(request)) response.writeHead(200).write(line("ADDED", configMap("c", "12", "watched")));
        else if (request.url!.includes("continue=next"))
          list(response, [configMap("b", "9", "b")], { resourceVersion: "10" });
        else list(response, [configMap("a", "8", "a")], { resourceVersion: "10", continue: "next" });
      });
      await using followed = follow(server);
      await untilText(followed, "c", "watched");
      assert.is(followed.textOf("a"), "a");
      assert.is(followed.textOf("b"), "b");
      assert.equal(followed.failures, []);
      const resumed = server.requests.find((url) => url.includes("watch=true") && url.includes("resourceVersion=10"));
      assert.ok(resumed);
    });

  for (const items of [[], [configMap("a", "8", "a")]])
    test(`a server without the bookmark after ${items.length} initial events is listed`, async () => {
      await using server = await startScripted((request, response) => {
        if (isWatch(request)) {
          response.writeHead(200).flushHeaders();
          if (isWatchList(request)) for (const item of items) response.write(line("ADDED", item));
        } else list(response, items, { resourceVersion: "10" });
      });
      await using followed = follow(server, { initialTimeoutMs: 150 });
      await waitFor("the state is known", () => followed.replacements() === 1);
      assert.is([...followed.cache.keys()].length, items.length);
    });

  test("a server that takes connections but never answers is reported", async () => {
    await using server = await startScripted(() => {});
    await using followed = follow(server, { initialTimeoutMs: 100 });
    await waitFor("the failure is reported", () => followed.failures.length > 0);
    assert.match(followed.failures[0]!, server.url);
    assert.match(followed.failures[0]!, "nothing arrived");
  });

  test("a watch that does not bring what the server has is replaced, and one that receives bookmarks is not", async () => {
    let isReplaced = false;
    await using server = await startScripted((request, response) => {
      const { url = "" } = request;
      response.writeHead(200).write(isWatchList(request) ? endOfInitialEvents("5") : "");
      response.flushHeaders();
      if (url.endsWith("timeoutSeconds=1")) return response.end(line("ADDED", configMap("a", "6", "missed")));
      if (isWatchList(request)) return;
      isReplaced = true;
      response.write(line("ADDED", configMap("a", "6", "missed")));
      let version = 6;
      const timer = setInterval(
        () => response.write(line("BOOKMARK", { metadata: { resourceVersion: `${++version}` } })),
        50,
      );
      response.on("close", () => clearInterval(timer));
    });
    await using followed = follow(server, { quietMs: 200 });
    await waitFor("the silent one is replaced", () => isReplaced);
    await untilText(followed, "a", "missed");
    await waitFor("bookmarks come", () => followed.versions.length > 10);
    assert.is(server.requests.length, 3);
    assert.match(server.requests[2]!, "resourceVersion=5");
    assert.match(followed.failures.join(), "has died: it does not bring what came after version 5");
  });

  test("a quiet watch is left alone, whatever is written in other kinds", async () => {
    await using server = await startPageServer();
    await using followed = follow(server, { quietMs: 50 });
    await write(followed, "a", "one");
    await untilText(followed, "a", "one");
    const watches = server.faults.add({ verb: "watch", path: "/configmaps", delayMs: 0 });
    const lists = server.faults.add({ verb: "list", path: "/configmaps", delayMs: 0 });
    await followed.client.create(Secret, { metadata: { name: "other", namespace: "default" } });
    await waitFor("it is asked about", () => lists.hits >= 3 && watches.hits >= 2, { timeoutMs: 15_000 });
    assert.equal(followed.failures, []);
    server.faults.cutWatches({ path: "/configmaps" });
    await write(followed, "a", "two");
    await untilText(followed, "a", "two");
    assert.is(followed.replacements(), 1);
  });

  test("a connection that is dead without a word is noticed and said, and the watch goes on where it was", async () => {
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

  test("a server that could not send the state in a watch is asked to again at the next time", async () => {
    let watchLists = 0;
    await using server = await startScripted((request, response) => {
      if (isWatchList(request) && ++watchLists === 1) response.writeHead(200).end();
      else if (isWatchList(request)) response.writeHead(200).write(endOfInitialEvents("20"));
      else if (isWatch(request)) response.writeHead(410).end("{}");
      else list(response, [], { resourceVersion: "10" });
    });
    await using followed = follow(server);
    await waitFor("the state is known twice", () => followed.replacements() >= 2);
    assert.equal(followed.versions.slice(0, 2), ["10", "20"]);
    assert.ok(watchLists >= 2);
  });

  test("after an interruption the watch goes on from the last bookmark", async () => {
    await using server = await startScripted((request, response) => {
      response.writeHead(200);
      if (isWatchList(request)) response.write(endOfInitialEvents("5"));
      response.write(line("BOOKMARK", { metadata: { resourceVersion: "77" } }), () => response.destroy());
    });
    await using followed = follow(server);
    await waitFor("the watch is taken up again", () => server.requests.length >= 2);
    assert.match(server.requests[1]!, "resourceVersion=77");
    assert.is(followed.replacements(), 1);
  });

  test("an ERROR event that is not 410 is reported, and the watch goes on", async () => {
    let watches = 0;
    await using server = await startScripted((request, response) => {
      response.writeHead(200);
      if (isWatchList(request)) response.write(endOfInitialEvents("5"));
      if (++watches === 1)
        response.end(line("ERROR", { kind: "Status", code: 500, reason: "InternalError", message: "etcd is gone" }));
      else response.write(line("ADDED", configMap("a", "6", "after")));
    });
    await using followed = follow(server);
    await untilText(followed, "a", "after");
    assert.is(followed.replacements(), 1);
    assert.match(followed.failures[0]!, "etcd is gone");
  });

  test("a line that is no event is reported, and the watch goes on", async () => {
    let watches = 0;
    await using server = await startScripted((request, response) => {
      response.writeHead(200);
      if (isWatchList(request)) response.write(endOfInitialEvents("5"));
      if (++watches === 1) response.write("<html>gateway</html>\n");
      else response.write(line("ADDED", configMap("a", "6", "after")));
    });
    await using followed = follow(server);
    await untilText(followed, "a", "after");
    assert.ok(followed.failures.length > 0);
  });

  test("a logger that fails keeps nobody from the state", async () => {
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
    const logger = { debug: fail, info: fail, warn: fail, error: fail };
    const informer = new Informer({ definition: ConfigMap.definition, fieldManagers: [], cache, client, logger });
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
