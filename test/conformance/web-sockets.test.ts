// Some clients, fabric8's for Java first, watch through a WebSocket: each event is a text.
import { apiRequest } from "../support/api/api-request.js";
import { CONFIG_MAPS, configMap } from "../support/api/api-fixtures.js";
import { startTestApiServer, type TestApiServer } from "../support/api/api-server.js";
import { openWebSocket, type WebSocketClient } from "../support/conformance/conformance-web-socket.js";
import { assert, suite } from "../support/suite.js";
import type { WatchEvent } from "../support/api/watch-client.js";

async function openOrThrow(server: TestApiServer, path: string): Promise<WebSocketClient> {
  const socket = await openWebSocket(server, path);
  if (typeof socket === "number") throw new Error(`refused with ${socket}`);
  return socket;
}

async function nextEvent(socket: WebSocketClient): Promise<string> {
  const { type, object } = JSON.parse((await socket.next()) ?? "null") as WatchEvent;
  return `${type} ${object.metadata.name}`;
}

suite("WebSocket watch", (test) => {
  test("sends each event as one text message, also of 100 kB", async () => {
    await using server = await startTestApiServer({ tls: true });
    using socket = await openOrThrow(server, `${CONFIG_MAPS}?watch=true`);
    const long = "x".repeat(100_000);
    await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("short") });
    await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("long", { long }) });
    await apiRequest(server, `DELETE ${CONFIG_MAPS}/short`);
    const events = [await nextEvent(socket), await nextEvent(socket), await nextEvent(socket)];
    assert.equal(events, ["ADDED short", "ADDED long", "DELETED short"]);
  });

  test("is closed when the watch times out", async () => {
    await using server = await startTestApiServer({ tls: true });
    using socket = await openOrThrow(server, `${CONFIG_MAPS}?watch=true&timeoutSeconds=1`);
    assert.is(await socket.next(), undefined);
  });

  test("is closed when the client closes it", async () => {
    await using server = await startTestApiServer({ tls: true });
    using socket = await openOrThrow(server, `${CONFIG_MAPS}?watch=true`);
    socket.close();
    assert.is(await socket.next(), undefined);
  });

  test("ignores upgrades to other protocols and answers over HTTP", async () => {
    await using server = await startTestApiServer({ tls: true });
    const headers = { connection: "Upgrade", upgrade: "h2c" };
    const created = await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("a"), headers });
    assert.is(created.status, 201);
    const list = await apiRequest(server, `GET ${CONFIG_MAPS}`, { headers });
    assert.is(list.body.items?.length, 1);
  });

  test("rejects invalid watches over HTTP with 400 or 401", async () => {
    await using server = await startTestApiServer({ tls: true });
    assert.is(await openWebSocket(server, `${CONFIG_MAPS}?watch=true&fieldSelector=data.x=y`), 400);
    assert.is(await openWebSocket({ ...server, token: "wrong" }, `${CONFIG_MAPS}?watch=true`), 401);
  });
});
