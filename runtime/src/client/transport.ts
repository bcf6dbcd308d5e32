import { setMaxListeners } from "node:events";
import { readFile } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { ConnectionError } from "../base/errors.js";
import { impersonationHeaders, type Connection, type Credentials } from "./connect/connection.js";
import { describeProxy } from "./connect/proxy.js";
import { withDeadline } from "./connect/renewed-credentials.js";
import { createPools, type Pools } from "./pools.js";

/** A request without its server. */
export interface TransportRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query. */
  readonly path: string;
  readonly body?: string | undefined;
  readonly contentType?: string | undefined;
  readonly accept?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Whether it does no harm to carry it out twice; true unless said otherwise. */
  readonly isRepeatable?: boolean | undefined;
  /** Called synchronously right before the first byte leaves; the request is not sent, and fails with what this throws. */
  readonly beforeSend?: (() => void) | undefined;
}

/** An answer that has arrived in full. */
export interface TransportResponse {
  /** Path and query of what was asked. */
  readonly path: string;
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

/** How a transport differs from the usual one. */
export interface TransportOptions {
  /** How long the credentials of a request may take. Default: 70 s, longer than those of a kubeconfig ever take. */
  readonly credentialsTimeoutMs?: number;
}

const CREDENTIALS_TIMEOUT_MS = 70_000;
const USER_AGENT = "gen-operator";

// The error codes of OpenSSL for a certificate that no trusted authority has signed.
const DISTRUST = /CERT|SIGNATURE/;

/** HTTP/1.1 to one API server over kept connections; streams have connections of their own. */
export class Transport {
  readonly connection: Connection;
  readonly #credentialsTimeoutMs: number;
  readonly #headers: Readonly<Record<string, string | string[]>>;
  #ca: string | Buffer | undefined;
  #pools: { readonly pools: Pools; readonly material: readonly (string | Buffer | undefined)[] } | undefined;
  #isRejected = false;
  #isDistrusted = false;
  readonly #closing = new AbortController();

  constructor(connection: Connection, { credentialsTimeoutMs = CREDENTIALS_TIMEOUT_MS }: TransportOptions = {}) {
    this.connection = connection;
    this.#credentialsTimeoutMs = credentialsTimeoutMs;
    this.#headers = { "user-agent": USER_AGENT, ...impersonationHeaders(connection.impersonation) };
    this.#ca = connection.ca;
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
      let refusal: { readonly error: unknown } | undefined;
      const abort = abortWith(request.signal);
      pools.requests.dispatch(options, {
        onRequestStart: (controller) => {
          abort.connect(controller);
          if (controller.aborted) return;
          try {
            request.beforeSend?.();
          } catch (error) {
            refusal = { error };
            throw error;
          }
          wasSent = true;
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
          const body = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
          resolve({ path: request.path, status, headers, body });
        },
        onResponseError: (_, error) => {
          abort.release();
          reject(refusal === undefined ? this.#errorOf(error, request, wasSent) : refusal.error);
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
            resolve({ path: request.path, status, headers, body: Buffer.concat(parts) });
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
    await Promise.all([this.#pools?.pools.requests.destroy(), this.#pools?.pools.streams.destroy()]);
  }

  async #prepare(request: TransportRequest): Promise<{ options: Dispatcher.DispatchOptions; pools: Pools }> {
    request.signal?.throwIfAborted();
    this.closed.throwIfAborted();
    const { basePath = "" } = this.connection;
    const credentials = await this.#credentialsFor(request);
    if (this.#isDistrusted) await this.#rereadCa();
    const pools = await this.#poolsFor(credentials);
    this.closed.throwIfAborted();
    const headers: Record<string, string | string[]> = {
      ...this.#headers,
      accept: request.accept ?? "application/json",
    };
    if (credentials.authorization !== undefined) headers["authorization"] = credentials.authorization;
    if (request.body !== undefined) headers["content-type"] = request.contentType ?? "application/json";
    const { method, body = null } = request;
    const options = { origin: this.connection.server, method, path: `${basePath}${request.path}`, headers, body };
    return { options, pools };
  }

  async #credentialsFor({ signal }: TransportRequest): Promise<Credentials> {
    const isRejected = this.#isRejected;
    this.#isRejected = false;
    const found = this.connection.credentials({ isRejected });
    if (!(found instanceof Promise)) return found;
    // A credentials function that never answers must not hold the request for ever.
    const who = `the credentials function of ${this.connection.origin}`;
    return withDeadline(found, { timeoutMs: this.#credentialsTimeoutMs, who }, [this.closed, signal]);
  }

  // The certificate authority of a cluster is replaced now and then. A file that cannot be read is tried again after the next failure.
  async #rereadCa(): Promise<void> {
    const { caFile } = this.connection;
    const ca = caFile === undefined ? undefined : await readFile(caFile, "utf8").catch(() => undefined);
    if (ca !== undefined) this.#ca = ca;
    this.#isDistrusted = false;
  }

  async #poolsFor({ cert, key }: Credentials): Promise<Pools> {
    const material = [this.#ca, cert, key];
    const isCurrent = () => material.every((each, index) => isSame(each, this.#pools?.material[index]));
    if (this.#pools !== undefined && isCurrent()) return this.#pools.pools;
    const pools = await createPools(this.connection, { ca: this.#ca, ...(cert && { cert }), ...(key && { key }) });
    // Another request may have created the same pools meanwhile.
    if (this.#pools !== undefined && isCurrent()) return this.#pools.pools;
    const before = this.#pools?.pools;
    this.#pools = { pools, material };
    // Rotated certificates take new connections; requests under way keep theirs.
    void before?.requests.close();
    void before?.streams.close();
    return pools;
  }

  #errorOf(error: Error, request: TransportRequest, wasSent = true): Error {
    // What the caller itself aborted with is not a fault of the connection.
    if (request.signal?.aborted) return error;
    if (DISTRUST.test(String((error as NodeJS.ErrnoException).code))) this.#isDistrusted = true;
    const { server, proxyUrl } = this.connection;
    const via = proxyUrl === undefined ? "" : ` through the proxy ${describeProxy(proxyUrl)}`;
    const message = `${request.method} ${server}${request.path.replace(/\?.*$/, "")} got no answer${via}`;
    return new ConnectionError(message, { cause: error, wasSent });
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

function isSame(a: string | Buffer | undefined, b: string | Buffer | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && String(a) === String(b));
}
