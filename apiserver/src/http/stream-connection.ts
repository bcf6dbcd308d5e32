import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { setImmediate } from "../clock.js";
import type { Status } from "../errors/status-error.js";
import type { StreamSink } from "../read/watch.js";

/** Limit of queued events, in bytes. A client that exceeds it is disconnected, and resumes its watch from its last resourceVersion. */
const MAX_QUEUED_BYTES = 64 * 1024 * 1024;
const WRITE_BYTES = 256 * 1024;

/** The destination of the lines: an HTTP response or a WebSocket. */
export interface StreamTarget {
  readonly destroyed: boolean;
  write(chunk: Buffer, written?: () => void): boolean;
  end(): void;
  destroy(): void;
  on(event: "drain" | "close", listener: () => void): void;
}

/** A filter between a watch and its connection. */
export interface LineFilter {
  /** Accepts a line and passes lines on to `emit`: at once, later, or never. */
  take(line: Buffer): void;
  /** Emits the lines that are held back, because the watch ends. */
  flush(): void;
}

/**
 * Writes the lines of one watch to one response.
 *
 * Lines from the same turn of the event loop are written at once. Lines for a slow client are queued, up to a limit.
 */
export class StreamConnection implements StreamSink {
  readonly #response: StreamTarget;
  #initial: Iterator<Buffer> | undefined;
  #queued: Buffer[] = [];
  #queuedBytes = 0;
  #isScheduled = false;
  #isBlocked = false;
  #hasEnded = false;
  #cutsNextLine = false;
  #holds = 0;
  #filters: LineFilter[] = [];

  constructor(response: StreamTarget) {
    this.#response = response;
    response.on("drain", () => {
      this.#isBlocked = false;
      this.#flush();
    });
  }

  sendLazily(lines: Iterable<Buffer>): void {
    if (this.#filters.length > 0) {
      for (const line of lines) this.send(line);
      return;
    }
    this.#initial = lines[Symbol.iterator]();
    this.#schedule();
  }

  send(line: Buffer): void {
    const [first] = this.#filters;
    if (first === undefined) this.#queue(line);
    else first.take(line);
  }

  /** Passes every further line through a filter until the returned function is called. The oldest filter comes first. */
  filter(create: (emit: (line: Buffer) => void) => LineFilter): () => void {
    const filter: LineFilter = create((line) => {
      const next = this.#filters[this.#filters.indexOf(filter) + 1];
      if (next === undefined) this.#queue(line);
      else next.take(line);
    });
    this.#filters.push(filter);
    return () => {
      filter.flush();
      this.#filters = this.#filters.filter((other) => other !== filter);
    };
  }

  #queue(line: Buffer): void {
    if (this.#hasEnded) return;
    this.#queued.push(line);
    this.#queuedBytes += line.length;
    if (this.#queuedBytes > MAX_QUEUED_BYTES) this.#response.destroy();
    else this.#schedule();
  }

  /** Ends the stream with an ERROR event. */
  fail(status: Status): void {
    this.send(Buffer.from(`{"type":"ERROR","object":${JSON.stringify(status)}}\n`));
    this.end();
  }

  end(): void {
    for (const filter of this.#filters) filter.flush();
    this.#hasEnded = true;
    this.#schedule();
  }

  /** Breaks the connection. Lines that are still queued are lost. */
  abort(): void {
    this.#response.destroy();
  }

  /** Pauses writing until the returned function is called. */
  hold(): () => void {
    this.#holds++;
    return () => {
      this.#holds--;
      this.#schedule();
    };
  }

  /** Breaks the connection in the middle of a line: of the next event, or at once within an invented one. */
  cut(options: { at: "now" | "next-event" }): void {
    this.#cutsNextLine = true;
    // The line bypasses the filters, so that the connection of a silenced watch breaks too.
    if (options.at === "now")
      this.#queue(Buffer.from('{"type":"MODIFIED","object":{"kind":"Cut","metadata":{"name":"in-the-middle"}}}\n'));
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isBlocked || this.#holds > 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    while (!this.#isBlocked && this.#holds === 0 && !this.#response.destroyed) {
      const chunk = this.#take();
      if (chunk === undefined) {
        if (this.#hasEnded) this.#response.end();
        return;
      }
      if (this.#cutsNextLine) return this.#writeHalf(chunk);
      this.#isBlocked = !this.#response.write(chunk);
    }
  }

  #take(): Buffer | undefined {
    const chunks: Buffer[] = [];
    let bytes = 0;
    while (bytes < WRITE_BYTES) {
      const line = this.#nextLine();
      if (line === undefined) break;
      chunks.push(line);
      bytes += line.length;
    }
    if (chunks.length === 0) return undefined;
    return chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, bytes);
  }

  #nextLine(): Buffer | undefined {
    if (this.#initial !== undefined) {
      const next = this.#initial.next();
      if (next.done !== true) return next.value;
      this.#initial = undefined;
      return this.#nextLine();
    }
    return this.#nextQueued();
  }

  #nextQueued(): Buffer | undefined {
    if (this.#queued.length === 0) return undefined;
    const lines = this.#queued.length === 1 ? this.#queued[0] : Buffer.concat(this.#queued, this.#queuedBytes);
    this.#queued = [];
    this.#queuedBytes = 0;
    return lines;
  }

  #writeHalf(chunk: Buffer): void {
    const end = chunk.indexOf("\n");
    this.#response.write(chunk.subarray(0, Math.max(1, end >> 1)), () => this.#response.destroy());
  }
}

// The server side of RFC 6455, as far as a watch needs it: each line is sent as a text message, and only ping and close frames of the client are
// handled.

const TEXT = 0x1;
const CLOSE = 0x8;
const PING = 0x9;
const PONG = 0xa;
const NEWLINE = 0x0a;
// https://datatracker.ietf.org/doc/html/rfc6455#section-1.3
const ACCEPT_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Reports whether a request asks to upgrade to a WebSocket. */
export function isWebSocketRequest({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === "websocket" && headers["sec-websocket-key"] !== undefined;
}

/** Accepts a WebSocket. Each JSON line written to the returned target is sent as a text message. */
export function acceptWebSocket(request: IncomingMessage, socket: Duplex, headers: readonly string[]): StreamTarget {
  const key = `${request.headers["sec-websocket-key"]}${ACCEPT_SUFFIX}`;
  const accept = createHash("sha1").update(key).digest("base64");
  const lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"];
  for (let index = 0; index < headers.length; index += 2) lines.push(`${headers[index]}: ${headers[index + 1]}`);
  socket.write([...lines, `Sec-WebSocket-Accept: ${accept}`, "", ""].join("\r\n"));
  answerControlFrames(socket);
  return {
    get destroyed() {
      return socket.destroyed || socket.writableEnded;
    },
    write: (chunk, written) => socket.write(textFramesOf(chunk), written),
    end: () => void socket.end(frameOf(CLOSE, Buffer.from([0x03, 0xe8]))),
    destroy: () => void socket.destroy(),
    on: (event, listener) => void socket.on(event, listener),
  };
}

function textFramesOf(chunk: Buffer): Buffer {
  const frames: Buffer[] = [];
  let start = 0;
  for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
    frames.push(frameOf(TEXT, chunk.subarray(start, end + 1)));
    start = end + 1;
  }
  // A line without a newline is cut on purpose: the client keeps waiting for the rest of the message.
  if (start < chunk.length) frames.push(headerOf(TEXT, chunk.length - start + 1), chunk.subarray(start));
  return Buffer.concat(frames);
}

function frameOf(opcode: number, payload: Buffer): Buffer {
  return Buffer.concat([headerOf(opcode, payload.length), payload]);
}

function headerOf(opcode: number, length: number): Buffer {
  const first = 0x80 | opcode;
  if (length < 126) return Buffer.from([first, length]);
  if (length < 0x10000) return Buffer.from([first, 126, length >> 8, length & 0xff]);
  const header = Buffer.alloc(10);
  header.writeUInt16BE((first << 8) | 127, 0);
  header.writeBigUInt64BE(BigInt(length), 2);
  return header;
}

function answerControlFrames(socket: Duplex): void {
  let bytes: Buffer = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    for (let frame = firstFrame(bytes); frame !== undefined; frame = firstFrame(bytes)) {
      bytes = bytes.subarray(frame.end);
      if (frame.opcode === PING) socket.write(frameOf(PONG, frame.payload));
      if (frame.opcode === CLOSE) socket.end(frameOf(CLOSE, frame.payload));
    }
  });
  socket.on("end", () => socket.end());
}

/** Parses a client frame; undefined if it is not complete yet. */
function firstFrame(bytes: Buffer): { opcode: number; payload: Buffer; end: number } | undefined {
  if (bytes.length < 2) return undefined;
  const short = bytes.readUInt8(1) & 0x7f;
  const afterLength = short < 126 ? 2 : short === 126 ? 4 : 10;
  if (bytes.length < afterLength) return undefined;
  const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
  const isMasked = (bytes.readUInt8(1) & 0x80) !== 0;
  const start = afterLength + (isMasked ? 4 : 0);
  const end = start + length;
  if (bytes.length < end) return undefined;
  const payload = Buffer.from(bytes.subarray(start, end));
  if (isMasked) payload.forEach((byte, index) => (payload[index] = byte ^ bytes.readUInt8(afterLength + (index % 4))));
  return { opcode: bytes.readUInt8(0) & 0x0f, payload, end };
}
