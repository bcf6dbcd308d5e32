// The calls of the client besides plain reads and writes: signals, selectors, watches and subresources.
import { sleep } from "#runtime/base/wait.js";
import type { ObjectRef } from "#runtime/base/kubernetes-object.js";
import { ApiClient, type WatchedEvent } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import type { RequestObserver } from "#runtime/client/transport.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { errorOf } from "../../../support/runtime/failures.js";
import { assert, suite } from "../../../support/suite.js";
import { startScripted } from "./followed-cache.js";
import { ConfigMap, Page, Secret, startPageServer, type DataObject } from "../page-operator.js";

const ONE = { name: "one", namespace: "default" };
const TWO = { name: "two", namespace: "default" };
const Deployment = classOf(builtinDefinition("apps/v1", "Deployment"));

async function start() {
  const server = await startPageServer();
  const requests: string[] = [];
  const observe: RequestObserver = ({ method, path }) => void requests.push(`${method} ${path}`);
  const client = new ApiClient(createConnection({ url: server.url, token: server.token }), { observe });
  const close = async () => {
    await client.close();
    await server.close();
  };
  return { server, client, requests, [Symbol.asyncDispose]: close };
}

const textOf = ({ type, object }: WatchedEvent<DataObject>) =>
  `${type} ${object.metadata.name ?? ""} ${object.data?.["text"] ?? ""}`.trim();

/** Takes this many events of a watch, and leaves it. */
async function take(events: AsyncIterable<WatchedEvent<DataObject>>, count: number): Promise<string[]> {
  const taken: string[] = [];
  for await (const event of events) if (taken.push(textOf(event)) === count) break;
  return taken;
}

type Call = (client: ApiClient, signal: AbortSignal, ref: ObjectRef) => Promise<unknown>;

const aboutObjects: { [method: string]: Call } = {
  get: (client, signal, ref) => client.get(ConfigMap, ref, { signal }),
  getEntry: (client, signal, ref) => client.getEntry(ConfigMap, ref, { signal }),
  update: (client, signal, ref) => client.update(ConfigMap, { metadata: ref }, { signal }),
  apply: (client, signal, ref) => client.apply(ConfigMap, { metadata: ref }, { fieldManager: "a", signal }),
  mergePatch: (client, signal, ref) => client.mergePatch(ConfigMap, { ...ref, signal }, {}),
  jsonPatch: (client, signal, ref) => client.jsonPatch(ConfigMap, ref, { operations: [], signal }),
  delete: (client, signal, ref) => client.delete(ConfigMap, ref, { signal }),
  getScale: (client, signal, ref) => client.getScale(Deployment, ref, { signal }),
  setScale: (client, signal, ref) => client.setScale(Deployment, ref, { replicas: 1, signal }),
  evict: (client, signal, ref) => client.evict(ref, { signal }),
};
const create: Call = (client, signal, ref) => client.create(ConfigMap, { metadata: ref }, { signal });

suite("AbortSignal of a call", (test) => {
  const calls: { [method: string]: Call } = {
    ...aboutObjects,
    create,
    list: (client, signal) => client.list(ConfigMap, { signal }),
    isServed: (client, signal) => client.isServed(ConfigMap.definition, { signal }),
    servedVersions: (client, signal) => client.servedVersions(Deployment.definition, { signal }),
  };
  for (const [method, call] of Object.entries(calls))
    test(`aborts ${method} with its reason`, async () => {
      await using started = await start();
      const { server, client } = started;
      const hanging = server.faults.add({ hang: true });
      const leaving = new AbortController();
      const ended = errorOf(call(client, leaving.signal, ONE));
      while (hanging.hits === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      leaving.abort(new Error("no longer needed"));
      assert.is((await ended).message, "no longer needed");
    });
});

suite("call for one object", (test) => {
  const { signal } = new AbortController();
  const refs: [Partial<ObjectRef>, RegExp][] = [
    [{ name: "", namespace: "default" }, /^\w+ "default\/" states no name, which its kind needs$/],
    [{ namespace: "default" }, /^\w+ "default\/undefined" states no name, which its kind needs$/],
    [{ name: "/", namespace: "default" }, /^\w+ "default\/\/" has "\/" for its name, which no object can have$/],
    [{ name: "one/status", namespace: "default" }, /has "one\/status" for its name, /],
    [{ name: "..", namespace: "default" }, /has "\.\." for its name, /],
    [{ name: "one" }, /^\w+ "one" states no namespace, which its kind needs$/],
    [{ name: "one", namespace: "" }, /states no namespace, which its kind needs$/],
    [{ name: "one", namespace: "default/pods" }, /has "default\/pods" for its namespace, /],
  ];

  test("is rejected without a request if name or namespace are missing or invalid", async () => {
    await using started = await start();
    await started.client.create(ConfigMap, { metadata: ONE });
    const { client, requests } = started;
    requests.length = 0;
    for (const [ref, message] of refs)
      for (const call of Object.values(
        "name" in ref && ref.name === "one" ? { ...aboutObjects, create } : aboutObjects,
      ))
        assert.match((await errorOf(call(client, signal, ref as ObjectRef))).message, message);
    assert.equal(requests, []);
  });

  test("fails for an unknown resource instead of reporting a missing object", async () => {
    await using started = await start();
    const Misspelt = classOf({ ...ConfigMap.definition, plural: "configmap" });
    const error = await errorOf(started.client.get(Misspelt, ONE));
    assert.match(
      error.message,
      'get ConfigMap "default/one" failed: 404: the server could not find the requested resource: the API server does not serve the kind',
    );
  });
});

suite("list", (test) => {
  test("filters by fieldSelector", async () => {
    await using started = await start();
    const { client } = started;
    for (const metadata of [ONE, TWO]) await client.create(ConfigMap, { metadata });
    const names = async (fieldSelector: string) =>
      (await client.list(ConfigMap, { namespace: "default", fieldSelector })).map(({ metadata }) => metadata.name);
    assert.equal(await names("metadata.name=two"), ["two"]);
    assert.equal(await names("metadata.name!=two"), ["one"]);
  });
});

suite("client of a scripted server", (test) => {
  /** Starts a server that gives these answers in turn, and a client of it. */
  async function startAnswering(...answers: { status?: number; body: string }[]) {
    const server = await startScripted((_, response) => {
      const { status = 200, body } = answers.shift()!;
      response.writeHead(status).end(body);
    });
    const client = new ApiClient(createConnection({ url: server.url }), { maxAttempts: 1 });
    const close = async () => {
      await client.close();
      await server[Symbol.asyncDispose]();
    };
    return { client, requests: server.requests, [Symbol.asyncDispose]: close };
  }
  const page = (name: string, next?: string) => ({
    body: JSON.stringify({ metadata: { resourceVersion: "1", continue: next }, items: [{ metadata: { name } }] }),
  });
  const expired = { status: 410, body: '{"kind":"Status","code":410,"reason":"Expired"}' };

  test("lists once more without pages after 410 Gone for a continue token", async () => {
    await using again = await startAnswering(page("gone", "a"), expired, page("one"));
    assert.equal(
      (await again.client.list(ConfigMap)).map(({ metadata }) => metadata.name),
      ["one"],
    );
    const path = "/api/v1/configmaps";
    assert.equal(again.requests, [`${path}?limit=500`, `${path}?limit=500&continue=a`, path]);
    await using twice = await startAnswering(page("gone", "a"), expired, page("gone", "b"), expired);
    assert.match((await errorOf(twice.client.list(ConfigMap))).message, /^list configmaps failed: 410 Expired/);
    assert.is(twice.requests.length, 4);
    await using first = await startAnswering(expired);
    assert.match((await errorOf(first.client.list(ConfigMap))).message, /^list configmaps failed: 410 Expired/);
  });

  test("yields no watch event after its signal is aborted", async () => {
    const events = ["a", "b"].map((name) => `${JSON.stringify({ type: "ADDED", object: { metadata: { name } } })}\n`);
    await using answering = await startAnswering({ body: events.join("") });
    const leaving = new AbortController();
    const names: string[] = [];
    for await (const { object } of answering.client.watch(ConfigMap, { signal: leaving.signal })) {
      names.push(object.metadata.name);
      leaving.abort();
    }
    assert.equal(names, ["a"]);
  });

  const never = new AbortController().signal;
  const watch: Call = async (client) => {
    for await (const _ of client.watch(ConfigMap)) continue;
  };
  const list: Call = (client) => client.list(ConfigMap);
  const unusable: { [body: string]: { [method: string]: Call } } = {
    "": { ...aboutObjects, create, list },
    null: { ...aboutObjects, create, list, watch },
    '["secret"]': { ...aboutObjects, create, list, watch },
    "<secret>": { ...aboutObjects, create, list, watch },
    '{"secret"': { watch },
    '{"items":[]}': { list },
    '{"metadata":null}': { list },
    '{"type":"ERROR","object":null}': { watch },
    '{"type":"ADDED"}': { watch },
  };
  for (const [body, calls] of Object.entries(unusable))
    test(`names the request of an unusable response (${body || "empty"}) without quoting it`, async () => {
      for (const call of Object.values(calls)) {
        await using answering = await startAnswering({ body: `${body}\n` });
        const { name, message, cause } = await errorOf(call(answering.client, never, ONE));
        assert.match(
          `${name}: ${message}`,
          /^ConnectionError: (\w+ )+"?(\w+ "default\/one"|configmaps) failed: [A-Z]+ http:[^ ?]+(\/one|\/configmaps)[^ ?]* was answered with no [\w ]+, by a proxy or load balancer in front of the API server/,
        );
        assert.is(cause, undefined);
      }
    });
});

suite("watch", (test) => {
  test("yields existing objects and then changes that match its selectors", async () => {
    await using started = await start();
    const { client } = started;
    await client.create(Secret, { metadata: ONE });
    await client.create(ConfigMap, { metadata: { ...ONE, labels: { a: "b" } }, data: { text: "1" } });
    const events = client.watch(ConfigMap, { namespace: "default", labelSelector: "a=b" });
    assert.equal(textOf((await events.next()).value as WatchedEvent<DataObject>), "ADDED one 1");
    await client.create(ConfigMap, { metadata: TWO });
    await client.mergePatch(ConfigMap, ONE, { data: { text: "2" } });
    await client.delete(ConfigMap, ONE);
    assert.equal(await take(events, 2), ["MODIFIED one 2", "DELETED one 2"]);
  });

  test("starts after a resourceVersion, and follows one object by fieldSelector", async () => {
    await using started = await start();
    const { client } = started;
    const { metadata } = await client.create(ConfigMap, { metadata: ONE });
    await client.create(ConfigMap, { metadata: TWO });
    await client.mergePatch(ConfigMap, ONE, { data: { text: "2" } });
    const { resourceVersion } = metadata;
    const options = { namespace: "default", resourceVersion, fieldSelector: "metadata.name=one" };
    assert.equal(await take(client.watch(ConfigMap, options), 1), ["MODIFIED one 2"]);
  });

  test("ends without an error when its signal is aborted", async () => {
    await using started = await start();
    const { client } = started;
    const leaving = new AbortController();
    const events = client.watch(ConfigMap, { namespace: "default", signal: leaving.signal });
    const next = events.next();
    setTimeout(() => leaving.abort(), 50);
    assert.equal(await next, { value: undefined, done: true });
    assert.equal(await take(client.watch(ConfigMap, { signal: leaving.signal }), 1), []);
  });

  test("ends with the server, and throws after a disconnect or 410", async () => {
    await using started = await start();
    const { server, client } = started;
    await client.create(ConfigMap, { metadata: ONE });
    const follow = async (end: () => void, resourceVersion?: string) => {
      const events = client.watch(ConfigMap, { namespace: "default", resourceVersion });
      const first = resourceVersion === undefined ? (await events.next()).value : undefined;
      if (resourceVersion === undefined) assert.is(first && textOf(first), "ADDED one");
      end();
      return take(events, 1);
    };
    assert.equal(await follow(() => server.faults.endWatches()), []);
    const broken = await errorOf(follow(() => server.faults.cutWatches()));
    assert.is(broken.name, "ConnectionError");
    assert.match(broken.message, /^watch of configmaps in "default" failed: /);
    const expired = await errorOf(follow(() => server.faults.expireWatches()));
    assert.match(expired.message, /^watch of configmaps in "default" failed: 410 Expired: /);
    await client.create(ConfigMap, { metadata: TWO });
    server.faults.compact();
    assert.match((await errorOf(follow(() => {}, "1"))).message, /failed: 410 Expired: too old resource version/);
  });

  test("delivers all events to a slow consumer", async () => {
    await using started = await start();
    const { client } = started;
    const text = "x".repeat(100_000);
    for (let index = 0; index < 30; index++)
      await client.create(ConfigMap, { metadata: { name: `c-${index}`, namespace: "default" }, data: { text } });
    const names = new Set<string>();
    for await (const { object } of client.watch(ConfigMap, { namespace: "default" })) {
      await new Promise((resolve) => setTimeout(resolve, 2));
      names.add(object.metadata.name);
      assert.is(object.data?.["text"], text);
      if (names.size === 30) break;
    }
  });

  test("reads no further than its buffers while its consumer is busy, and loses no event", async () => {
    const all = 400;
    const text = "x".repeat(100_000);
    let written = 0;
    await using server = await startScripted((_, response) => {
      const writeMore = () => {
        while (written < all) {
          const object = { metadata: { name: `c-${++written}` }, data: { text } };
          const isTaken = response.write(`${JSON.stringify({ type: "ADDED", object })}\n`);
          if (!isTaken) return void response.once("drain", writeMore);
        }
        response.end();
      };
      writeMore();
    });
    const client = new ApiClient(createConnection({ url: server.url }));
    const events = client.watch(ConfigMap);
    await events.next();
    for (let before = 0; before !== written;) {
      before = written;
      await sleep(500);
    }
    assert.ok(written < all / 2, `${written} events of 100 kB were taken`);
    let count = 1;
    for await (const { object } of events) assert.is(object.metadata.name, `c-${++count}`);
    assert.is(count, all);
    await client.close();
  });
});

suite("scale subresource", (test) => {
  const template = { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "a", image: "a" }] } };
  const spec = { replicas: 1, selector: { matchLabels: { a: "b" } }, template };

  test("is read, patched and applied, with 409 on a conflict", async () => {
    await using started = await start();
    const { client } = started;
    assert.is(await client.getScale(Deployment, ONE), undefined);
    await client.create(Deployment, { metadata: ONE, spec });
    assert.is((await client.getScale(Deployment, ONE))?.spec.replicas, 1);
    assert.is((await client.setScale(Deployment, ONE, { replicas: 2 })).spec.replicas, 2);
    const applied = await client.setScale(Deployment, ONE, { replicas: 3, fieldManager: "autoscaler", apply: true });
    assert.is(applied.spec.replicas, 3);
    assert.is(((await client.get(Deployment, ONE)) as unknown as { spec: typeof spec }).spec.replicas, 3);
    const other = { replicas: 4, fieldManager: "other", apply: true, force: false };
    const conflict = await errorOf(client.setScale(Deployment, ONE, other));
    assert.match(conflict.message, /^scaling of Deployment "default\/one" failed: 409 Conflict: .*autoscaler/);
  });

  test("rejects invalid replicas, and an apply for custom resources, without a request", async () => {
    await using started = await start();
    const { client, requests } = started;
    for (const replicas of [NaN, -1, 1.5, "2" as unknown as number]) {
      const { name, message } = await errorOf(client.setScale(Deployment, ONE, { replicas }));
      const needed = "it needs an integer of 0 or more";
      assert.is(
        `${name}: ${message}`,
        `RangeError: scaling of Deployment "default/one" has ${replicas} for replicas; ${needed}`,
      );
    }
    const options = { replicas: 1, fieldManager: "a", apply: true };
    assert.is(
      (await errorOf(client.setScale(Page, ONE, options))).message,
      'scaling of Page "default/one" cannot be an apply, which the API server has for built-in kinds only; leave apply out',
    );
    assert.equal(requests, []);
  });
});
