import type { X509Certificate } from "node:crypto";
import { once } from "node:events";
import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  ServerResponse,
  createServer as createHttpServer,
} from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { setImmediate } from "../clock.js";
import type { ClientCertificate } from "../identity/authenticator.js";
import {
  type Answer,
  type ApiRequest,
  type LocalAnswer,
  type LocalRequest,
  type StreamAnswer,
  parseResourcePath,
} from "./request-info.js";
import { StreamConnection, type StreamTarget, acceptWebSocket, isWebSocketRequest } from "./stream-connection.js";

const LOOPBACK = "127.0.0.1";
const WILDCARDS = ["0.0.0.0", "::"];
const MAX_BODY_BYTES = 3 * 1024 * 1024;
// As in kube-apiserver: Go's DefaultMaxHeaderBytes, and the ReadHeaderTimeout of the server.
const MAX_HEADER_BYTES = 1024 * 1024;
const HEADERS_TIMEOUT_MS = 32_000;
const REQUEST_TIMEOUT_MS = 60_000;
const LOCAL_REQUESTS_PER_TURN = 8;

/** Options of a Listener. */
interface ListenerOptions {
  port: number;
  /** The address to listen on. */
  host: string;
  /** The host name in the URL for other hosts. */
  publicName?: string | undefined;
  /** The serving certificate, its key, and the client CA certificates in PEM. Without it, the server uses plain HTTP. */
  tls?: { cert: string; key: string; ca: readonly string[] };
  answer(request: ApiRequest): Promise<Answer | StreamAnswer> | Answer | StreamAnswer;
  /** Responds to a request whose body exceeds the limit, in bytes. */
  answerTooLarge(limit: number): Answer;
  /** Called for every stream before it starts. */
  onStream?(stream: StreamConnection, request: ApiRequest): void;
  /** Called for every stream that has ended. */
  onStreamEnd?(request: ApiRequest): void;
}

/** The HTTP server. No other part of the server handles sockets. */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #streams = new Map<StreamConnection, ApiRequest>();
  // Node's own list lacks sockets of upgraded requests and those in a TLS handshake.
  readonly #sockets = new Set<Duplex>();
  /** Callbacks that start the queued local requests. */
  readonly #waiting: (() => void)[] = [];
  #server: Server | undefined;
  #isHeld = true;
  #port: number;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#port = options.port;
  }

  /** The URL for clients. */
  get url(): string {
    return this.#urlOf(this.#options.publicName ?? this.#localHost);
  }

  /** The URL that this process can reach. */
  get localUrl(): string {
    return this.#urlOf(this.#localHost);
  }

  get #localHost(): string {
    const { host } = this.#options;
    return WILDCARDS.includes(host) ? LOOPBACK : host;
  }

  #urlOf(host: string): string {
    const scheme = this.#options.tls === undefined ? "http" : "https";
    return `${scheme}://${host.includes(":") ? `[${host}]` : host}:${this.#port}`;
  }

  /** Keeps the process alive again, after `unref`. */
  ref(): void {
    this.#isHeld = true;
    this.#server?.ref();
  }

  /** Lets the process exit while the server is listening. */
  unref(): void {
    this.#isHeld = false;
    this.#server?.unref();
    for (const socket of this.#sockets) unrefSocket(socket);
  }

  /** The open streams with their requests. */
  get streams(): ReadonlyMap<StreamConnection, ApiRequest> {
    return this.#streams;
  }

  /** Starts to listen. A port that the system chose is kept when the listener is opened again. */
  async open(): Promise<void> {
    const { tls } = this.#options;
    const listener = (message: IncomingMessage, response: ServerResponse): void => void this.#serve(message, response);
    const limits = {
      maxHeaderSize: MAX_HEADER_BYTES,
      // Limits for receiving a request. A response, such as a watch, may take any time.
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
    };
    const server =
      tls === undefined ? createHttpServer(limits, listener) : createHttpsServer(tlsOptionsOf(tls, limits), listener);
    server.on("connection", (socket: Duplex) => {
      this.#sockets.add(socket);
      if (!this.#isHeld) unrefSocket(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    server.on("upgrade", (message: IncomingMessage, socket: Duplex, head: Buffer) => {
      void this.#upgrade(message, { socket, head });
    });
    server.keepAliveTimeout = 120_000;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.#port, this.#options.host, () => {
        server.off("error", reject);
        resolve();
      });
    });
    if (!this.#isHeld) server.unref();
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  /** Handles a request of this process without a socket. Watches are not supported. */
  async ask({ method, path, headers, body = "" }: LocalRequest): Promise<LocalAnswer> {
    await this.#nextTurn();
    if (this.#server === undefined) throw new Error("the API server is not listening");
    const given = { method, url: path, headers: headers as IncomingHttpHeaders };
    const answer = await this.#options.answer(requestOf(given, Buffer.from(body)));
    if (answer.kind === "stream" || answer.isCut === true)
      throw new Error("the connection was closed before the end of the response");
    return { status: answer.status, text: answer.body.toString() };
  }

  // Starts a few local requests in each turn of the event loop, so that thousands of them do not block requests from sockets.
  #nextTurn(): Promise<void> {
    const isFirst = this.#waiting.length === 0;
    const turn = new Promise<void>((resolve) => this.#waiting.push(resolve));
    if (isFirst) setImmediate(() => this.#beginTurn());
    return turn;
  }

  #beginTurn(): void {
    for (const begin of this.#waiting.splice(0, LOCAL_REQUESTS_PER_TURN)) begin();
    if (this.#waiting.length > 0) setImmediate(() => this.#beginTurn());
  }

  /** Stops listening and breaks every connection. */
  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #serve(message: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on("error", () => response.destroy());
    try {
      const body = await readBody(message);
      if (body === undefined) return writeAnswer(response, this.#options.answerTooLarge(MAX_BODY_BYTES));
      const request = requestOf(message, body);
      const answer = await this.#options.answer(request);
      if (response.destroyed) return;
      if (answer.kind === "answer") return writeAnswer(response, answer);
      writeStreamHead(response, answer);
      this.#writeStream(response, { answer, request });
    } catch {
      // The client closed the connection while sending, or a fault broke it.
      response.destroy();
    }
  }

  /** Serves a watch over a WebSocket. Other upgrade requests are handled as ordinary HTTP. */
  async #upgrade(message: IncomingMessage, { socket, head }: { socket: Duplex; head: Buffer }): Promise<void> {
    socket.on("error", () => socket.destroy());
    try {
      const request = requestOf(message, await readBodyAfter(head, { message, socket }));
      const answer = await this.#options.answer(request);
      if (socket.destroyed) return;
      if (answer.kind === "stream" && isWebSocketRequest(message)) {
        const target = acceptWebSocket(message, socket, headersOf(answer));
        return this.#writeStream(target, { answer, request });
      }
      const response = new ServerResponse(message);
      response.shouldKeepAlive = false;
      response.assignSocket(socket as Socket);
      response.once("finish", () => socket.end());
      if (answer.kind === "answer") return writeAnswer(response, answer);
      writeStreamHead(response, answer);
      this.#writeStream(response, { answer, request });
    } catch {
      socket.destroy();
    }
  }

  #writeStream(response: StreamTarget, { answer, request }: { answer: StreamAnswer; request: ApiRequest }): void {
    const connection = new StreamConnection(response);
    this.#streams.set(connection, request);
    this.#options.onStream?.(connection, request);
    const stop = answer.open(connection);
    response.on("close", () => {
      this.#streams.delete(connection);
      this.#options.onStreamEnd?.(request);
      stop();
    });
  }
}

function unrefSocket(socket: Duplex): void {
  (socket as Socket).unref();
}

// An untrusted client certificate is rejected with a response, not in the handshake.
function tlsOptionsOf<T extends object>({ cert, key, ca }: NonNullable<ListenerOptions["tls"]>, limits: T) {
  return { cert, key, ca: [...ca], requestCert: true, rejectUnauthorized: false, ...limits };
}

type Message = Pick<IncomingMessage, "method" | "url" | "headers"> & Partial<Pick<IncomingMessage, "socket">>;

function requestOf(message: Message, body: Buffer): ApiRequest {
  const url = message.url ?? "/";
  const mark = url.indexOf("?");
  const path = mark < 0 ? url : url.slice(0, mark);
  return {
    method: message.method ?? "GET",
    path,
    target: parseResourcePath(path),
    auditAnnotations: new Map(),
    query: new URLSearchParams(mark < 0 ? "" : url.slice(mark + 1)),
    headers: message.headers,
    certificate: message.socket && certificateOf(message.socket),
    body,
  };
}

function readBody(message: IncomingMessage): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    message.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      // Read and discard the rest, so that the client can read the response.
      if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
    });
    message.on("end", () => {
      if (bytes > MAX_BODY_BYTES) resolve(undefined);
      else resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
    });
    message.on("error", reject);
    message.on("aborted", () => reject(new Error("the client closed the connection")));
  });
}

/** Java's HttpClient sends an upgrade to HTTP/2 with its first request over plain HTTP. Node does not read the body of such a request. */
async function readBodyAfter(head: Buffer, from: { message: IncomingMessage; socket: Duplex }): Promise<Buffer> {
  const length = Math.min(Number(from.message.headers["content-length"] ?? 0), MAX_BODY_BYTES);
  let body = head;
  while (body.length < length) {
    const [chunk] = (await once(from.socket, "data")) as [Buffer];
    body = Buffer.concat([body, chunk]);
  }
  return body.subarray(0, length);
}

function writeAnswer(response: ServerResponse, answer: Answer): void {
  const { status, contentType, body } = answer;
  const length = String(Buffer.byteLength(body));
  response.writeHead(status, [...headersOf(answer), "Content-Type", contentType, "Content-Length", length]);
  if (answer.isCut === true) {
    response.write(body.slice(0, body.length >> 1), () => response.destroy());
    return;
  }
  // For a string, but not for a buffer, Node writes headers and body to the socket at once.
  response.end(body);
}

function writeStreamHead(response: ServerResponse, answer: StreamAnswer): void {
  response.writeHead(200, [...headersOf(answer), "Content-Type", answer.contentType, "Transfer-Encoding", "chunked"]);
  response.flushHeaders();
}

function headersOf(answer: { headers?: Record<string, string>; warnings?: readonly string[] }): string[] {
  const warnings = shownWarnings(answer.warnings ?? []).flatMap((text) => ["Warning", `299 - ${quoted(text)}`]);
  const headers = { "Cache-Control": "no-cache, private", ...answer.headers };
  return [...Object.entries(headers).flat(), ...warnings];
}

function quoted(text: string): string {
  // Header values are Latin-1 without control characters.
  const safe = text.replace(/[^\x20-\xff]/g, " ");
  return `"${safe.replace(/["\\]/g, "\\$&")}"`;
}

// The certificate is the same for all requests of a connection.
const known = new WeakMap<Socket, ClientCertificate>();

/** Returns the client certificate of a connection; undefined if there is none. */
function certificateOf(socket: Socket): ClientCertificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const before = known.get(socket);
  if (before !== undefined) return before;
  const peer = socket.getPeerX509Certificate();
  if (peer === undefined) return undefined;
  const certificate = readCertificate(peer, socket.authorized);
  known.set(socket, certificate);
  return certificate;
}

function readCertificate(peer: X509Certificate, isTrusted: boolean): ClientCertificate {
  const { CN, O } = peer.toLegacyObject().subject as { CN?: string | string[]; O?: string | string[] };
  return {
    isTrusted,
    commonName: [CN ?? ""].flat().at(-1) ?? "",
    organizations: [O ?? []].flat(),
    validFrom: new Date(peer.validFrom),
    validTo: new Date(peer.validTo),
    fingerprint: peer.fingerprint256.replaceAll(":", "").toLowerCase(),
  };
}

// The limits of kube-apiserver's endpoints/filters/warning.go, in code points.
const MAX_TOTAL = 4 * 1024;
const MAX_SHORTENED = 256;

/** Returns the texts of the `Warning` headers, without duplicates. If they exceed the total limit, each one is truncated. */
function shownWarnings(texts: readonly string[]): string[] {
  const distinct = [...new Set(texts)].filter((text) => text !== "");
  if (lengthOf(distinct.join("")) <= MAX_TOTAL) return distinct;
  const shown: string[] = [];
  let total = 0;
  for (const text of distinct) {
    if (total >= MAX_TOTAL) break;
    const shortened = [...text].slice(0, MAX_SHORTENED).join("");
    shown.push(shortened);
    total += lengthOf(shortened);
  }
  return shown;
}

function lengthOf(text: string): number {
  return [...text].length;
}

// A listening server keeps its process alive, so a test that does not close it would hang without any output. The warning is printed when nothing
// else keeps the process alive.

const open = new Set<Listener>();

/** Lets a listener keep the process alive until the returned function is called, and warns on standard error once nothing else keeps it alive. */
export function holdProcess(listener: Listener): () => void {
  if (open.size === 0) process.on("beforeExit", tell);
  open.add(listener);
  return () => {
    if (!open.delete(listener) || open.size > 0) return;
    process.off("beforeExit", tell);
  };
}

function tell(): void {
  for (const listener of open) {
    listener.ref();
    process.stderr.write(
      `the API server at ${listener.url} keeps this process alive: call its close(), or start it with unref: true\n`,
    );
  }
  open.clear();
  process.off("beforeExit", tell);
}
