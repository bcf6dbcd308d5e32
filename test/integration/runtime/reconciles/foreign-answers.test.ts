import { once } from "node:events";
import { createServer, type OutgoingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { createConnection } from "#runtime/client/connection.js";
import { ApiRequester, Transport } from "#runtime/client/transport.js";
import { assert, suite } from "../../../support/suite.js";

const ANSWERS = {
  "in HTML": { headers: { "content-type": "text/html; charset=utf-8" }, body: "<html>log in</html>" },
  "in gzip": { headers: { "content-type": "application/json", "content-encoding": "gzip" }, body: gzipSync("{}") },
};

const REQUEST = { method: "GET", path: "/api?token=secret" } as const;

async function startAnswering(headers: OutgoingHttpHeaders, body: string | Buffer) {
  const server = createServer((_, response) => response.writeHead(200, headers).end(body)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const transport = new Transport(createConnection({ server: url }));
  const close = async () => {
    await transport.close();
    server.close();
  };
  return { transport, url, [Symbol.asyncDispose]: close };
}

suite("response of a proxy", (test) => {
  for (const [form, { headers, body }] of Object.entries(ANSWERS))
    test(`${form}, fails requests and streams with an error that names a proxy or load balancer`, async () => {
      await using answering = await startAnswering(headers, body);
      const { transport, url } = answering;
      const received: Buffer[] = [];
      const failures = await Promise.all(
        [
          new ApiRequester(transport, { maxAttempts: 1 }).send(REQUEST),
          transport.send(REQUEST, { onData: (chunk) => void received.push(chunk) }),
        ].map((answer) => answer.then(() => "answered", String)),
      );
      const expected = `ConnectionError: GET ${url}/api was answered ${form}, by a proxy or load balancer in front of the API server`;
      assert.equal(failures, [expected, expected]);
      assert.is(received.length, 0);
    });

  test("with JSON that is not an object, fails with the method and path of the request", async () => {
    await using answering = await startAnswering({ "content-type": "application/json" }, "null");
    const sent = new ApiRequester(answering.transport, { maxAttempts: 1 }).send(REQUEST);
    const { message } = await sent.then(
      () => new Error("answered"),
      (error: Error) => error,
    );
    const asked = `GET ${answering.url}/api`;
    assert.is(
      message,
      `${asked} was answered with no object in JSON, by a proxy or load balancer in front of the API server`,
    );
  });
});
