import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connect/connection.js";

/** A client for what has to have one and sends nothing: its server does not exist. */
export const unusedClient = new ApiClient(createConnection({ url: "http://127.0.0.1:1" }));
