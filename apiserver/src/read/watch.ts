/**
 * Watches.
 *
 * A watch delivers all writes after its start, in order and without gaps: the initial state or the history is read and the subscription is made
 * without yielding to the event loop. Selectors are evaluated before and after each write, so an object that stops matching is reported as DELETED.
 * Each event is encoded once and shared by all watches of the same format.
 */
import { zeroObjectOf } from "../builtin/schema-node.js";
import type { ServedType } from "../builtin/served-type.js";
import { clearTimeout, setInterval, setTimeout } from "../clock.js";
import { type ListOptions, checkResourceVersion } from "../decode/options.js";
import { type Status, StatusError, tooLargeResourceVersion } from "../errors/status-error.js";
import { type JsonObject, objectAt } from "../json.js";
import { apiVersionOf } from "../object/object-meta.js";
import { settled } from "../pending-conversion.js";
import type { ServedResource } from "../registry/registry.js";
import type { StoreEvent, StoredObject } from "../storage/store.js";
import { presentObjects } from "./list.js";
import { type Selection, parseSelection } from "./selectors.js";

/** Encodes the events of a watch. */
export interface EventWriter {
  write(type: "ADDED" | "MODIFIED" | "DELETED", object: StoredObject): Buffer;
  writeBookmark(revision: number, options: { endsInitialEvents: boolean }): Buffer;
}

interface WatchRequest {
  resource: ServedResource;
  namespace: string | undefined;
  options: ListOptions;
  writer: EventWriter;
}

const BOOKMARK_INTERVAL_MS = 60_000;
const BEFORE_END_MS = 2_000;
const MIN_TIMEOUT_SECONDS = 1_800;
const FUTURE_WAIT_MS = 3_000;
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Validates and prepares a watch. The returned function starts it on a connection and returns a function that stops it. */
export function prepareWatch(request: WatchRequest): (sink: StreamSink) => () => void {
  const { resource, namespace, options } = request;
  const selection = parseSelection(resource, { ...options, namespace });
  checkResourceVersion(options);
  return (sink) => new Watch({ ...request, selection, sink }).start();
}

class Watch {
  readonly #resource: ServedResource;
  readonly #options: ListOptions;
  readonly #writer: EventWriter;
  readonly #selection: Selection;
  readonly #sink: StreamSink;
  readonly #timers: NodeJS.Timeout[] = [];
  #unsubscribe: (() => void) | undefined;
  /** The newest revision that the client has received. */
  #sent = 0;
  /** The latest event that is waiting for the conversion of its object; later events queue behind it. */
  #telling: Promise<void> | undefined;
  #isStopped = false;

  constructor(parts: WatchRequest & { selection: Selection; sink: StreamSink }) {
    this.#resource = parts.resource;
    this.#options = parts.options;
    this.#writer = parts.writer;
    this.#selection = parts.selection;
    this.#sink = parts.sink;
  }

  start(): () => void {
    this.#whenKnown(() => this.#begin());
    return () => this.#stop();
  }

  #begin(): void {
    const { resourceVersion, sendInitialEvents } = this.#options;
    const revision = Number(resourceVersion || "0");
    if (sendInitialEvents === true && revision > this.#resource.store.revision) this.#waitForFuture(revision);
    else if (sendInitialEvents ?? revision === 0) this.#sendState();
    else if (revision === 0) this.#follow(this.#resource.store.revision);
    else this.#resume(revision);
    this.#armTimers();
  }

  // Runs immediately, or again once pending conversions have finished.
  #whenKnown(run: () => void): void {
    const waited = settled(() => {
      if (!this.#isStopped) run();
    });
    waited?.catch((error: unknown) => {
      if (this.#isStopped) return;
      if (error instanceof StatusError) this.#fail(error.status);
      else this.#sink.end();
    });
  }

  #sendState(): void {
    const { store } = this.#resource;
    const { revision } = store;
    const objects = presentObjects(this.#resource, this.#selection);
    this.#resource.require(objects);
    this.#sink.sendLazily(this.#initialLines(objects, revision));
    this.#follow(revision);
  }

  *#initialLines(objects: StoredObject[], revision: number): Generator<Buffer> {
    for (const stored of objects) {
      if (this.#selection.matches(this.#resource.read(stored).object)) yield this.#writer.write("ADDED", stored);
    }
    if (this.#options.allowsBookmarks) yield this.#writer.writeBookmark(revision, { endsInitialEvents: true });
  }

  #resume(revision: number): void {
    const { store } = this.#resource;
    const missed = store.eventsAfter(revision);
    if (missed === undefined) {
      this.#fail({
        kind: "Status",
        apiVersion: "v1",
        metadata: {},
        status: "Failure",
        message: `too old resource version: ${revision} (${store.compacted})`,
        reason: "Expired",
        code: 410,
      });
      return;
    }
    for (const event of missed) this.#next(event);
    // Events that are not durable yet are delivered again once they are, so follow from the current revision.
    this.#follow(Math.max(revision, store.revision));
  }

  // Events up to the revision were sent with the initial state or from the history. They are filtered here and not in #tell, because an event from
  // the history that waits for its conversion is sent after the watch has subscribed.
  #follow(revision: number): void {
    this.#sent = Math.max(this.#sent, revision);
    this.#unsubscribe = this.#resource.store.subscribe({
      next: (event) => {
        if (event.revision > revision) this.#next(event);
      },
      end: () => this.#sink.end(),
    });
  }

  #next(event: StoreEvent): void {
    if (!this.#resource.asksWebhook) return this.#tell(event);
    const telling = (this.#telling ?? Promise.resolve())
      .then(() => settled(() => this.#tell(event)))
      .catch(() => this.#break())
      .finally(() => {
        if (this.#telling === telling) this.#telling = undefined;
      });
    this.#telling = telling;
  }

  // An event was lost, so end the watch; the client resumes from the last event that it received.
  #break(): void {
    if (this.#isStopped) return;
    this.#stop();
    this.#sink.end();
  }

  #tell(event: StoreEvent): void {
    if (this.#isStopped) return;
    if (!event.key.startsWith(this.#selection.prefix)) return;
    const { current } = event;
    const wasSelected = this.#selects(event.previous);
    const isSelected = this.#selects(current);
    if (isSelected && current !== undefined)
      this.#send(this.#writer.write(wasSelected ? "MODIFIED" : "ADDED", current), event);
    else if (wasSelected && event.departed !== undefined)
      this.#send(this.#writer.write("DELETED", event.departed), event);
  }

  #send(line: Buffer, { revision }: StoreEvent): void {
    this.#sent = revision;
    this.#sink.send(line);
  }

  #selects(stored: StoredObject | undefined): boolean {
    if (stored === undefined) return false;
    return !this.#selection.isFiltered || this.#selection.matches(this.#resource.read(stored).object);
  }

  #waitForFuture(revision: number): void {
    this.#after(FUTURE_WAIT_MS, () => {
      const current = this.#resource.store.revision;
      if (revision <= current) this.#whenKnown(() => this.#sendState());
      else this.#fail(tooLargeResourceVersion(String(revision), String(current)).status);
    });
  }

  #fail(status: Status): void {
    this.#sink.send(Buffer.from(`{"type":"ERROR","object":${JSON.stringify(status)}}\n`));
    this.#sink.end();
  }

  #armTimers(): void {
    // kube-apiserver randomizes the timeout, so that clients do not reconnect at the same time.
    const seconds = this.#options.timeoutSeconds ?? MIN_TIMEOUT_SECONDS * (1 + Math.random());
    this.#after(seconds * 1000, () => this.#sink.end());
    if (!this.#options.allowsBookmarks) return;
    const interval = setInterval(() => this.#sendBookmark(), BOOKMARK_INTERVAL_MS);
    interval.unref();
    this.#timers.push(interval);
    if (seconds * 1000 > BEFORE_END_MS) this.#after(seconds * 1000 - BEFORE_END_MS, () => this.#sendBookmark());
  }

  // Sends a bookmark only if the revision has advanced.
  #sendBookmark(): void {
    const { shownRevision: revision } = this.#resource.store;
    if (revision <= this.#sent || this.#unsubscribe === undefined || this.#telling !== undefined) return;
    this.#sent = revision;
    this.#sink.send(this.#writer.writeBookmark(revision, { endsInitialEvents: false }));
  }

  #after(delayMs: number, run: () => void): void {
    this.#timers.push(setTimeout(run, Math.min(delayMs, MAX_TIMER_MS)).unref());
  }

  #stop(): void {
    this.#isStopped = true;
    this.#unsubscribe?.();
    for (const timer of this.#timers) clearTimeout(timer);
  }
}

const INITIAL_EVENTS_END = { "k8s.io/initial-events-end": "true" };
const writers = new WeakMap<ServedResource, EventWriter>();

/** Returns the encoder of JSON events, which all watches of a resource share. */
export function jsonEventWriter(resource: ServedResource): EventWriter {
  let writer = writers.get(resource);
  if (writer === undefined) writers.set(resource, (writer = createEventWriter(resource)));
  return writer;
}

function createEventWriter(resource: ServedResource): EventWriter {
  // All watches write an event before the next one arrives, so caching one line is enough.
  let last: { type: string; object: StoredObject; line: Buffer } | undefined;
  return {
    write(type, object) {
      if (last?.object === object && last.type === type) return last.line;
      const line = Buffer.from(`{"type":"${type}","object":${resource.jsonOf(object)}}\n`);
      last = { type, object, line };
      return line;
    },
    writeBookmark: (revision, options) => eventLine("BOOKMARK", bookmarkOf(resource, revision, options)),
  };
}

/** Encodes one line of a watch response. */
export function eventLine(type: string, object: unknown): Buffer {
  return Buffer.from(`${JSON.stringify({ type, object })}\n`);
}

// kube-apiserver's internal type has an int here instead of a pointer, so a bookmark contains `replicas: 0`.
const COUNTED_KINDS = new Set(["Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"]);

function emptyObjectOf({ schemaName, kind }: ServedType): JsonObject {
  const zero = schemaName === undefined ? {} : zeroObjectOf(schemaName);
  return COUNTED_KINDS.has(kind) ? { ...zero, spec: { replicas: 0, ...objectAt(zero, "spec") } } : zero;
}

/** Builds the object of a bookmark: the resourceVersion and the zero values that Go encodes for an empty object. */
export function bookmarkOf(
  { type }: ServedResource,
  revision: number,
  { endsInitialEvents }: { endsInitialEvents: boolean },
): JsonObject {
  const annotations = endsInitialEvents ? { annotations: INITIAL_EVENTS_END } : {};
  return {
    ...emptyObjectOf(type),
    kind: type.kind,
    apiVersion: apiVersionOf(type),
    metadata: { resourceVersion: String(revision), ...annotations },
  };
}

/** Receives the lines of a streaming response. */
export interface StreamSink {
  /** Queues lines that are generated only when the client can receive them, such as the initial state of a watch. */
  sendLazily(lines: Iterable<Buffer>): void;
  /** Queues one line; disconnects a client that falls too far behind. */
  send(line: Buffer): void;
  /** Ends the response after all queued lines. */
  end(): void;
}
