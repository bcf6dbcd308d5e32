import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { createConnection } from "#runtime/client/connect/connection.js";
import { ApiRequester } from "#runtime/client/requester.js";
import { Transport } from "#runtime/client/transport.js";
import { assert, suite } from "../../../support/suite.js";

const ANSWERS = {
  HTML: { headers: { "content-type": "text/html; charset=utf-8" }, body: "<html>log in</html>" },
  gzip: { headers: { "content-type": "application/json", "content-encoding": "gzip" }, body: gzipSync("{}") },
};

suite("an answer that the API server does not give", (test) => {
  for (const [form, { headers, body }] of Object.entries(ANSWERS))
    test(`in ${form}, is told to come from something in between, to requests and to streams`, async () => {
      const server = createServer((_, response) => response.writeHead(200, headers).end(body)).listen(0, "127.0.0.1");
      await once(server, "listening");
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const transport = new Transport(createConnection({ server: url }));
      const received: Buffer[] = [];
      try {
        const request = { method: "GET", path: "/api?token=secret" } as const;
        const failures = await Promise.all(
          [
            new ApiRequester(transport, { maxAttempts: 1 }).send(request),
            transport.send(request, { onData: (chunk) => void received.push(chunk) }),
          ].map((answer) => answer.then(() => "answered", String)),
        );
        const expected = `ConnectionError: GET ${url}/api was answered in ${form}, by something between here and the API server`;
        assert.equal(failures, [expected, expected]);
        assert.is(received.length, 0);
      } finally {
        await transport.close();
        server.close();
      }
    });
});
