import { EventEmitter, once, setMaxListeners } from "node:events";
import { readFile } from "node:fs/promises";
import { type IncomingHttpHeaders, request as requestPlain } from "node:http";
import { request as requestSecure } from "node:https";
import { createRequire } from "node:module";
import { type Socket, isIP } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import type { Dispatcher, Pool, buildConnector } from "undici";
import type { RequestObservation } from "../base/activity.js";
import { ConnectionError } from "../base/errors.js";
import { checkNumbers } from "../base/validation.js";
import { withDeadline } from "../base/wait.js";
import { type Connection, type Credentials, impersonationHeaders } from "./connection.js";
import { type OwnWrites, acquireOwnWrites } from "./own-writes.js";

/** A request without its server. */
export interface TransportRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query. */
  readonly path: string;
  readonly body?: string | undefined;
  readonly contentType?: string | undefined;
  readonly accept?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called synchronously right before the first byte leaves; if it throws, the request is not sent. */
  readonly beforeSend?: (() => void) | undefined;
}

/** An answer that has arrived in full. */
export interface TransportResponse {
  readonly path: string;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Takes the body of a 200 answer; nothing is called after the promise of the request is settled. */
export interface StreamConsumer {
  onStart?(status: number): void;
  /** Called for each piece of the body; a promise holds back the next one, and the server, until it is resolved. */
  onData(chunk: Buffer): void | Promise<void>;
}

/** How a transport differs from the usual one. */
export interface TransportOptions {
  /** The most requests at one time, besides streams. Default: 16 */
  readonly maxConnections?: number | undefined;
  /** How long the server may take until its answer begins, and in the middle of it; streams have deadlines of their own. Default: 1 minute */
  readonly requestTimeoutMs?: number | undefined;
  /**
   * How long the body of an answer may be, such as a page of a list; the request fails with a ConnectionError if it is longer. Default: 256 MiB.
   * Example: `maxResponseBytes: 512 * 2 ** 20`
   */
  readonly maxResponseBytes?: number | undefined;
  /**
   * How long one event of a watch may be; the watch fails with a ConnectionError if it is longer. Default: 32 MiB. Example:
   * `maxEventBytes: 64 * 2 ** 20`
   */
  readonly maxEventBytes?: number | undefined;
  /** How long the credentials of a request may take. Default: 70 s, longer than those of a kubeconfig ever take. */
  readonly credentialsTimeoutMs?: number;
  /** Called once for every stream: when the head of its answer arrives, or, with `status: undefined`, when it failed before. */
  readonly observeStream?: ((stream: Omit<RequestObservation, "durationMs">) => void) | undefined;
}

// A page has 500 objects; a list that begins again after a 410 has all of a kind.
const MAX_RESPONSE_BYTES = 256 * 2 ** 20;
// etcd stores objects of 1.5 MiB by default, and the API server takes requests of 3 MiB; in JSON a character may take six bytes.
const MAX_EVENT_BYTES = 32 * 2 ** 20;

// The error codes of OpenSSL for a certificate that no trusted authority has signed.
const DISTRUST = /CERT|SIGNATURE/;

/** A request in flight. Generated code sees these declarations, so they name no type of undici, which would bring the globals of Node along. */
interface BreakableExchange {
  fail(error: unknown): void;
}

/** HTTP/1.1 to one API server over kept connections; streams have connections of their own. */
export class Transport {
  readonly connection: Connection;
  readonly #options: TransportOptions;
  readonly #headers: Readonly<Record<string, string | string[]>>;
  #ca: string | Buffer | undefined;
  #pools: { readonly pools: Pools; readonly material: readonly (string | Buffer | undefined)[] } | undefined;
  #isRejected = false;
  #isDistrusted = false;
  readonly #closing = new AbortController();
  readonly closed: AbortSignal = this.#closing.signal;
  /** The writes in flight. */
  readonly #writes = new Set<BreakableExchange>();
  readonly #events = new EventEmitter<{ writesEnded: [] }>();
  readonly #own: ReturnType<typeof acquireOwnWrites>;

  constructor(connection: Connection, options: TransportOptions = {}) {
    const { maxConnections, requestTimeoutMs, maxResponseBytes, maxEventBytes } = options;
    checkNumbers("the client", {
      ...{ maxConnections: [maxConnections, 1], requestTimeoutMs: [requestTimeoutMs, 0] },
      ...{ maxResponseBytes: [maxResponseBytes, 1], maxEventBytes: [maxEventBytes, 1] },
    });
    this.connection = connection;
    this.#options = options;
    this.#headers = { "user-agent": "gen-operator", ...impersonationHeaders(connection.impersonation) };
    this.#ca = connection.ca;
    this.#own = acquireOwnWrites(connection.server);
    // Every request in flight listens to it.
    setMaxListeners(0, this.closed);
  }

  /** What this process wrote to the server. */
  get ownWrites(): OwnWrites {
    return this.#own.writes;
  }

  /** Sends a request and waits for the end of the answer, which a consumer gets as it arrives; throws a ConnectionError if it breaks. */
  async send(request: TransportRequest, consumer?: StreamConsumer): Promise<TransportResponse> {
    const { options, pools } = await this.#prepare(request).catch((error: unknown) => {
      if (consumer !== undefined) this.observeStream(request);
      // The reason of a signal is shared, and callers complete the messages of errors.
      throw error === this.closed.reason ? createClosedError() : error;
    });
    const pool = consumer === undefined ? pools.requests : pools.streams;
    return new Promise((resolve, reject) => {
      const exchange = new Exchange(this, { request, consumer, resolve, reject });
      pool.dispatch({ bodyTimeout: consumer === undefined ? null : 0, ...options }, exchange);
    });
  }

  /** Aborts all writes in flight: they fail with this error, and the API server may execute them all the same. */
  abortWrites(reason: Error): void {
    for (const exchange of [...this.#writes]) exchange.fail(reason);
  }

  /** Resolves when no write is in flight. */
  async whenWritesEnded(): Promise<void> {
    if (this.#writes.size > 0) await once(this.#events, "writesEnded");
  }

  async close(): Promise<void> {
    this.#closing.abort(createClosedError());
    this.#own.release();
    await Promise.all([this.#pools?.pools.requests.destroy(), this.#pools?.pools.streams.destroy()]);
  }

  /** Records a write in flight, until `endWrite`. */
  beginWrite(exchange: BreakableExchange): void {
    this.#writes.add(exchange);
  }

  endWrite(exchange: BreakableExchange): void {
    if (this.#writes.delete(exchange) && this.#writes.size === 0) this.#events.emit("writesEnded");
  }

  /** Takes the head of an answer. */
  noteAnswer(status: number, headers: IncomingHttpHeaders): void {
    this.ownWrites.noteDate(headers["date"]);
    // An answer to what was asked before does not make the credentials good again.
    if (status === 401) this.#isRejected = true;
  }

  /** Tells the observer how a stream began; without a status, that it failed before. */
  observeStream({ method, path }: TransportRequest, status?: number): void {
    this.#options.observeStream?.({ method, path, status });
  }

  /** How long the body of an answer may be. */
  get maxResponseBytes(): number {
    return this.#options.maxResponseBytes ?? MAX_RESPONSE_BYTES;
  }

  /** Returns the error about an answer that the API server does not give to a request; `form` says how it differs: `in HTML`, `with no list`. */
  foreignAnswer(request: Pick<TransportRequest, "method" | "path">, form: string): ConnectionError {
    const asked = this.#describe(request);
    return new ConnectionError(`${asked} was answered ${form}, by a proxy or load balancer in front of the API server`);
  }

  /** Returns the error about an answer of which the client takes no more; the request is not repeated. */
  refusedAnswer(request: Pick<TransportRequest, "method" | "path">, form: string): ConnectionError {
    return new ConnectionError(`${this.#describe(request)} was answered ${form}`, { isFinal: true });
  }

  /** Creates what splits the answer of a watch into its events; it throws if an event is longer than `maxEventBytes`. */
  createEventSplitter(request: Pick<TransportRequest, "method" | "path">): LineSplitter {
    const { maxEventBytes: maxBytes = MAX_EVENT_BYTES } = this.#options;
    return new LineSplitter({ maxBytes, createError: () => this.oversizedAnswer(request, "an event", maxBytes) });
  }

  /** Returns the error about `a body` or `an event` that is longer than the client takes. */
  oversizedAnswer(
    request: Pick<TransportRequest, "method" | "path">,
    what: "a body" | "an event",
    maxBytes: number,
  ): ConnectionError {
    const limit = maxBytes % 2 ** 20 === 0 ? `${maxBytes / 2 ** 20} MiB` : `${maxBytes} bytes`;
    const option = what === "a body" ? "maxResponseBytes" : "maxEventBytes";
    return this.refusedAnswer(request, `with ${what} of more than ${limit}, the limit of the client (${option})`);
  }

  #describe({ method, path }: Pick<TransportRequest, "method" | "path">): string {
    return `${method} ${this.connection.server}${path.replace(/\?.*$/, "")}`;
  }

  async #prepare(request: TransportRequest): Promise<{ options: Dispatcher.DispatchOptions; pools: Pools }> {
    request.signal?.throwIfAborted();
    this.closed.throwIfAborted();
    const { server, basePath = "" } = this.connection;
    const credentials = await this.#credentialsFor(request);
    if (this.#isDistrusted) await this.#rereadCa();
    const UndiciPool = await loadPool();
    this.closed.throwIfAborted();
    const pools = this.#poolsFor(UndiciPool, credentials);
    const { method, path, body = null, accept = "application/json", contentType = "application/json" } = request;
    const headers: Record<string, string | string[]> = { accept, ...this.#headers };
    if (credentials.authorization !== undefined) headers["authorization"] = credentials.authorization;
    if (body !== null) headers["content-type"] = contentType;
    return { options: { origin: server, method, path: `${basePath}${path}`, headers, body }, pools };
  }

  async #credentialsFor({ signal }: TransportRequest): Promise<Credentials> {
    const isRejected = this.#isRejected;
    this.#isRejected = false;
    const found = this.connection.credentials({ isRejected });
    if (!(found instanceof Promise)) return found;
    // A credentials function that never answers must not hold the request for ever.
    const { credentialsTimeoutMs: timeoutMs = 70_000 } = this.#options;
    const message = `the credentials function of ${this.connection.origin} did not answer within ${timeoutMs / 1000} s`;
    return withDeadline(() => found, { timeoutMs, message }, [this.closed, signal]);
  }

  // The certificate authority of a cluster is replaced now and then. A file that cannot be read is tried again after the next failure.
  async #rereadCa(): Promise<void> {
    const { caFile } = this.connection;
    const ca = caFile === undefined ? undefined : await readFile(caFile, "utf8").catch(() => undefined);
    // An empty one is being written.
    if (ca) this.#ca = ca;
    this.#isDistrusted = false;
  }

  #poolsFor(UndiciPool: typeof Pool, { cert, key }: Credentials): Pools {
    const material = [this.#ca, cert, key];
    const known = this.#pools;
    // Files that are read again mostly hold the same text.
    if (known?.material.every((each, at) => each === material[at] || String(each) === String(material[at])))
      return known.pools;
    const pools = createPools(UndiciPool, this.connection, { ca: this.#ca, cert, key }, this.#options);
    this.#pools = { pools, material };
    // Rotated certificates need new connections; requests in flight keep theirs.
    void known?.pools.requests.close();
    void known?.pools.streams.close();
    return pools;
  }

  /** Returns the error of a request whose connection broke, or that the caller aborted. */
  errorOf(error: Error, request: TransportRequest, wasSent: boolean): Error {
    // The reason of the caller's own abort is not a fault of the connection.
    if (request.signal?.aborted) return error;
    if (DISTRUST.test(String((error as NodeJS.ErrnoException).code))) this.#isDistrusted = true;
    const { proxyUrl } = this.connection;
    // Without user and password.
    const via = proxyUrl === undefined ? "" : ` through the proxy ${new URL(proxyUrl).origin}`;
    return new ConnectionError(`${this.#describe(request)} got no answer${via}`, { cause: error, wasSent });
  }
}

interface ExchangeOptions {
  readonly request: TransportRequest;
  /** Takes the answer of a stream as it arrives. */
  readonly consumer: StreamConsumer | undefined;
  resolve(response: TransportResponse): void;
  reject(error: unknown): void;
}

/** One request in flight: waits in its pool, is sent, is answered, and is settled once, by the end of the answer or by an error. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #transport: Transport;
  readonly #options: ExchangeOptions;
  readonly #parts: Buffer[] = [];
  #length = 0;
  /** 0 before the answer has begun. */
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #wasSent = false;
  #endOwnWrite: ReturnType<OwnWrites["begin"]> | undefined;
  /** What ends the exchange, if that is not its connection. */
  #thrown: { readonly error: unknown } | undefined;
  /** Absent while the request waits in its pool. */
  #controller: Dispatcher.DispatchController | undefined;
  readonly #onAbort = (): void => this.#controller?.abort(errorFrom(this.#options.request.signal?.reason));

  constructor(transport: Transport, options: ExchangeOptions) {
    this.#transport = transport;
    this.#options = options;
    options.request.signal?.addEventListener("abort", this.#onAbort, { once: true });
    if (options.request.method !== "GET") transport.beginWrite(this);
  }

  /** Breaks the exchange off, now or when it is started. undici would take an exception of a consumer for its own. */
  fail(error: unknown): void {
    this.#thrown ??= { error };
    this.#controller?.abort(errorFrom(error));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    const { request } = this.#options;
    this.#controller = controller;
    if (request.signal?.aborted === true) return this.#onAbort();
    if (this.#thrown !== undefined) return this.fail(this.#thrown.error);
    try {
      request.beforeSend?.();
    } catch (error) {
      this.#thrown = { error };
      throw error;
    }
    this.#wasSent = true;
    if (request.method !== "GET") this.#endOwnWrite ??= this.#transport.ownWrites.begin(request.path);
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    const { request, consumer } = this.#options;
    const transport = this.#transport;
    this.#status = status;
    this.#headers = headers;
    transport.noteAnswer(status, headers);
    if (consumer !== undefined) transport.observeStream(request, status);
    const foreign = foreignForm(headers);
    if (status < 300 && foreign !== undefined) return this.fail(transport.foreignAnswer(request, foreign));
    const maxBytes = transport.maxResponseBytes;
    if (consumer === undefined && Number(headers["content-length"]) > maxBytes)
      return this.fail(transport.oversizedAnswer(request, "a body", maxBytes));
    consumer?.onStart?.(status);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const { request, consumer } = this.#options;
    // What is buffered already arrives even after a failure.
    if (this.#thrown !== undefined) return;
    if (consumer === undefined || this.#status !== 200) {
      this.#length += chunk.length;
      const maxBytes = this.#transport.maxResponseBytes;
      if (this.#length > maxBytes) return this.fail(this.#transport.oversizedAnswer(request, "a body", maxBytes));
      return void this.#parts.push(chunk);
    }
    try {
      const rest = consumer.onData(chunk);
      if (rest === undefined) return;
      controller.pause();
      rest.then(
        () => controller.resume(),
        (error: unknown) => this.fail(error),
      );
    } catch (error) {
      this.fail(error);
    }
  }

  onResponseEnd(): void {
    const [status, headers] = [this.#status, this.#headers];
    const body = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts);
    this.#endOwnWrite?.({ status, date: headers["date"], body });
    this.#settle();
    this.#options.resolve({ path: this.#options.request.path, status, headers, body });
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    const { request, consumer, reject } = this.#options;
    this.#endOwnWrite?.();
    if (this.#status === 0 && consumer !== undefined) this.#transport.observeStream(request);
    this.#settle();
    reject(this.#thrown === undefined ? this.#transport.errorOf(error, request, this.#wasSent) : this.#thrown.error);
  }

  #settle(): void {
    this.#options.request.signal?.removeEventListener("abort", this.#onAbort);
    this.#transport.endWrite(this);
  }
}

// A page to log in at, or an answer that a proxy compressed: the API server sends neither unless it is asked to.
function foreignForm({ "content-type": type = "", "content-encoding": encoding }: IncomingHttpHeaders) {
  if (encoding !== undefined && encoding !== "identity") return `in ${encoding}`;
  return type.startsWith("text/html") ? "in HTML" : undefined;
}

function createClosedError(): ConnectionError {
  return new ConnectionError("the client is closed");
}

function errorFrom(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}

const NEWLINE = 0x0a;

/** How long a line may be. One that arrives in a single chunk is not refused: it is in memory already. */
interface LineLimit {
  readonly maxBytes: number;
  /** Returns what is thrown if a line is longer. */
  createError(): Error;
}

/** Cuts a stream of bytes into lines; a line is a view of the chunk it came in, or a copy if it came in several. */
export class LineSplitter {
  readonly #limit: LineLimit;
  #parts: Buffer[] = [];
  /** Of the parts. */
  #bytes = 0;

  constructor(limit: LineLimit) {
    this.#limit = limit;
  }

  /**
   * Returns the lines that `chunk` completes, one by one; all of them have to be asked for before the next chunk. Throws if the line that it
   * begins or goes on with is too long.
   */
  *split(chunk: Buffer): Generator<Buffer, void> {
    let start = 0;
    for (let newline = chunk.indexOf(NEWLINE); newline !== -1; newline = chunk.indexOf(NEWLINE, start)) {
      let line = chunk.subarray(start, newline);
      start = newline + 1;
      if (this.#parts.length > 0) {
        line = Buffer.concat([...this.#parts, line]);
        this.#parts = [];
        this.#bytes = 0;
      }
      if (line.length > 0) yield line;
    }
    if (start === chunk.length) return;
    this.#bytes += chunk.length - start;
    if (this.#bytes > this.#limit.maxBytes) throw this.#limit.createError();
    this.#parts.push(chunk.subarray(start));
  }
}

/** The connections to one API server: streams have connections of their own. */
type Pools = ReturnType<typeof createPools>;

// 8 to 16 connections carry all the requests that one process can make; more only cost the server.
const REQUEST_CONNECTIONS = 16;
const KEEP_ALIVE_TIMEOUT_MS = 55_000;
const CONNECT_TIMEOUT_MS = 10_000;
const HEADERS_TIMEOUT_MS = 60_000;
const TCP_KEEP_ALIVE_DELAY_MS = 30_000;

/** Creates the connection pools of a server, which connect when there is something to send. */
function createPools(
  UndiciPool: typeof Pool,
  { server, serverName, skipTlsVerify, proxyUrl }: Connection,
  { ca, cert, key }: Pick<Connection, "ca"> & Credentials,
  {
    maxConnections: connections = REQUEST_CONNECTIONS,
    requestTimeoutMs: timeoutMs = HEADERS_TIMEOUT_MS,
  }: TransportOptions,
) {
  // Without a setting, NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment would turn the verification off.
  const tls = { ca, cert, key, servername: serverName, rejectUnauthorized: skipTlsVerify !== true };
  const options: Pool.Options = {
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    bodyTimeout: HEADERS_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    connect:
      proxyUrl === undefined
        ? { keepAlive: true, keepAliveInitialDelay: TCP_KEEP_ALIVE_DELAY_MS, ...tls }
        : createTunnelConnector(proxyUrl, tls),
  };
  return {
    requests: new UndiciPool(server, { ...options, connections, headersTimeout: timeoutMs, bodyTimeout: timeoutMs }),
    streams: new UndiciPool(server, options),
  };
}

let loadedPool: Promise<typeof Pool> | undefined;

/** Loads undici's Pool, without fetch, WebSocket and caches: that saves every operator 55 ms of CPU and 9 MB, and a bundle as much. */
function loadPool(): Promise<typeof Pool> {
  // @ts-expect-error the file comes without types
  loadedPool ??= (import("undici/lib/dispatcher/pool.js") as Promise<{ default: typeof Pool }>).then(
    ({ default: only }) => only,
    // The folder is no promise of the package: another version may have it elsewhere.
    () => (createRequire(import.meta.url)("undici") as { Pool: typeof Pool }).Pool,
  );
  return loadedPool;
}

/** Creates what connects undici's pools by tunnels (CONNECT) through an HTTP proxy; undici's own needs twice as much of its code. */
function createTunnelConnector(proxyUrl: string, tls: ConnectionOptions): buildConnector.connector {
  const { protocol: scheme, hostname: host, port, username, password } = new URL(proxyUrl);
  const user = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const headers = username === "" ? {} : { "proxy-authorization": `Basic ${Buffer.from(user).toString("base64")}` };
  const request = scheme === "https:" ? requestSecure : requestPlain;
  const address = { host: withoutBrackets(host), ...(port === "" ? {} : { port }) };
  const proxy = { ...address, agent: false, method: "CONNECT", rejectUnauthorized: true };
  return ({ hostname, port, protocol }, callback) => {
    const isSecure = protocol === "https:";
    const target = `${hostname}:${port || (isSecure ? 443 : 80)}`;
    let isSettled = false;
    const settle: typeof callback = (...result) => {
      clearTimeout(timer);
      if (!isSettled) callback(...result);
      isSettled = true;
    };
    const fail = (error: Error) => settle(error, null);
    const asked = request({ ...proxy, path: target, headers: { host: target, ...headers } });
    let waitedFor: { destroy(error?: Error): unknown } = asked;
    const late = () => waitedFor.destroy(new Error(`no tunnel within ${CONNECT_TIMEOUT_MS / 1000} s`));
    const timer = setTimeout(late, CONNECT_TIMEOUT_MS);
    asked.once("error", fail);
    asked.once("connect", ({ statusCode }, socket) => {
      waitedFor = socket.on("error", fail);
      (socket as Socket).setKeepAlive(true, TCP_KEEP_ALIVE_DELAY_MS);
      if (statusCode !== 200) {
        socket.destroy();
        return fail(new Error(`the proxy answered ${statusCode}`));
      }
      if (!isSecure) return settle(null, socket as Socket);
      const name = withoutBrackets(hostname);
      const servername = tls.servername ?? (isIP(name) === 0 ? name : undefined);
      const secure = connectTls({ host: name, ...tls, servername, socket });
      waitedFor = secure.on("error", fail);
      secure.once("secureConnect", () => settle(null, secure));
    });
    asked.end();
  };
}

function withoutBrackets(host: string): string {
  return host.replace(/^\[|\]$/g, "");
}
