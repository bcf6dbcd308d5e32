// Caches that follow ConfigMaps by a list-watch, and servers and proxies that misbehave as a test wants.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { once } from "node:events";
import { Backoff } from "#runtime/base/wait.js";
import { messageOf } from "#runtime/base/logger.js";
import { waitFor } from "#apiserver/wait-for.js";
import { ApiClient, requesterOf } from "#runtime/client/api-client.js";
import { createConnection, type ConnectionOptions } from "#runtime/client/connection.js";
import { ResourceCache } from "#runtime/cache/resource-cache.js";
import type { DecodedResource } from "#runtime/base/kubernetes-object.js";
import { ListWatch } from "#runtime/watch/informer.js";
import { ConfigMap } from "../page-operator.js";

const QUICK = { initialMs: 5, factor: 1.5, maxMs: 100 };

/** A cache that follows the ConfigMaps of a server. */
export function follow(
  connection: ConnectionOptions,
  options: { quietMs?: number; answerTimeoutMs?: number; initialTimeoutMs?: number } = {},
) {
  const client = new ApiClient(createConnection(connection));
  const failures: string[] = [];
  const versions: string[] = [];
  const listed: string[] = [];
  let replacements = 0;
  let isListing = false;
  const abort = new AbortController();
  const cache: ResourceCache = new (class extends ResourceCache {
    override beginReplace(options: { isRestored?: boolean } = {}) {
      isListing = true;
      super.beginReplace(options);
    }
    override observe(entry: DecodedResource) {
      if (isListing) listed.push(entry.object.metadata.name);
      super.observe(entry);
    }
    override endReplace(version: string) {
      isListing = false;
      replacements++;
      versions.push(version);
      super.endReplace(version);
    }
    override observeVersion(version: string) {
      versions.push(version);
      super.observeVersion(version);
    }
  })();
  const context = {
    fieldManagers: [],
    requester: requesterOf(client),
    cache,
    events: { onFailure: (error: unknown) => void failures.push(messageOf(error)) },
    backoff: new Backoff(QUICK),
    ...options,
  };
  const ended = new ListWatch({ definition: ConfigMap.definition }, context).run(abort.signal);
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

/** Writes a ConfigMap with a text. */
export async function write({ client }: Followed, name: string, text: string): Promise<void> {
  const object = { metadata: { name, namespace: "default" }, data: { text } };
  await client.apply(ConfigMap, object, { fieldManager: "test" });
}

/** Waits until the cache has a ConfigMap with a text. */
export async function untilText(followed: Followed, name: string, text: string): Promise<void> {
  await waitFor(`${name} says ${text}`, () => followed.textOf(name) === text);
}

/** A server of which the test writes every answer. */
export async function startScripted(answer: (request: IncomingMessage, response: ServerResponse) => void) {
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
export async function startProxy(target: string) {
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

/** Builds a ConfigMap of a version. */
export const configMap = (name: string, resourceVersion: string, text = "") => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, namespace: "default", uid: name, resourceVersion },
  data: { text },
});

/** Builds the line of an event. */
export const line = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`;

/** Builds the bookmark behind the whole state. */
export const endOfInitialEvents = (resourceVersion: string) =>
  line("BOOKMARK", { metadata: { resourceVersion, annotations: { "k8s.io/initial-events-end": "true" } } });

/** Tells whether a request is a watch. */
export const isWatch = ({ url = "" }: IncomingMessage) => url.includes("watch=true");
/** Tells whether a request is a watch that begins with the whole state. */
export const isWatchList = ({ url = "" }: IncomingMessage) => url.includes("sendInitialEvents=true");

/** Answers with a list. */
export function list(response: ServerResponse, items: object[], metadata: object): void {
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ kind: "ConfigMapList", apiVersion: "v1", metadata, items }));
}
