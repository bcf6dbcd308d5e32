// An API server over TLS with tens of thousands of Deployments, in a separate process. It supports paginated LIST, WATCH, and WatchList. Its parent
// process can make it send events to its only watch, or expire all watches.
import { createServer } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { once } from "node:events";
import type { Writable } from "node:stream";
import { createServingCertificate } from "#apiserver/x509/authority.js";
import { createDeploymentText, type DeploymentText } from "./deployment-text.js";

/** The commands of the parent process. */
export type ServerCommand =
  | { readonly kind: "events"; readonly count: number }
  /** Ends all watches with 410 Gone; `changed` is the number of objects that change without an event. */
  | { readonly kind: "expire"; readonly changed: number };

/** The settings of the server. */
export interface ServerSettings {
  readonly objects: number;
  readonly hasWatchList: boolean;
}

const { objects, hasWatchList } = JSON.parse(process.argv[2]!) as ServerSettings;
const ITEMS_PER_WRITE = 16;
const FIRST_VERSION = 10_000_000;

const versions = new Uint32Array(objects).map((_, index) => FIRST_VERSION + index);
let version = FIRST_VERSION + objects;
let expiredBefore = 0;
const watches = new Set<Socket>();

const added = createEventText("ADDED");
const modified = createEventText("MODIFIED");
const item = createDeploymentText({ hasType: false, after: "," });

/** Creates an event as a chunk of a chunked response. */
function createEventText(type: string): DeploymentText {
  const before = `{"type":"${type}","object":`;
  const after = "}\n";
  const length = createDeploymentText({ before, after }).length;
  return createDeploymentText({ before: `${length.toString(16)}\r\n${before}`, after: `${after}\r\n` });
}

function write(target: Writable, bytes: Buffer | string): Promise<void> {
  // The callback is also called after an error, when the connection is closed.
  return new Promise((resolve) => void target.write(bytes, () => resolve()));
}

// Writes each event separately, and so as its own TLS record, as kube-apiserver does when it flushes after each event.
async function writeEvents(socket: Socket, text: DeploymentText, indexes: Iterable<number>): Promise<void> {
  for (const index of indexes) {
    const bytes = Buffer.allocUnsafe(text.length);
    text.write(bytes, 0, { index, version: versions[index]! });
    await write(socket, bytes);
    if (socket.destroyed) return;
  }
}

function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

function bookmark(annotations: object): string {
  const metadata = { resourceVersion: String(version), creationTimestamp: null, annotations };
  const object = { kind: "Deployment", apiVersion: "apps/v1", metadata, spec: {}, status: {} };
  return chunk(`${JSON.stringify({ type: "BOOKMARK", object })}\n`);
}

function* range(from: number, to: number): Iterable<number> {
  for (let index = from; index < to; index++) yield index;
}

async function answerWatch(query: URLSearchParams, socket: Socket): Promise<void> {
  const isInitial = query.get("sendInitialEvents") === "true";
  await write(socket, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n");
  if (!isInitial && Number(query.get("resourceVersion") ?? 0) < expiredBefore) return void socket.end(expired());
  if (isInitial) {
    await writeEvents(socket, added, range(0, objects));
    await write(socket, bookmark({ "k8s.io/initial-events-end": "true" }));
  }
  watches.add(socket);
  socket.once("close", () => watches.delete(socket));
}

function expired(): string {
  const object = {
    kind: "Status",
    status: "Failure",
    message: "too old resource version",
    reason: "Expired",
    code: 410,
  };
  return `${chunk(`${JSON.stringify({ type: "ERROR", object })}\n`)}0\r\n\r\n`;
}

async function answerList(query: URLSearchParams, response: ServerResponse): Promise<void> {
  const from = Number(query.get("continue") ?? 0);
  const to = Math.min(objects, from + Number(query.get("limit") ?? objects));
  const rest = to < objects ? { continue: String(to), remainingItemCount: objects - to } : {};
  const metadata = JSON.stringify({ resourceVersion: String(version), ...rest });
  response.writeHead(200, { "content-type": "application/json" });
  response.write(`{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":${metadata},"items":[`);
  for (let start = from; start < to; start += ITEMS_PER_WRITE) {
    const end = Math.min(to, start + ITEMS_PER_WRITE);
    const bytes = Buffer.allocUnsafe((end - start) * item.length);
    for (let index = start; index < end; index++)
      item.write(bytes, (index - start) * item.length, { index, version: versions[index]! });
    // Remove the comma after the last item.
    const part = end === to ? bytes.subarray(0, -1) : bytes;
    await write(response, part);
    if (response.destroyed) return;
  }
  response.end("]}\n");
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  const { searchParams: query } = new URL(request.url ?? "/", "https://localhost");
  const isWatch = ["true", "1"].includes(query.get("watch") ?? "");
  if (!isWatch) return void answerList(query, response);
  if (query.has("sendInitialEvents") && !hasWatchList) {
    const status = {
      kind: "Status",
      status: "Failure",
      reason: "Invalid",
      code: 422,
      message: "sendInitialEvents is forbidden",
    };
    return void response.writeHead(422).end(JSON.stringify(status));
  }
  void answerWatch(query, request.socket);
}

async function sendEvents(count: number): Promise<void> {
  function* changed(): Iterable<number> {
    for (let event = 0; event < count; event++) {
      // Consecutive events belong to different owners, and all objects take turns.
      const index = (event * 7_919) % objects;
      versions[index] = ++version;
      yield index;
    }
  }
  const [socket] = watches;
  if (socket === undefined || watches.size > 1) throw new Error(`expected one watch, there are ${watches.size}`);
  await writeEvents(socket, modified, changed());
}

async function expire(changed: number): Promise<void> {
  for (let index = 0; index < changed; index++) versions[index] = ++version;
  expiredBefore = ++version;
  for (const socket of watches) socket.end(expired());
}

const { ca, certificate, key } = createServingCertificate();
const server = createServer({ cert: certificate, key, keepAliveTimeout: 90_000 }, answer);
server.listen(0, "127.0.0.1");
await once(server, "listening");
process.on("message", (command: ServerCommand) => {
  if (command.kind === "events") void sendEvents(command.count);
  else if (command.kind === "expire") void expire(command.changed);
});
process.on("disconnect", () => process.exit(0));
process.send!({ url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, ca });
