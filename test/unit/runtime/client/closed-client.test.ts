import { ConnectionError } from "#runtime/base/errors.js";
import { createConnection, type Connection } from "#runtime/client/connection.js";
import { ApiRequester, Transport } from "#runtime/client/transport.js";
import { assert, suite } from "../../../support/suite.js";

const connection: Connection = createConnection({ server: "http://127.0.0.1:1" });

function failureOf(requester: ApiRequester, what: string): Promise<Error> {
  return assert.rejects(requester.send({ method: "GET", path: "/", what }), "the client is closed");
}

suite("closed client", (test) => {
  test("fails each new request with its own error", async () => {
    const transport = new Transport(connection);
    const requester = new ApiRequester(transport);
    await transport.close();
    const errors = [await failureOf(requester, "get a"), await failureOf(requester, "get b")];
    assert.equal(
      errors.map(({ message }) => message),
      ["get a failed: the client is closed", "get b failed: the client is closed"],
    );
    assert.ok(errors.every(({ name }) => name === ConnectionError.name));
  });

  test("fails each request that waits for a retry with its own error", async () => {
    const transport = new Transport(connection);
    const requester = new ApiRequester(transport, { observe: () => void setTimeout(() => void transport.close(), 20) });
    const messages = (await Promise.all(["get a", "get b"].map((what) => failureOf(requester, what)))).map(
      ({ message }) => message,
    );
    assert.equal(messages, ["get a failed: the client is closed", "get b failed: the client is closed"]);
  });

  test("fails each request that waits for credentials with its own error", async () => {
    const transport = new Transport({ ...connection, credentials: () => new Promise(() => {}) });
    const requester = new ApiRequester(transport);
    const failing = ["get a", "get b"].map((what) => failureOf(requester, what));
    await transport.close();
    const messages = (await Promise.all(failing)).map(({ message }) => message);
    assert.equal(messages, ["get a failed: the client is closed", "get b failed: the client is closed"]);
  });
});
