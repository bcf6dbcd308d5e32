import { EventEmitter, once, setMaxListeners } from "node:events";
import { readFile } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher, Pool } from "undici";
import type { RequestObservation } from "../base/activity.js";
import { checkNumbers } from "../base/checks.js";
import { ConnectionError } from "../base/errors.js";
import { withDeadline } from "../base/promises.js";
import { LineSplitter } from "../decode/line-splitter.js";
import { impersonationHeaders, type Connection } from "./connect/connection.js";
import type { AnswerLimits, Credentials, PoolLimits } from "./connect/connection.js";
import { acquireOwnWrites, type OwnWrites } from "./own-writes.js";
import { createPools, loadPool, type Pools } from "./pools.js";

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
export interface TransportOptions extends PoolLimits, AnswerLimits {
  /** How long the credentials of a request may take. Default: 70 s, longer than those of a kubeconfig ever take. */
  readonly credentialsTimeoutMs?: number;
  /** Told of every stream once: when the head of its answer arrives, or when it failed without one, by `status: undefined`. */
  readonly observeStream?: ((stream: Omit<RequestObservation, "durationMs">) => void) | undefined;
}

// A page has 500 objects; a list that begins again after a 410 has all of a kind.
const MAX_RESPONSE_BYTES = 256 * 2 ** 20;
// etcd stores objects of 1.5 MiB by default, and the API server takes requests of 3 MiB; in JSON a character may take six bytes.
const MAX_EVENT_BYTES = 32 * 2 ** 20;

// The error codes of OpenSSL for a certificate that no trusted authority has signed.
const DISTRUST = /CERT|SIGNATURE/;

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
  /** How to break off each request under way that may change something. */
  readonly #writes = new Set<(reason: Error) => void>();
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
    // As many requests wait on it as there are under way.
    setMaxListeners(0, this.closed);
  }

  /** What this process wrote to the server. */
  get ownWrites(): OwnWrites {
    return this.#own.writes;
  }

  /** Sends a request and waits for the end of the answer, which a consumer gets as it arrives; throws a ConnectionError if it breaks. */
  async send(request: TransportRequest, consumer?: StreamConsumer): Promise<TransportResponse> {
    const { signal, method, path } = request;
    const observe = (status?: number) => consumer && this.#options.observeStream?.({ method, path, status });
    const { options, pools } = await this.#prepare(request).catch((error: unknown) => {
      observe();
      // The reason of a signal is shared, and callers complete the messages of errors.
      throw error === this.closed.reason ? createClosedError() : error;
    });
    const pool = consumer === undefined ? pools.requests : pools.streams;
    const { maxResponseBytes: maxBytes = MAX_RESPONSE_BYTES } = this.#options;
    return new Promise((resolve, reject) => {
      const parts: Buffer[] = [];
      let length = 0;
      let status = 0;
      let headers: IncomingHttpHeaders = {};
      let wasSent = false;
      let endWrite: ReturnType<OwnWrites["begin"]> | undefined;
      let thrown: { readonly error: unknown } | undefined;
      // undici may start the request later than now.
      let started: Dispatcher.DispatchController | undefined;
      const onAbort = () => started?.abort(errorFrom(signal?.reason));
      signal?.addEventListener("abort", onAbort, { once: true });
      const settle = (end: () => void) => {
        signal?.removeEventListener("abort", onAbort);
        if (this.#writes.delete(fail) && this.#writes.size === 0) this.#events.emit("writesEnded");
        end();
      };
      // undici would take an exception of a consumer for its own.
      const fail = (error: unknown) => {
        thrown ??= { error };
        started?.abort(errorFrom(error));
      };
      if (method !== "GET") this.#writes.add(fail);
      pool.dispatch(
        { bodyTimeout: consumer === undefined ? null : 0, ...options },
        {
          onRequestStart: (controller) => {
            started = controller;
            if (signal?.aborted === true) return onAbort();
            if (thrown !== undefined) return fail(thrown.error);
            try {
              request.beforeSend?.();
            } catch (error) {
              thrown = { error };
              throw error;
            }
            wasSent = true;
            if (method !== "GET") endWrite ??= this.ownWrites.begin(path);
          },
          onResponseStart: (_, statusCode, received) => {
            [status, headers] = [statusCode, received];
            this.ownWrites.noteDate(received["date"]);
            // An answer to what was asked before does not make the credentials good again.
            if (status === 401) this.#isRejected = true;
            observe(status);
            const foreign = foreignForm(received);
            if (status < 300 && foreign !== undefined) return fail(this.foreignAnswer(request, foreign));
            if (consumer === undefined && Number(received["content-length"]) > maxBytes)
              return fail(this.#tooLong(request, "a body", maxBytes));
            consumer?.onStart?.(status);
          },
          onResponseData: (controller, chunk) => {
            // What is buffered already arrives even after a failure.
            if (thrown !== undefined) return;
            if (consumer === undefined || status !== 200) {
              length += chunk.length;
              if (length > maxBytes) return fail(this.#tooLong(request, "a body", maxBytes));
              return void parts.push(chunk);
            }
            try {
              const rest = consumer.onData(chunk);
              if (rest === undefined) return;
              controller.pause();
              rest.then(() => controller.resume(), fail);
            } catch (error) {
              fail(error);
            }
          },
          onResponseEnd: () => {
            const body = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
            endWrite?.({ status, date: headers["date"], body });
            settle(() => resolve({ path, status, headers, body }));
          },
          onResponseError: (_, error) => {
            endWrite?.();
            if (status === 0) observe();
            settle(() => reject(thrown === undefined ? this.#errorOf(error, request, wasSent) : thrown.error));
          },
        },
      );
    });
  }

  /** Breaks off all requests under way that may change something: they fail with this error, and may have been carried out. */
  abortWrites(reason: Error): void {
    for (const fail of [...this.#writes]) fail(reason);
  }

  /** Resolves when no request is under way that may change something. */
  async whenWritesEnded(): Promise<void> {
    if (this.#writes.size > 0) await once(this.#events, "writesEnded");
  }

  async close(): Promise<void> {
    this.#closing.abort(createClosedError());
    this.#own.release();
    await Promise.all([this.#pools?.pools.requests.destroy(), this.#pools?.pools.streams.destroy()]);
  }

  /** Returns the error about an answer that the API server does not give to a request; `form` says how it differs: `in HTML`, `with no list`. */
  foreignAnswer(request: Pick<TransportRequest, "method" | "path">, form: string): ConnectionError {
    const asked = this.#describe(request);
    return new ConnectionError(`${asked} was answered ${form}, by something between here and the API server`);
  }

  /** Returns the error about an answer of which the client takes no more; the request is not repeated. */
  refusedAnswer(request: Pick<TransportRequest, "method" | "path">, form: string): ConnectionError {
    return new ConnectionError(`${this.#describe(request)} was answered ${form}`, { isFinal: true });
  }

  /** Creates what splits the answer of a watch into its events; it throws if an event is longer than `maxEventBytes`. */
  createEventSplitter(request: Pick<TransportRequest, "method" | "path">): LineSplitter {
    const { maxEventBytes: maxBytes = MAX_EVENT_BYTES } = this.#options;
    return new LineSplitter({ maxBytes, createError: () => this.#tooLong(request, "an event", maxBytes) });
  }

  #tooLong(request: Pick<TransportRequest, "method" | "path">, what: string, maxBytes: number): ConnectionError {
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
    const pools = createPools(UndiciPool, this.connection, { ...this.#options, ca: this.#ca, cert, key });
    this.#pools = { pools, material };
    // Rotated certificates take new connections; requests under way keep theirs.
    void known?.pools.requests.close();
    void known?.pools.streams.close();
    return pools;
  }

  #errorOf(error: Error, request: TransportRequest, wasSent: boolean): Error {
    // The reason of the caller's own abort is not a fault of the connection.
    if (request.signal?.aborted) return error;
    if (DISTRUST.test(String((error as NodeJS.ErrnoException).code))) this.#isDistrusted = true;
    const { proxyUrl } = this.connection;
    // Without user and password.
    const via = proxyUrl === undefined ? "" : ` through the proxy ${new URL(proxyUrl).origin}`;
    return new ConnectionError(`${this.#describe(request)} got no answer${via}`, { cause: error, wasSent });
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
