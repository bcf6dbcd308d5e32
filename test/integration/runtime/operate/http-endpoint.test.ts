// What clients that are slow, many, or send nonsense get from the HTTP servers of an operator.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Readable } from "node:stream";
import { waitFor } from "#apiserver/wait-for.js";
import { createLeveledLogger, createLogger } from "#runtime/base/logger.js";
import { HttpEndpoint, type EndpointHandler, type HttpEndpointOptions } from "#runtime/operate/http-endpoint.js";
import { changeLevel } from "#runtime/operate/debug-endpoint.js";
import { measureLostTime } from "../../../support/runtime/lost-time.js";
import { assert, suite } from "../../../support/suite.js";

const lost = measureLostTime();
const GET = "GET /metrics HTTP/1.1\r\nhost: a\r\n";

/** A client that sends what is not quite HTTP. */
interface RawClient extends Disposable {
  readonly socket: Socket;
  /** What was answered so far. */
  answer(): string;
  isClosed(): boolean;
}

async function serve(handle?: EndpointHandler, more: Partial<HttpEndpointOptions> = {}) {
  const logs: string[] = [];
  const write = (line: string) =>
    void logs.push(`${(JSON.parse(line) as { level: string; message: string }).level} ${line}`);
  const answer: EndpointHandler = ({ pathname }) =>
    pathname === "/metrics" ? { status: 200, body: "metrics" } : undefined;
  const endpoint = new HttpEndpoint({
    ...{ what: "the metrics", setting: "metricsBindAddress", address: { host: "127.0.0.1", port: 0 } },
    ...{ logger: createLogger("debug", { write }), handle: handle ?? answer },
    ...more,
  });
  await endpoint.open();
  const send = (text: string): RawClient => {
    const socket = connect(endpoint.port, "127.0.0.1");
    const received: Buffer[] = [];
    let isClosed = false;
    socket.on("data", (chunk) => void received.push(chunk));
    socket.on("error", () => {});
    socket.on("close", () => (isClosed = true));
    if (text !== "") socket.write(text);
    return {
      ...{ socket, answer: () => Buffer.concat(received).toString(), isClosed: () => isClosed },
      [Symbol.dispose]: () => void socket.destroy(),
    };
  };
  const problems = () => logs.filter((line) => /^(warn|error) /.test(line));
  return { endpoint, send, problems, [Symbol.asyncDispose]: () => endpoint.close() };
}

const untilClosed = (client: RawClient, timeoutMs: number) =>
  waitFor("the connection is closed", () => client.isClosed(), { timeoutMs });

suite("HTTP endpoint", (test) => {
  const targets: { readonly [target: string]: number } = {
    ...{ "//": 404, "//metrics": 404, "//a/metrics": 404, "/\\metrics": 404, "/%": 404, "/..": 404, "/:80": 404 },
    ...{ "http://[": 400, "http://a:99999/metrics": 400, metrics: 400, "*": 400, "?": 400, "mailto:a": 400 },
    ...{ "/metrics?%": 200, "/metrics#a": 200, "http://a/metrics": 200 },
  };
  for (const [target, status] of Object.entries(targets))
    test(`answers ${status} to GET ${target} without logging an error`, async () => {
      await using server = await serve();
      using client = server.send(`GET ${target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
      await untilClosed(client, 5_000);
      assert.match(client.answer(), new RegExp(`^HTTP/1.1 ${status} `));
      assert.equal(server.problems(), []);
    });

  const nonsense: { readonly [what: string]: readonly [text: string, status: number] } = {
    "a request that is not HTTP": ["\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 is a TLS client\r\n\r\n", 400],
    "a target with a space": ["GET /a b HTTP/1.1\r\nhost: a\r\n\r\n", 400],
    "a request without host": ["GET /metrics HTTP/1.1\r\n\r\n", 400],
    "two content lengths": [`${GET}content-length: 1\r\ncontent-length: 2\r\n\r\n`, 400],
    "headers of 20 KB": [`${GET}a: ${"b".repeat(20_000)}\r\n\r\n`, 431],
  };
  for (const [what, [text, status]] of Object.entries(nonsense))
    test(`answers ${status} to ${what}, and closes the connection`, async () => {
      await using server = await serve();
      using client = server.send(text);
      await untilClosed(client, 5_000);
      assert.match(client.answer(), new RegExp(`^HTTP/1.1 ${status} `));
      assert.equal(server.problems(), []);
    });

  test("closes a connection whose request is incomplete after 5 s", async () => {
    const levels = { ...createLeveledLogger(createLogger("silent")), names: [] };
    await using server = await serve(
      (_, request) => (request.method === "PUT" ? changeLevel(levels, request, undefined) : { status: 200, body: "" }),
      { methods: ["GET", "PUT"] },
    );
    const put = "PUT /debug/log-levels HTTP/1.1\r\nhost: a\r\n";
    using silent = server.send("");
    using headers = server.send(GET);
    using body = server.send(`${put}content-length: 20\r\n\r\n{"level":`);
    using unread = server.send(`${GET}content-length: 20\r\n\r\nabc`);
    using chunked = server.send(`${put}transfer-encoding: chunked\r\n\r\n1\r\na\r\n`);
    using dripping = server.send(GET);
    using second = server.send(`${GET}\r\n${GET}`);
    const drip = setInterval(() => dripping.socket.write("a: b\r\n"), 500);
    try {
      const began = performance.now();
      for (const client of [silent, headers, body, unread, chunked, dripping, second]) await untilClosed(client, 9_000);
      const tookMs = performance.now() - began;
      assert.ok(tookMs > 3_000 && tookMs < 6_000 + lost.since(began), `${Math.round(tookMs)} ms`);
    } finally {
      clearInterval(drip);
    }
    assert.equal(server.problems(), []);
  });

  test("rejects connections above maxConnections until others are closed or idle", async () => {
    await using server = await serve(undefined, { maxConnections: 4 });
    const held = [1, 2, 3, 4].map(() => server.send(GET));
    await Promise.all(held.map(({ socket }) => once(socket, "ready")));
    using refused = server.send(`${GET}\r\n`);
    await untilClosed(refused, 3_000);
    assert.is(refused.answer(), "");
    // A client that keeps its connection for later does not hold up another one.
    for (const { socket } of held) socket.write("\r\n");
    await waitFor("all are answered", () => held.every((client) => client.answer().endsWith("metrics")));
    await waitFor("another one is served", async () => {
      using client = server.send(`${GET}\r\n`);
      await waitFor("it is closed or answered", () => client.isClosed() || client.answer() !== "");
      return client.answer().startsWith("HTTP/1.1 200 ");
    });
    for (const client of held) client[Symbol.dispose]();
    assert.equal(server.problems(), []);
  });

  test("aborts a response that its client does not read", async () => {
    let isDestroyed = false;
    const endless = () => {
      const body = new Readable({
        read: () => void body.push(Buffer.alloc(1 << 20)),
        destroy: (error, done) => void ((isDestroyed = true), done(error)),
      });
      return { status: 200, body };
    };
    await using server = await serve(endless, { stallTimeoutMs: 500 });
    using client = server.send(`${GET}\r\n`);
    client.socket.pause();
    await waitFor("the answer is broken off", () => isDestroyed);
    assert.equal(server.problems(), []);
  });
});
