import { randomBytes } from "node:crypto";
import * as http from "node:http";
import * as https from "node:https";
import type { Duplex } from "node:stream";
import type { Connection } from "../api/api-request.js";

/** A minimal WebSocket client, which receives text messages and sends only a close frame. */
export interface WebSocketClient extends Disposable {
  /** Waits for the next message; undefined if the server has closed the connection. */
  next(): Promise<string | undefined>;
  /** Sends a close frame. */
  close(): void;
}

/** Opens a WebSocket. Resolves to the status code if the server rejects the upgrade. */
export function openWebSocket(connection: Connection, path: string): Promise<WebSocketClient | number> {
  const send = connection.url.startsWith("https:") ? https.request : http.request;
  return new Promise((resolve, reject) => {
    const request = send(connection.url + path, {
      agent: false,
      ...(connection.ca === undefined ? {} : { ca: connection.ca }),
      headers: {
        authorization: `Bearer ${connection.token}`,
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": randomBytes(16).toString("base64"),
        // Kubernetes accepts an upgrade only if its origin matches the host.
        origin: connection.url,
      },
    });
    request.once("error", reject);
    request.once("response", (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.once("upgrade", (_, socket: Duplex, head: Buffer) => resolve(clientOf(socket, head)));
    request.end();
  });
}

function clientOf(socket: Duplex, head: Buffer): WebSocketClient {
  const texts = textsOf(socket, head)[Symbol.asyncIterator]();
  socket.on("error", () => undefined);
  return {
    async next() {
      const text = await texts.next();
      return text.done === true ? undefined : text.value;
    },
    // A close frame with a zero mask.
    close: () => void socket.write(Buffer.from([0x88, 0x80, 0, 0, 0, 0])),
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

async function* textsOf(socket: Duplex, head: Buffer): AsyncGenerator<string> {
  let bytes = head;
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    bytes = Buffer.concat([bytes, chunk]);
    for (let frame = firstFrame(bytes); frame !== undefined; frame = firstFrame(bytes)) {
      bytes = bytes.subarray(frame.end);
      if (frame.opcode === 8) return;
      if (frame.opcode === 1) yield frame.payload.toString();
    }
  }
}

function firstFrame(bytes: Buffer): { opcode: number; payload: Buffer; end: number } | undefined {
  if (bytes.length < 2) return undefined;
  const short = (bytes[1] ?? 0) & 0x7f;
  const start = short < 126 ? 2 : short === 126 ? 4 : 10;
  if (bytes.length < start) return undefined;
  const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
  const end = start + length;
  if (bytes.length < end) return undefined;
  return { opcode: (bytes[0] ?? 0) & 0x0f, payload: bytes.subarray(start, end), end };
}
