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

suite("watches through a WebSocket", (test) => {
  test("each event is a text, short or long", async () => {
    await using server = await startTestApiServer({ tls: true });
    using socket = await openOrThrow(server, `${CONFIG_MAPS}?watch=true`);
    const long = "x".repeat(100_000);
    await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("short") });
    await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("long", { long }) });
    await apiRequest(server, `DELETE ${CONFIG_MAPS}/short`);
    const events = [await nextEvent(socket), await nextEvent(socket), await nextEvent(socket)];
    assert.equal(events, ["ADDED short", "ADDED long", "DELETED short"]);
  });

  test("the end of the watch closes it", async () => {
    await using server = await startTestApiServer({ tls: true });
    using socket = await openOrThrow(server, `${CONFIG_MAPS}?watch=true&timeoutSeconds=1`);
    assert.is(await socket.next(), undefined);
  });

  test("a client that says goodbye is let go", async () => {
    await using server = await startTestApiServer({ tls: true });
    using socket = await openOrThrow(server, `${CONFIG_MAPS}?watch=true`);
    socket.close();
    assert.is(await socket.next(), undefined);
  });

  test("who asks for another protocol is answered as usual", async () => {
    await using server = await startTestApiServer({ tls: true });
    const headers = { connection: "Upgrade", upgrade: "h2c" };
    const created = await apiRequest(server, `POST ${CONFIG_MAPS}`, { body: configMap("a"), headers });
    assert.is(created.status, 201);
    const list = await apiRequest(server, `GET ${CONFIG_MAPS}`, { headers });
    assert.is(list.body.items?.length, 1);
  });

  test("a watch that is refused is refused in HTTP", async () => {
    await using server = await startTestApiServer({ tls: true });
    assert.is(await openWebSocket(server, `${CONFIG_MAPS}?watch=true&fieldSelector=data.x=y`), 400);
    assert.is(await openWebSocket({ ...server, token: "wrong" }, `${CONFIG_MAPS}?watch=true`), 401);
  });
});
