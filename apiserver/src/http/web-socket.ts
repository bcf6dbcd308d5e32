// The server's half of RFC 6455, as far as a watch needs it: every line is sent as one text; of what the client says, only ping and
// close are answered.
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { StreamTarget } from "./stream-connection.js";

const TEXT = 0x1;
const CLOSE = 0x8;
const PING = 0x9;
const PONG = 0xa;
const NEWLINE = 0x0a;
// https://datatracker.ietf.org/doc/html/rfc6455#section-1.3
const ACCEPT_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Does a request ask to go on as a WebSocket? */
export function isWebSocketRequest({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === "websocket" && headers["sec-websocket-key"] !== undefined;
}

/** Accepts a WebSocket; lines of JSON that are written to what is returned reach the client as texts. */
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
  // What has no newline is cut on purpose: the client waits for the rest of the text.
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

/** Reads a masked frame; undefined when it has not arrived as a whole. */
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
