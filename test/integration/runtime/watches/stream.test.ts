// What holds between the socket and the consumer of a stream: order, backpressure, and an end in the middle of everything.
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Backoff } from "#runtime/base/wait.js";
import { messageOf } from "#runtime/base/logger.js";
import { waitFor } from "#apiserver/wait-for.js";
import { ApiClient, requesterOf } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { Transport, type StreamConsumer } from "#runtime/client/transport.js";
import { ListWatch } from "#runtime/watch/informer.js";
import { ResourceCache } from "#runtime/cache/resource-cache.js";
import type { DecodedResource } from "#runtime/base/kubernetes-object.js";
import { assert, suite } from "../../../support/suite.js";
import { ConfigMap } from "../page-operator.js";

/** A server of which the test writes every answer. */
async function startScripted(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Streams what the server answers to a consumer. */
async function streamFrom(
  answer: (response: ServerResponse) => void,
  { consumer, signal }: { consumer: StreamConsumer; signal?: AbortSignal },
): Promise<void> {
  await using server = await startScripted((_, response) => answer(response.writeHead(200)));
  const transport = new Transport(createConnection({ url: server.url }));
  try {
    await transport.send({ method: "GET", path: "/", ...(signal === undefined ? {} : { signal }) }, consumer);
  } finally {
    await transport.close();
  }
}

const PIECE = Buffer.alloc(64 * 1024, "x");
const PIECES = 100;

suite("stream", (test) => {
  test("delivers each chunk after the previous one is processed, without loss", async () => {
    let bytes = 0;
    let isBusy = false;
    await streamFrom(
      (response) => {
        for (let piece = 0; piece < PIECES; piece++) response.write(PIECE);
        response.end();
      },
      {
        consumer: {
          async onData(chunk) {
            assert.not(isBusy, "a piece came too early");
            isBusy = true;
            await new Promise((resolve) => setImmediate(resolve));
            bytes += chunk.length;
            isBusy = false;
          },
        },
      },
    );
    assert.is(bytes, PIECES * PIECE.length);
  });

  test("applies backpressure to the server while the consumer is busy", async () => {
    let goOn = () => {};
    let written = 0;
    const abort = new AbortController();
    const ended = streamFrom(
      (response) => {
        const write = () => {
          while (written < 2_000) {
            written++;
            if (!response.write(PIECE)) return void response.once("drain", write);
          }
        };
        write();
      },
      { consumer: { onData: () => new Promise<void>((resolve) => (goOn = resolve)) }, signal: abort.signal },
    );
    let before = -1;
    await waitFor("nothing is written any more", () => {
      const isHeld = written === before;
      before = written;
      return isHeld && written > 0;
    });
    assert.ok(written < 2_000, `${written} pieces were taken`);
    abort.abort(new Error("enough"));
    assert.is(await ended.then(() => "", messageOf), "enough");
    goOn();
  });

  test("rejects if the consumer rejects", async () => {
    const ended = streamFrom((response) => response.write("x"), {
      consumer: { onData: () => Promise.reject(new Error("no event")) },
    });
    assert.is(await ended.then(() => "", messageOf), "no event");
  });

  test("rejects if the connection breaks while a chunk is processed", async () => {
    let finish: (() => void) | undefined;
    const ended = streamFrom((response) => void response.write("x", () => setImmediate(() => response.destroy())), {
      consumer: { onData: () => new Promise<void>((resolve) => (finish = resolve)) },
    });
    const failure = ended.then(() => "", messageOf);
    await waitFor("a piece is worked on", () => finish !== undefined);
    finish!();
    assert.match(await failure, "got no answer");
  });
});

const EVENTS = 20_000;

/** Follows a server that has so many events in one go, and takes down what arrives. */
async function followMany({ onEvent }: { onEvent: (seen: number, abort: AbortController) => void }) {
  const bookmark = { metadata: { resourceVersion: "1", annotations: { "k8s.io/initial-events-end": "true" } } };
  const lineOf = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`;
  await using server = await startScripted(({ url = "" }, response) => {
    response.writeHead(200);
    if (!url.includes("sendInitialEvents")) return response.flushHeaders();
    response.write(lineOf("BOOKMARK", bookmark));
    const text = Array.from({ length: EVENTS }, (_, index) => {
      const metadata = { name: `a${index}`, namespace: "default", uid: `${index}`, resourceVersion: `${index + 2}` };
      return lineOf("ADDED", { apiVersion: "v1", kind: "ConfigMap", metadata, data: { text: "}{".repeat(20) } });
    });
    response.end(text.join(""));
  });
  const client = new ApiClient(createConnection({ url: server.url }));
  const abort = new AbortController();
  const names: string[] = [];
  const cache = new (class extends ResourceCache {
    override observe(entry: DecodedResource) {
      super.observe(entry);
      names.push(entry.object.metadata.name);
      onEvent(names.length, abort);
    }
  })();
  const backoff = new Backoff({ initialMs: 5, factor: 1.5, maxMs: 100 });
  const context = { fieldManagers: [], requester: requesterOf(client), cache, backoff };
  await new ListWatch({ definition: ConfigMap.definition }, context).run(abort.signal);
  await new Promise((resolve) => setTimeout(resolve, 20));
  await client.close();
  return names;
}

suite("list-watch with 20,000 events", (test) => {
  test("delivers events in order, and yields to the event loop", async () => {
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const names = await followMany({ onEvent: (seen, abort) => seen === EVENTS && abort.abort(new Error("seen")) });
    clearInterval(timer);
    assert.is(
      names.findIndex((name, index) => name !== `a${index}`),
      -1,
    );
    assert.is(names.length, EVENTS);
    assert.ok(turns > 1, "nobody else had a turn");
  });

  test("delivers no event after it is aborted", async () => {
    const names = await followMany({
      onEvent(seen, abort) {
        if (seen === 1_000) setImmediate(() => abort.abort(new Error("enough")));
        if (abort.signal.aborted) throw new Error("an event came after the end");
      },
    });
    assert.ok(names.length < EVENTS, "all of them came");
  });
});
