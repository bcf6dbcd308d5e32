// The simulated controllers are API clients: HTTP, JSON, and a bearer token. In the embedded server their requests bypass the socket, as HTTP and TLS
// would take a fifth of the CPU time.
import * as http from "node:http";
import * as https from "node:https";
import type { LocalAnswer, LocalRequest } from "../../http/request-info.js";

/** How to connect to an API server. */
export interface Connection {
  url: string;
  token: string;
  /** CA certificate as PEM; absent for plain HTTP and for well-known authorities. */
  ca?: string;
  /** Handles requests in this process. Without it they are sent over the network, as watches always are. */
  ask?: (request: LocalRequest) => Promise<LocalAnswer>;
}

/** A request; `body` is encoded as JSON. */
interface ApiRequest {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  body?: unknown;
  /** Content type of the body of a PATCH. Default: merge patch */
  contentType?: string;
  accept?: string;
}

interface WatchEvent<T> {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  object: T;
}

export interface Requests {
  request<T>(request: ApiRequest): Promise<T>;
}

/** Sends requests and watches over pooled connections. */
export interface ApiClient extends Requests {
  /** Yields the events of a watch until the server ends it or `signal` is aborted; throws if the connection breaks. */
  watch<T>(path: string, options: { accept?: string; signal: AbortSignal }): AsyncGenerator<WatchEvent<T>>;
  close(): void;
}

/** A response with an error status. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  /** The error message of the server. */
  readonly detail: string;

  constructor(status: number, detail: string, request?: string) {
    super(request === undefined ? detail : `${request} failed: ${status} ${detail}`);
    this.status = status;
    this.detail = detail;
  }
}

/** True if the server responded that the object does not exist. */
export function isNotFound(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

const MAX_CONNECTIONS = 8;
/** A watch without data for this long is considered dead; the server ends it before (see `timeoutSeconds` in reflector.ts). */
const SILENCE_TIMEOUT_MS = 360_000;

/** Creates a client. With `unref`, its connections do not keep the process alive. */
export function createApiClient(connection: Connection, { unref = false }: { unref?: boolean } = {}): ApiClient {
  const { send, requestAgent, watchAgent } = transportOf(connection);
  const dataOf = ({ body }: ApiRequest): string | undefined => (body === undefined ? undefined : JSON.stringify(body));
  const open = (request: ApiRequest, agent: http.Agent, signal?: AbortSignal): Promise<http.IncomingMessage> =>
    new Promise((done, fail) => {
      const data = dataOf(request);
      const outgoing = send(connection.url + request.path, {
        method: request.method,
        agent,
        headers: headersOf(connection, request, data),
        ...(signal === undefined ? {} : { signal }),
      });
      outgoing.setTimeout(SILENCE_TIMEOUT_MS, () =>
        outgoing.destroy(new Error(`no data from the API server for ${SILENCE_TIMEOUT_MS / 1_000} s`)),
      );
      if (unref) outgoing.once("socket", (socket) => socket.unref());
      outgoing.once("error", fail);
      outgoing.once("response", done);
      outgoing.end(data);
    });
  const overNetwork = async (request: ApiRequest): Promise<LocalAnswer> => {
    const response = await open(request, requestAgent);
    return { status: response.statusCode ?? 500, text: await readText(response) };
  };
  const inProcess = (ask: NonNullable<Connection["ask"]>, request: ApiRequest) => {
    const body = dataOf(request);
    return ask({ method: request.method, path: request.path, headers: headersOf(connection, request, body), body });
  };
  const { ask } = connection;
  return {
    async request(request) {
      const { status, text } = await (ask === undefined ? overNetwork(request) : inProcess(ask, request));
      if (status >= 300) throw errorOf(request, status, text);
      return JSON.parse(text);
    },
    async *watch(path, { accept, signal }) {
      const request: ApiRequest = { method: "GET", path, ...(accept === undefined ? {} : { accept }) };
      const response = await open(request, watchAgent, signal);
      if (response.statusCode !== 200) throw errorOf(request, response.statusCode ?? 500, await readText(response));
      for await (const line of readLines(response)) yield JSON.parse(line);
    },
    close() {
      requestAgent.destroy();
      watchAgent.destroy();
    },
  };
}

function transportOf({ url, ca }: Connection) {
  // Watches stay open, so they do not share the limited connection pool.
  if (!url.startsWith("https:")) {
    return {
      send: http.request,
      requestAgent: new http.Agent({ keepAlive: true, maxSockets: MAX_CONNECTIONS }),
      watchAgent: new http.Agent({ keepAlive: false }),
    };
  }
  const tls = ca === undefined ? {} : { ca };
  return {
    send: https.request,
    requestAgent: new https.Agent({ keepAlive: true, maxSockets: MAX_CONNECTIONS, ...tls }),
    watchAgent: new https.Agent({ keepAlive: false, ...tls }),
  };
}

function headersOf(
  { token }: Connection,
  { method, accept, contentType: given }: ApiRequest,
  data?: string,
): http.OutgoingHttpHeaders {
  const contentType = method === "PATCH" ? (given ?? "application/merge-patch+json") : "application/json";
  return {
    authorization: `Bearer ${token}`,
    accept: accept ?? "application/json",
    "user-agent": "gen-operator-simulation",
    ...(data === undefined ? {} : { "content-type": contentType, "content-length": Buffer.byteLength(data) }),
  };
}

async function readText(response: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function errorOf({ method, path }: ApiRequest, status: number, text: string): ApiError {
  return new ApiError(status, messageOf(text), `${method} ${path}`);
}

function messageOf(text: string): string {
  try {
    return (JSON.parse(text) as { message?: string }).message ?? text;
  } catch {
    return text.slice(0, 200);
  }
}

const NEWLINE = 10;

/** Yields the lines of a byte stream; an incomplete last line is dropped. */
export async function* readLines(stream: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let pending: Buffer[] = [];
  for await (const chunk of stream) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      pending.push(chunk.subarray(start, end));
      start = end + 1;
      const line = Buffer.concat(pending).toString();
      pending = [];
      if (line !== "") yield line;
    }
    if (start < chunk.length) pending.push(chunk.subarray(start));
  }
}
