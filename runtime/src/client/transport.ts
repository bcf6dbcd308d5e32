import { setMaxListeners } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher, Pool } from "undici";
import { ConnectionError } from "../base/errors.js";
import type { Connection, Credentials } from "./connect/connection.js";
import { loadPool } from "./undici-pool.js";
import { untilAborted } from "../base/promises.js";

/** A request without its server. */
export interface TransportRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query. */
  readonly path: string;
  readonly body?: string;
  readonly contentType?: string;
  readonly accept?: string;
  readonly signal?: AbortSignal;
  /** Whether it does no harm to carry it out twice; true unless said otherwise. */
  readonly isRepeatable?: boolean;
}

/** An answer that has arrived in full. */
export interface TransportResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** What a stream calls; nothing is called after the promise of the stream is settled. */
export interface StreamConsumer {
  /** Called when an answer begins, before its body. */
  onStart?(status: number): void;
  /** Called for each piece of the body of a 200 answer; a promise holds back the next one, and the server, until it is resolved. */
  onData(chunk: Buffer): void | Promise<void>;
}

// 8 to 16 connections carry all the requests that one process can make; more only cost the server.
const REQUEST_CONNECTIONS = 16;
const KEEP_ALIVE_TIMEOUT_MS = 55_000;
const CONNECT_TIMEOUT_MS = 10_000;
const HEADERS_TIMEOUT_MS = 60_000;
const TCP_KEEP_ALIVE_DELAY_MS = 30_000;

const USER_AGENT = "gen-operator";

interface Pools {
  readonly credentials: Pick<Credentials, "cert" | "key">;
  readonly requests: Pool;
  readonly streams: Pool;
}

/** HTTP/1.1 to one API server over kept connections; streams have connections of their own. */
export class Transport {
  readonly connection: Connection;
  #pools: Pools | undefined;
  #isRejected = false;
  readonly #closing = new AbortController();

  constructor(connection: Connection) {
    this.connection = connection;
    // As many requests wait on it as there are under way.
    setMaxListeners(0, this.#closing.signal);
  }

  /** Sends a request and waits for the whole answer; throws a ConnectionError if there is none. */
  async send(request: TransportRequest): Promise<TransportResponse> {
    const { options, pools } = await this.#prepare(request);
    return new Promise((resolve, reject) => {
      const parts: Buffer[] = [];
      let status = 0;
      let headers: IncomingHttpHeaders = {};
      let wasSent = false;
      const abort = abortWith(request.signal);
      pools.requests.dispatch(options, {
        onRequestStart: (controller) => {
          wasSent = true;
          abort.connect(controller);
        },
        onResponseStart: (_, statusCode, received) => {
          status = statusCode;
          headers = received;
        },
        onResponseData: (_, chunk) => void parts.push(chunk),
        onResponseEnd: () => {
          abort.release();
          // An answer to what was asked before does not make the credentials good again.
          if (status === 401) this.#isRejected = true;
          resolve({ status, headers, body: parts.length === 1 ? parts[0]! : Buffer.concat(parts) });
        },
        onResponseError: (_, error) => {
          abort.release();
          reject(this.#errorOf(error, request, wasSent));
        },
      });
    });
  }

  /**
   * Sends a request and hands over the body as it arrives; settles when the server ends it, which returns the answer (with the body
   * only if the status is not 200), or when it breaks, which throws a ConnectionError.
   */
  async stream(request: TransportRequest, consumer: StreamConsumer): Promise<TransportResponse> {
    const { options, pools } = await this.#prepare(request);
    return new Promise((resolve, reject) => {
      const parts: Buffer[] = [];
      let status = 0;
      let headers: IncomingHttpHeaders = {};
      let thrown: { readonly error: unknown } | undefined;
      const abort = abortWith(request.signal);
      pools.streams.dispatch(
        { ...options, bodyTimeout: 0 },
        {
          onRequestStart: (controller) => abort.connect(controller),
          onResponseStart: (_, statusCode, received) => {
            status = statusCode;
            headers = received;
            if (status === 401) this.#isRejected = true;
            consumer.onStart?.(status);
          },
          onResponseData: (controller, chunk) => {
            if (status !== 200) return void parts.push(chunk);
            // undici would take an exception for its own; this one ends the stream and reaches the caller.
            const fail = (error: unknown) => {
              thrown ??= { error };
              controller.abort(error as Error);
            };
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
            abort.release();
            resolve({ status, headers, body: Buffer.concat(parts) });
          },
          onResponseError: (_, error) => {
            abort.release();
            reject(thrown === undefined ? this.#errorOf(error, request) : thrown.error);
          },
        },
      );
    });
  }

  /** Aborted once no request can be sent any more. */
  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  /** Breaks all connections. */
  async close(): Promise<void> {
    this.#closing.abort(new ConnectionError("the client is closed"));
    await destroy(this.#pools);
  }

  async #prepare(request: TransportRequest): Promise<{ options: Dispatcher.DispatchOptions; pools: Pools }> {
    request.signal?.throwIfAborted();
    this.closed.throwIfAborted();
    const { basePath = "" } = this.connection;
    const isRejected = this.#isRejected;
    this.#isRejected = false;
    const UndiciPool = await loadPool();
    const found = this.connection.credentials({ isRejected });
    // A plugin that never answers must not hold whoever does not wait for it any more.
    const credentials = found instanceof Promise ? await untilAborted(found, this.closed, request.signal) : found;
    this.closed.throwIfAborted();
    const headers: Record<string, string> = { accept: request.accept ?? "application/json", "user-agent": USER_AGENT };
    if (credentials.authorization !== undefined) headers["authorization"] = credentials.authorization;
    if (request.body !== undefined) headers["content-type"] = request.contentType ?? "application/json";
    return {
      options: { method: request.method, path: `${basePath}${request.path}`, headers, body: request.body ?? null },
      pools: this.#poolsFor(credentials, UndiciPool),
    };
  }

  #poolsFor({ cert, key }: Credentials, UndiciPool: typeof Pool): Pools {
    const current = this.#pools;
    if (current !== undefined && isSame(current.credentials.cert, cert) && isSame(current.credentials.key, key))
      return current;
    // A rotated client certificate takes new connections; requests under way keep theirs.
    if (current !== undefined) {
      void current.requests.close();
      void current.streams.close();
    }
    const { server, ca, serverName, skipsTlsVerify } = this.connection;
    const options: Pool.Options = {
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      headersTimeout: HEADERS_TIMEOUT_MS,
      bodyTimeout: HEADERS_TIMEOUT_MS,
      connectTimeout: CONNECT_TIMEOUT_MS,
      connect: {
        keepAlive: true,
        keepAliveInitialDelay: TCP_KEEP_ALIVE_DELAY_MS,
        ...(ca === undefined ? {} : { ca }),
        ...(cert === undefined ? {} : { cert }),
        ...(key === undefined ? {} : { key }),
        ...(serverName === undefined ? {} : { servername: serverName }),
        ...(skipsTlsVerify === true ? { rejectUnauthorized: false } : {}),
      },
    };
    this.#pools = {
      credentials: { ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }) },
      requests: new UndiciPool(server, { ...options, connections: REQUEST_CONNECTIONS }),
      streams: new UndiciPool(server, options),
    };
    return this.#pools;
  }

  #errorOf(error: Error, request: TransportRequest, wasSent = true): Error {
    // What the caller itself aborted with is not a fault of the connection.
    if (request.signal?.aborted) return error;
    return new ConnectionError(
      `${request.method} ${this.connection.server}${request.path.replace(/\?.*$/, "")} got no answer`,
      { cause: error, wasSent },
    );
  }
}

// Ties an AbortSignal to a request that undici may start later than now.
function abortWith(signal: AbortSignal | undefined): {
  connect(controller: Dispatcher.DispatchController): void;
  release(): void;
} {
  if (signal === undefined) return { connect: () => {}, release: () => {} };
  let current: Dispatcher.DispatchController | undefined;
  const onAbort = () => current?.abort(reasonOf(signal));
  signal.addEventListener("abort", onAbort, { once: true });
  return {
    connect(controller) {
      current = controller;
      if (signal.aborted) onAbort();
    },
    release: () => signal.removeEventListener("abort", onAbort),
  };
}

function reasonOf(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason));
}

async function destroy(pools: Pools | undefined): Promise<void> {
  await Promise.all([pools?.requests.destroy(), pools?.streams.destroy()]);
}

function isSame(a: string | Buffer | undefined, b: string | Buffer | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && String(a) === String(b));
}
