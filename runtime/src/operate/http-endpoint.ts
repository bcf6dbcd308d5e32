import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { memberOf } from "../base/kubernetes-object.js";
import { type Logger, messageOf } from "../base/logger.js";

export interface EndpointAnswer {
  readonly status: number;
  /** A stream is destroyed when the client disconnects. */
  readonly body: string | Readable;
  /** Default: plain text */
  readonly contentType?: string;
  readonly headers?: { readonly [name: string]: string };
}

/**
 * Handles a request; returns undefined if the path does not exist. `gone` is aborted when the client disconnects. If the endpoint allows methods with
 * a body, the handler has to read it.
 */
export type EndpointHandler = (
  url: URL,
  request: IncomingMessage,
  gone: AbortSignal,
) => EndpointAnswer | undefined | Promise<EndpointAnswer | undefined>;

export interface HttpEndpointOptions {
  /** What the endpoint serves and the name of the setting for its address, both for messages. */
  readonly what: string;
  readonly setting: string;
  readonly address: BindAddress;
  readonly handle: EndpointHandler;
  /** Default: GET and HEAD */
  readonly methods?: readonly string[];
  readonly logger: Logger;
  /** Further connections are rejected. Default: 100 */
  readonly maxConnections?: number;
  /** Idle timeout of a connection in milliseconds. Default: 90,000, longer than a CPU profile takes */
  readonly stallTimeoutMs?: number;
}

const NOT_FOUND = textAnswer(404, "page not found");
const BAD_TARGET = textAnswer(400, "bad request: the target is neither a path nor an http URL");
const READS = ["GET", "HEAD"];
const LISTEN_PROBLEMS = { EADDRINUSE: "another process listens there", EACCES: "this process may not listen there" };
// The clients are kubelets and Prometheus, which send short requests: a request that is incomplete after 4 s is aborted at the next check, which runs
// every second. Prometheus scrapes at least once a minute, so its connection is kept alive.
const LIMITS = {
  ...{ headersTimeout: 4_000, requestTimeout: 4_000, connectionsCheckingInterval: 1_000 },
  ...{ keepAliveTimeout: 65_000, maxHeaderSize: 16_384 },
};
const MAX_CONNECTIONS = 100;
const STALL_TIMEOUT_MS = 90_000;

/** A small HTTP server for probes, metrics, and debugging. */
export class HttpEndpoint {
  readonly #options: HttpEndpointOptions;
  readonly #server: Server;

  constructor(options: HttpEndpointOptions) {
    this.#options = options;
    const { maxConnections = MAX_CONNECTIONS, stallTimeoutMs = STALL_TIMEOUT_MS } = options;
    this.#server = createServer(LIMITS, (request, response) => void this.#answer(request, response));
    this.#server.maxConnections = maxConnections;
    // A rejected client can retry and get the connection of an idle one.
    this.#server.on("drop", () => this.#server.closeIdleConnections());
    this.#server.setTimeout(stallTimeoutMs);
  }

  /** Starts to listen, unless it already does. Throws an error with the address and the setting if it cannot. */
  async open(): Promise<void> {
    const { address, what, logger } = this.#options;
    if (this.#server.listening) return;
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", (error: NodeJS.ErrnoException) => reject(this.#failure(error)));
      this.#server.listen(address.port, address.host, resolve);
    });
    this.#server.removeAllListeners("error").on("error", (error) => logger.error({}, `${what}: ${messageOf(error)}`));
    logger.info({ port: this.port }, `serves ${what} at ${describeAddress({ ...address, port: this.port })}`);
  }

  /** The port that it listens on, also if the address has port 0. */
  get port(): number {
    return (this.#server.address() as AddressInfo | null)?.port ?? this.#options.address.port;
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once("close", () => gone.abort(new Error("the client went away")));
    const answer = await this.#answerTo(request, gone.signal);
    const { status, body, contentType = "text/plain; charset=utf-8", headers } = answer;
    // Discard the rest of the request body.
    request.resume();
    response.writeHead(status, {
      "content-type": contentType,
      ...(typeof body === "string" && { "content-length": Buffer.byteLength(body) }),
      "cache-control": "no-cache, private",
      "x-content-type-options": "nosniff",
      ...headers,
    });
    if (typeof body === "string") response.end(request.method === "HEAD" ? undefined : body);
    else await pipeline(body, response).catch((error: unknown) => this.#reportBroken(error));
  }

  async #answerTo(request: IncomingMessage, gone: AbortSignal): Promise<EndpointAnswer> {
    const { what, logger, handle, methods = READS } = this.#options;
    if (!methods.includes(request.method ?? "")) return notAllowed(methods);
    const url = targetOf(request);
    if (url === undefined) return BAD_TARGET;
    try {
      return (await handle(url, request, gone)) ?? NOT_FOUND;
    } catch (error) {
      if (gone.aborted) this.#reportBroken(error);
      else logger.error({}, `${what} could not be served: ${messageOf(error)}`);
      return textAnswer(500, "internal server error");
    }
  }

  #reportBroken(error: unknown): void {
    const { what, logger } = this.#options;
    logger.debug({}, `a response of ${what} was aborted: ${messageOf(error)}`);
  }

  #failure(error: NodeJS.ErrnoException): Error {
    const { what, setting, address } = this.#options;
    const why = memberOf(LISTEN_PROBLEMS, error.code ?? "") ?? messageOf(error);
    const way = `set ${setting} to another address, or to "0" to disable it`;
    return new Error(`${what} cannot be served at ${describeAddress(address)}: ${why}; ${way}`);
  }
}

/** Parses a request target: a path, or an absolute URL as proxies send it. A path that begins with "//" does not name a host. */
function targetOf({ url = "" }: IncomingMessage): URL | undefined {
  if (url.startsWith("/")) return parsed(`http://endpoint${url}`);
  return /^https?:\/\//i.test(url) ? parsed(url) : undefined;
}

function parsed(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** Returns a plain-text response whose first line begins with the status code. */
export function textAnswer(status: number, text: string): EndpointAnswer {
  return { status, body: `${status} ${text}\n` };
}

/** Returns the response 405 Method Not Allowed. */
export function notAllowed(methods: readonly string[]): EndpointAnswer {
  return { status: 405, body: `only ${methods.join(" and ")}\n`, headers: { allow: methods.join(", ") } };
}

/** The address that a server listens on. */
interface BindAddress {
  /** Absent for all interfaces. */
  readonly host?: string;
  readonly port: number;
}

/** A description of valid addresses, for messages. */
export const ADDRESS = 'an address such as ":8081" or "127.0.0.1:8081", or "0" for none';
/** A description of valid loopback addresses, for messages. */
export const LOOPBACK_ADDRESS = 'a loopback address such as "127.0.0.1:8082" or "[::1]:8082", or "0" for none';

/**
 * Parses an address as kubebuilder's flags do: `:8081` for all interfaces, `127.0.0.1:8081`, `[::1]:8081`; `:0` for any free port. Returns undefined
 * for `0` and the empty string, which disable the endpoint. Throws a TypeError with the name of the setting if the address is invalid.
 */
export function bindAddressOf(setting: string, text: string): BindAddress | undefined {
  if (text === "0" || text === "") return undefined;
  const found = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]*)):(\d{1,5})$/.exec(text);
  const port = Number(found?.[3]);
  if (found === null || port > 65_535) throw new TypeError(`${setting} is "${text}", and has to be ${ADDRESS}`);
  const host = found[1] ?? found[2];
  return host === undefined || host === "" ? { port } : { host, port };
}

/** Formats an address as `host:port`. */
export function describeAddress({ host, port }: BindAddress): string {
  return `${host?.includes(":") === true ? `[${host}]` : (host ?? "")}:${port}`;
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/i;

/** Like `bindAddressOf`, but throws a TypeError unless the address is a loopback address. */
export function loopbackAddressOf(setting: string, text: string): BindAddress | undefined {
  const address = bindAddressOf(setting, text);
  if (address === undefined || LOOPBACK.test(address.host ?? "")) return address;
  throw new TypeError(`${setting} is "${text}", and has to be ${LOOPBACK_ADDRESS}`);
}
