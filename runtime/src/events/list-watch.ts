// Follows the objects of one kind for as long as it is told to, whatever happens.
//
// A stream starts with the whole state (WatchList, or a paged LIST where the server has none), goes on as a watch, and is taken up
// again at the last version after any interruption. A version that is too old (410) means the whole state again. Every other
// failure waits a growing, random time; nothing ends it but its signal.
import { Backoff } from "../base/backoff.js";
import { sleep } from "../base/clock.js";
import { ApiError, ConnectionError, isApiError, type ApiStatus } from "../base/errors.js";
import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import { errorOf, type ApiRequester } from "../cluster/api-requester.js";
import { decodeResource, peekResourceVersion, type DecodedResource } from "../cluster/decode-resource.js";
import { asciiString, endOfValue, findMember } from "../cluster/json-scanner.js";
import { LineSplitter } from "../cluster/line-splitter.js";
import { collectionPath, queryOf } from "../cluster/resource-path.js";
import type { Transport } from "../cluster/transport.js";
import { Watchdog } from "./watchdog.js";

/** What a list-watch follows. */
export interface ListWatchOptions {
  readonly definition: ResourceDefinition;
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly shardSelector?: string | undefined;
  /** Whether the server sends only the metadata of the objects. */
  readonly isMetadataOnly?: boolean | undefined;
  /** Whose managed fields are kept. */
  readonly fieldManagers: Iterable<string>;
  readonly transport: Transport;
  readonly requester: ApiRequester;
  /** A stream without a byte for this long is taken for dead; 3 minutes unless given. */
  readonly idleTimeoutMs?: number | undefined;
  readonly backoff?: Backoff;
}

/** What a list-watch calls, always from within one turn of the event loop for one event. */
export interface ListWatchConsumer {
  /** The complete state is being read, and will come by `replace`. */
  beginReplace(): void;
  /** The server answers a watch: whatever was wrong is over. */
  onConnected(): void;
  /** The complete state as of `version`. */
  replace(entries: DecodedResource[], version: string): void;
  observe(entry: DecodedResource): void;
  /** Whether the states of own writes are still to come. */
  expectsOwn(): boolean;
  /** Whether the state of this version is known already, so that it is not decoded. */
  observeOwn(version: string): boolean;
  observeDeletion(object: KubernetesObject): void;
  observeVersion(version: string): void;
  /** A failure that is going to be retried after `retryAfterMs`. */
  onFailure(error: unknown, retryAfterMs: number): void;
}

// The values of client-go's reflector, but for the idle time.
const BACKOFF = { initialMs: 400, factor: 2, maxMs: 15_000 };
const HEALTHY_AFTER_MS = 120_000;
const SHORT_LIVED_MS = 1_000;
const MIN_TIMEOUT_SECONDS = 300;
const IDLE_TIMEOUT_MS = 180_000;
const INITIAL_EVENTS_TIMEOUT_MS = 30_000;
const LIST_LIMIT = 500;
const INITIAL_EVENTS_END = "k8s.io/initial-events-end";

// The server says of such an object that it is a PartialObjectMetadata; it is put right when it is decoded.
const METADATA_OBJECT = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/** Thrown inside when the version to resume from is too old. */
class ExpiredError extends Error {}

/** Thrown inside when the server does not know WatchList. */
class WatchListUnsupportedError extends Error {}

/** Follows the kind until the signal is aborted; resolves then, and never rejects. */
export async function runListWatch(
  options: ListWatchOptions,
  consumer: ListWatchConsumer,
  signal: AbortSignal,
): Promise<void> {
  const backoff = options.backoff ?? new Backoff(BACKOFF);
  const state: StreamState = { version: undefined, usesWatchList: true };
  while (!signal.aborted) {
    const startedAt = performance.now();
    try {
      await runOnce(options, { consumer, state, signal });
      // A server that ends every stream at once would be asked again and again.
      if (performance.now() - startedAt > SHORT_LIVED_MS) backoff.reset();
      else await sleep(backoff.next(), signal);
    } catch (error) {
      if (signal.aborted) return;
      const isExpired = error instanceof ExpiredError || isApiError(error, 410);
      // A kind that is not served has no history to resume either.
      if (isExpired || isApiError(error, 404)) state.version = undefined;
      if (error instanceof WatchListUnsupportedError) {
        state.usesWatchList = false;
        continue;
      }
      if (performance.now() - startedAt > HEALTHY_AFTER_MS) backoff.reset();
      // An expired version is part of normal life, and says nothing of how the server does.
      if (isExpired) {
        await sleep(BACKOFF.initialMs, signal).catch(() => {});
        continue;
      }
      const retryAfterMs = Math.max(backoff.next(), isApiError(error) ? (error.retryAfterMs ?? 0) : 0);
      consumer.onFailure(error, retryAfterMs);
      await sleep(retryAfterMs, signal).catch(() => {});
    }
  }
}

interface StreamState {
  /** The last version seen; absent if the whole state has to be read. */
  version: string | undefined;
  usesWatchList: boolean;
}

interface Run {
  readonly consumer: ListWatchConsumer;
  readonly state: StreamState;
  readonly signal: AbortSignal;
}

async function runOnce(options: ListWatchOptions, run: Run): Promise<void> {
  if (run.state.version === undefined) run.consumer.beginReplace();
  if (run.state.version === undefined && !run.state.usesWatchList) await list(options, run);
  await watch(options, run);
}

function selectorsOf({ labelSelector, fieldSelector, shardSelector }: ListWatchOptions) {
  return { labelSelector, fieldSelector, shardSelector };
}

async function list(options: ListWatchOptions, run: Run): Promise<void> {
  const { definition, namespace, fieldManagers, requester } = options;
  const entries: DecodedResource[] = [];
  let next: string | undefined;
  let version = "";
  do {
    const query = queryOf({ ...selectorsOf(options), limit: LIST_LIMIT, continue: next });
    const path = collectionPath(definition, namespace) + query;
    const accept = options.isMetadataOnly === true ? { accept: METADATA_LIST } : {};
    const { body } = await requester.send({ method: "GET", path, ...accept, signal: run.signal });
    const page = JSON.parse(body.toString("utf8")) as {
      metadata: { continue?: string; resourceVersion: string };
      // Servers that are written in Go have null for an empty list, unless they see to it.
      items: object[] | null;
    };
    const { apiVersion, kind } = definition;
    for (const item of page.items ?? [])
      entries.push(decodeResource(Buffer.from(JSON.stringify({ ...item, apiVersion, kind })), { fieldManagers }));
    version = page.metadata.resourceVersion;
    next = page.metadata.continue || undefined;
  } while (next !== undefined);
  run.consumer.replace(entries, version);
  run.state.version = version;
}

async function watch(options: ListWatchOptions, run: Run): Promise<void> {
  const { definition, namespace, transport } = options;
  const isInitial = run.state.version === undefined;
  const query = queryOf({
    watch: true,
    allowWatchBookmarks: true,
    ...selectorsOf(options),
    resourceVersion: run.state.version,
    ...(isInitial ? { sendInitialEvents: true, resourceVersionMatch: "NotOlderThan" } : {}),
    timeoutSeconds: MIN_TIMEOUT_SECONDS + Math.floor(Math.random() * MIN_TIMEOUT_SECONDS),
  });
  const initial: DecodedResource[] | undefined = isInitial ? [] : undefined;
  const reader = new EventReader(options, { run, initial });
  const idleTimeoutMs = options.idleTimeoutMs ?? IDLE_TIMEOUT_MS;
  const watchdog = new Watchdog(run.signal, () =>
    reader.isInitial ? Math.min(idleTimeoutMs, INITIAL_EVENTS_TIMEOUT_MS) : idleTimeoutMs,
  );
  const splitter = new LineSplitter();
  try {
    const response = await transport.stream(
      {
        method: "GET",
        path: collectionPath(definition, namespace) + query,
        ...(options.isMetadataOnly === true ? { accept: METADATA_OBJECT } : {}),
        signal: watchdog.signal,
      },
      {
        onStart(status) {
          watchdog.reset();
          if (status === 200) run.consumer.onConnected();
        },
        onData(chunk) {
          splitter.push(chunk, (line) => reader.read(line));
          watchdog.reset();
        },
      },
    );
    if (response.status !== 200) {
      const error = errorOf(response);
      if (isInitial && (error.code === 400 || error.code === 422)) throw new WatchListUnsupportedError();
      throw error;
    }
    // A server that does not know sendInitialEvents ends without the bookmark.
    if (reader.isInitial) throw new WatchListUnsupportedError();
  } catch (error) {
    if (!watchdog.hasBarked) throw error;
    // A server that answers, but never says that the state is complete, does not know sendInitialEvents.
    if (reader.isInitial && watchdog.wasReset) throw new WatchListUnsupportedError();
    // Silence is how a dead connection shows; to be without an answer is worth a word.
    if (!watchdog.wasReset)
      throw new ConnectionError(`${transport.connection.server} does not answer: nothing arrived`);
  } finally {
    watchdog.stop();
  }
}

/** Turns the lines of a watch into calls of the consumer. */
class EventReader {
  readonly #options: ListWatchOptions;
  readonly #run: Run;
  #initial: DecodedResource[] | undefined;

  constructor(options: ListWatchOptions, { run, initial }: { run: Run; initial: DecodedResource[] | undefined }) {
    this.#options = options;
    this.#run = run;
    this.#initial = initial;
  }

  /** Whether the initial events are not complete yet. */
  get isInitial(): boolean {
    return this.#initial !== undefined;
  }

  read(line: Buffer): void {
    const type = findMember(line, 0, '"type"');
    const object = findMember(line, 0, '"object"');
    if (type === undefined || object === undefined) throw new SyntaxError("a line of a watch is no event");
    const range = { start: object.value, end: endOfEventObject(line, { type: type.key, object: object.value }) };
    const { consumer, state } = this.#run;
    const decode = () => this.#decode(line, range);
    switch (asciiString(line, type.value)) {
      case "ADDED":
      case "MODIFIED": {
        const version =
          this.#initial === undefined && consumer.expectsOwn() ? peekResourceVersion(line, range.start) : undefined;
        if (version !== undefined && consumer.observeOwn(version)) {
          state.version = version;
          return;
        }
        const entry = decode();
        if (this.#initial !== undefined) this.#initial.push(entry);
        else {
          consumer.observe(entry);
          state.version = entry.object.metadata.resourceVersion;
        }
        return;
      }
      case "DELETED": {
        const { object: deleted } = decode();
        if (this.#initial !== undefined) {
          this.#initial = this.#initial.filter(({ object }) => object.metadata.uid !== deleted.metadata.uid);
          return;
        }
        consumer.observeDeletion(deleted);
        state.version = deleted.metadata.resourceVersion;
        return;
      }
      case "BOOKMARK":
        return this.#readBookmark(decode().object);
      case "ERROR":
        throw watchError(JSON.parse(line.toString("utf8", range.start, range.end)) as ApiStatus);
    }
  }

  #decode(line: Buffer, range: { start: number; end: number }): DecodedResource {
    const { definition, fieldManagers, isMetadataOnly } = this.#options;
    const entry = decodeResource(line, { ...range, fieldManagers });
    if (isMetadataOnly !== true) return entry;
    const { apiVersion, kind } = definition;
    return { ...entry, object: { ...entry.object, apiVersion, kind } };
  }

  #readBookmark({ metadata }: KubernetesObject): void {
    const { consumer, state } = this.#run;
    const version = metadata.resourceVersion ?? "0";
    if (this.#initial !== undefined) {
      if (metadata.annotations?.[INITIAL_EVENTS_END] !== "true") return;
      const entries = this.#initial;
      this.#initial = undefined;
      consumer.replace(entries, version);
    } else consumer.observeVersion(version);
    state.version = version;
  }
}

const CLOSE_BRACE = 0x7d;

// The object is the last member of an event, so its end is where the event ends: that saves looking through all of it.
function endOfEventObject(line: Buffer, { type, object }: { type: number; object: number }): number {
  if (type > object) return endOfValue(line, object);
  return line.lastIndexOf(CLOSE_BRACE);
}

function watchError(status: ApiStatus): Error {
  if (status.code === 410 || status.reason === "Expired" || status.reason === "Gone")
    return new ExpiredError(status.message);
  const seconds = status.details?.retryAfterSeconds;
  return new ApiError(status.code ?? 500, status, seconds === undefined ? undefined : seconds * 1000);
}
