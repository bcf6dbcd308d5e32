import { once } from "node:events";
import { connect } from "node:net";
import { startApiServer } from "#apiserver/server.js";
import { assert, suite } from "../../../support/suite.js";

suite("closing the API server", (test) => {
  for (const tls of [true, false]) {
    test(`does not wait for a client that has connected and sent nothing${tls ? ", not even a TLS handshake" : ""}`, async () => {
      const server = await startApiServer({ tls });
      const { hostname, port } = new URL(server.url);
      const client = connect(Number(port), hostname);
      await once(client, "connect");
      // The server takes a connection in a later turn than the client.
      await fetch(`http://${hostname}:${port}/`).catch(() => undefined);
      const broken = once(client, "close");
      client.on("error", () => undefined).resume();
      await server.close();
      assert.equal(await broken, [false]);
    });
  }
});
