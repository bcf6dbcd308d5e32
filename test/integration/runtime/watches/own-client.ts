// A client of a test's own, apart from that of an operator.
import type { ApiServer } from "#apiserver/index.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import type { RequesterOptions } from "#runtime/client/transport.js";

/** A client of its own, with what it was made to say. */
export function createClient(server: ApiServer, options: RequesterOptions = {}) {
  const client = new ApiClient(createConnection({ url: server.url, token: server.token }), options);
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() });
}
