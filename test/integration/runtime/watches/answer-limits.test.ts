// How much a client takes of a server that sends without end, or of something in its place.
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Backoff } from "#runtime/base/wait.js";
import { messageOf } from "#runtime/base/logger.js";
import { ApiClient, requesterOf, type ApiClientOptions } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { ResourceCache } from "#runtime/cache/resource-cache.js";
import { ListWatch } from "#runtime/watch/informer.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { assert, suite } from "../../../support/suite.js";
import { ConfigMap } from "../page-operator.js";

const MIB = 2 ** 20;
const ref = { name: "a", namespace: "default" };
const definition = ConfigMap.definition;

/** A server of which the test writes every answer, and a client of it. */
async function startScripted(
  answer: (response: ServerResponse, url: URL, request: IncomingMessage) => void,
  options: ApiClientOptions = {},
) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.on("error", () => {});
    answer(response, new URL(request.url ?? "", "http://a"), request);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = new ApiClient(createConnection({ url }), options);
  return {
    ...{ asked, url, client },
    async [Symbol.asyncDispose]() {
      await client.close();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Sends pieces for as long as the client takes them. */
function sendForever(response: ServerResponse, piece: Buffer | string): void {
  const send = () => {
    while (!response.destroyed && response.write(piece));
  };
  response.on("drain", send);
  send();
}

/** Lists pages, each with the token that follows from the one it was asked with. */
const pagesWith =
  (next: (token: string) => string | undefined, items = "[]") =>
  (response: ServerResponse, { searchParams }: URL) => {
    const token = next(searchParams.get("continue") ?? "");
    const metadata = JSON.stringify({ resourceVersion: "1", ...(token !== undefined && { continue: token }) });
    response.end(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":${metadata},"items":${items}}`);
  };

suite("response limits", (test) => {
  test("reject a response by its content-length without a retry, and name request and limit", async () => {
    await using server = await startScripted((response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": 600 * MIB });
      sendForever(response, Buffer.alloc(MIB, " "));
    });
    const before = process.memoryUsage().arrayBuffers;
    assert.is(
      await failureOf(() => server.client.get(ConfigMap, ref)),
      `get ConfigMap "default/a" failed: GET ${server.url}/api/v1/namespaces/default/configmaps/a was answered with a body of more than 256 MiB, ` +
        "the limit of the client (maxResponseBytes)",
    );
    assert.ok(process.memoryUsage().arrayBuffers - before < 50 * MIB);
    assert.is(server.asked.length, 1);
  });

  for (const status of [200, 404, 500])
    test(`reject an endless response with status ${status} without a retry`, async () => {
      await using server = await startScripted(
        (response) => sendForever(response.writeHead(status), Buffer.alloc(MIB, "{")),
        { maxResponseBytes: 3 * MIB },
      );
      const update = () => server.client.update(ConfigMap, { metadata: { ...ref } });
      for (const call of [() => server.client.get(ConfigMap, ref), () => server.client.list(ConfigMap), update]) {
        const asked = server.asked.length;
        assert.match(await failureOf(call), /was answered with a body of more than 3 MiB, the limit of the client/);
        assert.is(server.asked.length - asked, 1);
      }
    });

  test("accept a response of exactly maxResponseBytes", async () => {
    const body = JSON.stringify({ metadata: { ...ref } });
    await using server = await startScripted((response) => response.end(body), { maxResponseBytes: body.length });
    assert.is((await server.client.get(ConfigMap, ref))?.metadata.name, "a");
  });

  const endless: {
    readonly [what: string]: readonly [next: (token: string) => string, message: RegExp, pages: number];
  } = {
    "whose continue token is repeated": [() => "same", /a continue token that an earlier page had, after 1 pages/, 2],
    "whose continue tokens form a cycle": [
      (token) => String((Number(token) + 1) % 5),
      /a continue token that an earlier page had, after 5 pages: the list would never end/,
      6,
    ],
    "whose continue tokens never end": [
      (token) => String(Number(token) + 1),
      /with a continue token after 10000 pages, the limit of the client for one list/,
      10_000,
    ],
  };
  for (const [what, [next, message, pages]] of Object.entries(endless)) {
    const declare = pages > 1_000 ? test.thorough : test;
    declare(
      `fail a list ${what}, and name the request`,
      async () => {
        await using server = await startScripted(pagesWith(next));
        const failure = await failureOf(() => server.client.list(ConfigMap, { namespace: "default" }));
        assert.match(failure, /^list configmaps in "default" failed: GET http.*\/configmaps was answered with a/);
        assert.match(failure, message);
        assert.is(server.asked.length, pages);
      },
      { timeoutMs: 120_000 },
    );
  }

  test("fail the list of an informer with a repeated continue token, and relist", async () => {
    let isGood = false;
    await using server = await startScripted((response, url) => {
      if (url.searchParams.has("sendInitialEvents")) return response.writeHead(400).end("{}");
      if (url.searchParams.has("watch")) return response.writeHead(200).flushHeaders();
      pagesWith(() => (isGood ? undefined : "same"))(response, url);
    });
    const failures: string[] = [];
    const abort = new AbortController();
    const onFailure = (error: unknown) => {
      failures.push(messageOf(error));
      isGood = true;
    };
    const context = {
      ...{ fieldManagers: [], requester: requesterOf(server.client), cache: new ResourceCache() },
      backoff: new Backoff({ initialMs: 5, factor: 1.5, maxMs: 100 }),
      events: { onFailure, onListed: () => abort.abort(new Error("listed")) },
    };
    await new ListWatch({ definition }, context).run(abort.signal);
    assert.is(failures.length, 1);
    assert.match(failures[0] ?? "", /a continue token that an earlier page had/);
  });

  test("fail a watch with an endless event, and name request and limit", async () => {
    await using server = await startScripted(
      (response) => sendForever(response.writeHead(200), Buffer.alloc(64 * 1024, " ")),
      { maxEventBytes: 2 * MIB },
    );
    const message =
      /^watch of configmaps failed: GET http.*\/configmaps was answered with an event of more than 2 MiB, the limit of the client \(maxEventBytes\)$/;
    const follow = async () => {
      for await (const _ of server.client.watch(ConfigMap));
    };
    assert.match(await failureOf(follow), message);
    assert.is(server.asked.length, 1);
  });

  test("fail the watch of an informer with an endless event, and restart it", async () => {
    const bookmark = { metadata: { resourceVersion: "1", annotations: { "k8s.io/initial-events-end": "true" } } };
    const line = `${JSON.stringify({ type: "BOOKMARK", object: { apiVersion: "v1", kind: "ConfigMap", ...bookmark } })}\n`;
    const failures: string[] = [];
    await using server = await startScripted((response) => {
      response.writeHead(200);
      if (failures.length > 0) response.write(line);
      else sendForever(response, Buffer.alloc(64 * 1024, " "));
    });
    const abort = new AbortController();
    const onFailure = (error: unknown) => void failures.push(messageOf(error));
    const context = {
      ...{ fieldManagers: [], requester: requesterOf(server.client), cache: new ResourceCache() },
      backoff: new Backoff({ initialMs: 5, factor: 1.5, maxMs: 100 }),
      events: { onFailure, onListed: () => abort.abort(new Error("listed")) },
    };
    await new ListWatch({ definition }, context).run(abort.signal);
    assert.is(failures.length, 1);
    assert.match(failures[0] ?? "", /was answered with an event of more than 32 MiB, the limit of the client/);
  });

  test.thorough(
    "accept a list of 100,000 objects in pages of 1 MB",
    async () => {
      const one = JSON.stringify({
        metadata: { name: "a", namespace: "default" },
        data: { text: "x".repeat(2_000) },
      });
      const items = `[${Array.from({ length: 500 }, () => one).join(",")}]`;
      const next = (token: string) => (Number(token) === 199 ? undefined : String(Number(token) + 1));
      await using server = await startScripted(pagesWith(next, items));
      let count = 0;
      for await (const page of server.client.listMetadata(ConfigMap)) count += page.length;
      assert.is(count, 100_000);
    },
    { timeoutMs: 60_000 },
  );

  for (const option of ["maxResponseBytes", "maxEventBytes"])
    test(`reject 0 for ${option}`, () => {
      assert.throws(() => new ApiClient(createConnection({ url: "http://a" }), { [option]: 0 }), new RegExp(option));
    });
});
