// How much an API server is asked for at once, and how long it is waited for.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { waitFor } from "#apiserver/wait-for.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { failureOf } from "../../../support/runtime/failures.js";
import { assert, suite } from "../../../support/suite.js";
import { Page } from "../page-operator.js";

/** Starts a server that answers nothing until it is told to. */
async function startMuteServer() {
  const asked: ServerResponse[] = [];
  const server = createServer((_, response) => void asked.push(response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ asked, url },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

suite("client limits", (test) => {
  test("fail a request after requestTimeoutMs", async () => {
    await using server = await startMuteServer();
    const client = new ApiClient(createConnection({ url: server.url }), { maxAttempts: 1, requestTimeoutMs: 300 });
    const failure = await failureOf(() => client.get(Page, { name: "one", namespace: "default" }));
    assert.match(failure, /got no answer: Headers Timeout Error$/);
    assert.is(server.asked.length, 1);
    await client.close();
  });

  test("allow at most maxConnections concurrent requests", async () => {
    await using server = await startMuteServer();
    const client = new ApiClient(createConnection({ url: server.url }), { maxConnections: 2 });
    const page = { apiVersion: "example.com/v1", kind: "Page", metadata: { name: "one" } };
    const all = [1, 2, 3, 4, 5].map(() => client.get(Page, { name: "one", namespace: "default" }));
    for (let answered = 0; answered < 5; answered++) {
      await waitFor("it is asked", () => server.asked.length === Math.min(answered + 2, 5));
      server.asked[answered]!.setHeader("content-type", "application/json").end(JSON.stringify(page));
    }
    assert.is((await Promise.all(all)).length, 5);
    await client.close();
  });
});
