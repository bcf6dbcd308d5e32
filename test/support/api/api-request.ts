import * as http from "node:http";
import * as https from "node:https";

/** The connection to an API server. */
export interface Connection {
  url: string;
  token: string;
  /** The CA certificate in PEM; undefined for plain HTTP. */
  ca?: string;
}

/** A response of an API server. `body` is parsed JSON, or the text if it is not JSON. */
export interface ApiAnswer<T = ApiObject> {
  status: number;
  headers: http.IncomingHttpHeaders;
  text: string;
  body: T;
}

/** The fields that tests read from any object, list, or Status. */
export interface ApiObject {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    generateName?: string;
    namespace?: string;
    uid: string;
    resourceVersion: string;
    generation?: number;
    deletionTimestamp?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    finalizers?: string[];
    managedFields?: { manager: string; operation: string; subresource?: string }[];
    ownerReferences?: {
      apiVersion: string;
      kind: string;
      name: string;
      uid: string;
      controller?: boolean;
      blockOwnerDeletion?: boolean;
    }[];
  };
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
  items?: ApiObject[];
}

/** The options of a request. A body that is neither a string nor bytes is sent as JSON. */
export interface ApiRequestOptions {
  body?: unknown;
  contentType?: string;
  headers?: Record<string, string>;
  /** Keeps connections alive between requests. */
  agent?: http.Agent;
  /** The client certificate and its key in PEM. */
  shown?: { certificate: string; key: string };
}

/** Creates an agent that keeps connections alive until it is destroyed. A TLS handshake costs more than most responses. */
export function createAgent({ url }: Connection): http.Agent {
  return new (url.startsWith("https:") ? https : http).Agent({ keepAlive: true });
}

/** Sends a request. Without an agent, it uses a connection of its own, so that none is left open. */
export function apiRequest<T = ApiObject>(
  connection: Connection,
  methodAndPath: string,
  { body, contentType = "application/json", headers = {}, agent, shown }: ApiRequestOptions = {},
): Promise<ApiAnswer<T>> {
  const [method = "GET", path = "/"] = methodAndPath.split(" ");
  const isWritten = body === undefined || typeof body === "string" || Buffer.isBuffer(body);
  const data = isWritten ? body : JSON.stringify(body);
  const send = connection.url.startsWith("https:") ? https.request : http.request;
  return new Promise((done, fail) => {
    const request = send(connection.url + path, {
      method,
      agent: agent ?? false,
      ...(connection.ca === undefined ? {} : { ca: connection.ca }),
      ...(shown === undefined ? {} : { cert: shown.certificate, key: shown.key }),
      headers: {
        authorization: `Bearer ${connection.token}`,
        ...(data === undefined ? {} : { "content-type": contentType, "content-length": Buffer.byteLength(data) }),
        ...headers,
      },
    });
    request.once("error", fail);
    request.once("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("error", fail);
      response.once("end", () => done(answerOf(response, Buffer.concat(chunks).toString())));
    });
    request.end(data);
  });
}

/** Sends a request; rejects with the message of the server if the response is an error. */
export async function apiRequestOrThrow<T = ApiObject>(
  connection: Connection,
  methodAndPath: string,
  options: ApiRequestOptions = {},
): Promise<T> {
  const { status, body, text } = await apiRequest<T>(connection, methodAndPath, options);
  if (status >= 300) throw new Error(`${methodAndPath}: ${status} ${text.slice(0, 500)}`);
  return body;
}

function answerOf<T>(response: http.IncomingMessage, text: string): ApiAnswer<T> {
  const isJson = response.headers["content-type"]?.startsWith("application/json") === true;
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text,
    body: (isJson ? JSON.parse(text) : text) as T,
  };
}
