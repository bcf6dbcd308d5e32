import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { messageOf, type Logger } from "../../base/logger.js";
import { describeAddress, type BindAddress } from "./bind-address.js";

/** What an endpoint answers. */
export interface EndpointAnswer {
  readonly status: number;
  readonly body: string;
  /** Default: plain text. */
  readonly contentType?: string;
}

/** Answers a GET of a path; undefined if there is nothing at the path. */
export type EndpointHandler = (
  url: URL,
  request: IncomingMessage,
) => EndpointAnswer | undefined | Promise<EndpointAnswer | undefined>;

interface HttpEndpointOptions {
  /** What it serves, and the setting that says where, for messages. */
  readonly what: string;
  readonly setting: string;
  readonly address: BindAddress;
  readonly handle: EndpointHandler;
  readonly logger: Logger;
}

const NOT_FOUND: EndpointAnswer = { status: 404, body: "404 page not found\n" };
const NOT_ALLOWED: EndpointAnswer = { status: 405, body: "only GET and HEAD\n" };
// Whoever asks is a kubelet or a Prometheus: they are quick, and send little.
const LIMITS = { headersTimeout: 5_000, requestTimeout: 10_000, keepAliveTimeout: 65_000, maxHeaderSize: 16_384 };

/** A small HTTP server for those who operate the operator. */
export class HttpEndpoint {
  readonly #options: HttpEndpointOptions;
  readonly #server: Server;

  constructor(options: HttpEndpointOptions) {
    this.#options = options;
    this.#server = createServer(LIMITS, (request, response) => void this.#answer(request, response));
    this.#server.on("clientError", (_, socket) => socket.destroy());
  }

  /** Listens, if it does not yet; throws an error that names the address and the setting if that is not possible. */
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

  /** The port that it listens on, which the address may have left open. */
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
    // Nothing that is sent is read.
    request.resume();
    const { status, body, contentType = "text/plain; charset=utf-8" } = await this.#answerTo(request);
    response.writeHead(status, {
      "content-type": contentType,
      "content-length": Buffer.byteLength(body),
      "cache-control": "no-cache, private",
      "x-content-type-options": "nosniff",
    });
    response.end(request.method === "HEAD" ? undefined : body);
  }

  async #answerTo(request: IncomingMessage): Promise<EndpointAnswer> {
    const { what, logger, handle } = this.#options;
    if (request.method !== "GET" && request.method !== "HEAD") return NOT_ALLOWED;
    try {
      return (await handle(new URL(request.url ?? "/", "http://endpoint"), request)) ?? NOT_FOUND;
    } catch (error) {
      logger.error({}, `${what} could not be served: ${messageOf(error)}`);
      return { status: 500, body: "500 internal server error\n" };
    }
  }

  #failure(error: NodeJS.ErrnoException): Error {
    const { what, setting, address } = this.#options;
    const why =
      error.code === "EADDRINUSE"
        ? "another process listens there"
        : error.code === "EACCES"
          ? "this process may not listen there"
          : messageOf(error);
    const way = `state another address (${setting}), or "0" for none`;
    return new Error(`${what} cannot be served at ${describeAddress(address)}: ${why}; ${way}`);
  }
}
