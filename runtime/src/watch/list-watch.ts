// Follows the objects of one kind for as long as it is told to, whatever happens.
//
// A stream starts with the whole state (WatchList, or a paged LIST where the server has none), goes on as a watch, and is taken up
// again at the last version after any interruption. A version that is too old (410) means the whole state again. Every other
// failure waits a growing, random time; nothing ends it but its signal.
import { Backoff } from "../base/backoff.js";
import { sleep, systemClock, type Clock } from "../base/clock.js";
import { ConnectionError, isApiError } from "../base/errors.js";
import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import { errorOf, type ApiRequester } from "../client/requester.js";
import { peekIdentity, type DecodedResource } from "../decode/decode-resource.js";
import type { Range } from "../decode/json-scanner.js";
import { LineSplitter } from "../decode/line-splitter.js";
import { itemsOf, metadataOf } from "../client/list-page.js";
import { collectionPath, queryOf } from "../client/resource-path.js";
import type { Transport } from "../client/transport.js";
import { WatchedDecoder, type WatchedDecoding } from "./decode-watched.js";
import { Turns, visitInTurns } from "./turns.js";
import { ExpiredError, WatchReader } from "./watch-reader.js";
import { Watchdog } from "./watchdog.js";

/** What a list-watch follows. */
export interface ListWatchOptions extends WatchedDecoding {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly shardSelector?: string | undefined;
  /** Whether the server sends only the metadata of the objects. */
  readonly isMetadataOnly?: boolean | undefined;
  readonly transport: Transport;
  readonly requester: ApiRequester;
  /** A stream without a byte for this long is taken for dead; 3 minutes unless given. */
  readonly idleTimeoutMs?: number | undefined;
  /** Whether versions of this kind can be compared; true unless given. */
  readonly comparesVersions?: boolean | undefined;
  readonly backoff?: Backoff;
  readonly clock?: Clock | undefined;
}

/**
 * What a list-watch calls, always from within one turn of the event loop for one event.
 *
 * The whole state comes object by object, in any order, between `beginReplace` and `endReplace`; nothing else is called in between.
 * If it breaks off, it begins anew.
 */
export interface ListWatchConsumer {
  beginReplace(): void;
  /** Takes that the whole state has this object in this version; tells whether that version is known, so that it is not decoded. */
  observeKnown(key: ObjectKey, version: string): boolean;
  /** Takes an object of the whole state. */
  observeListed(entry: DecodedResource): void;
  /** Takes that an object went while the whole state was on its way. */
  forgetListed(object: KubernetesObject): void;
  /** The whole state as of `version` is complete: what was not in it is gone. */
  endReplace(version: string): void;
  observe(entry: DecodedResource): void;
  /** The server answers a watch: whatever was wrong is over. */
  onConnected(): void;
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
// What has worked for this long works: the next failure is a new one.
const HEALTHY_AFTER_MS = 10_000;
const SHORT_LIVED_MS = 1_000;
const MIN_TIMEOUT_SECONDS = 300;
const IDLE_TIMEOUT_MS = 180_000;
const INITIAL_EVENTS_TIMEOUT_MS = 30_000;
const LIST_LIMIT = 500;
const VERSION_TOO_LARGE = "ResourceVersionTooLarge";

// The server says of such an object that it is a PartialObjectMetadata; it is put right when it is decoded.
const METADATA_OBJECT = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

// All list-watches of a process share its event loop.
const turns = new Turns();

/** Thrown inside when the server does not know WatchList. */
class WatchListUnsupportedError extends Error {}

/** Follows the kind until the signal is aborted; resolves then, and never rejects. */
export async function runListWatch(
  options: ListWatchOptions,
  consumer: ListWatchConsumer,
  signal: AbortSignal,
): Promise<void> {
  const { backoff = new Backoff(BACKOFF), clock = systemClock } = options;
  const decoder = new WatchedDecoder(options);
  const state: StreamState = { version: undefined, usesWatchList: true, isRelist: false };
  while (!signal.aborted) {
    const startedAt = clock.now();
    const isResumed = state.version !== undefined;
    try {
      await runOnce(options, { consumer, decoder, state, signal });
      // A server that ends every stream at once would be asked again and again.
      if (clock.now() - startedAt > SHORT_LIVED_MS) backoff.reset();
      else await sleep(backoff.next(), signal, clock);
    } catch (error) {
      if (signal.aborted) return;
      const isExpired = error instanceof ExpiredError || isApiError(error, 410) || isVersionTooLarge(error);
      const hasState = state.version !== undefined;
      // A kind that is not served has no history to resume either.
      if (isExpired || isApiError(error, 404)) state.version = undefined;
      if (error instanceof WatchListUnsupportedError) {
        state.usesWatchList = false;
        continue;
      }
      if (clock.now() - startedAt > HEALTHY_AFTER_MS) backoff.reset();
      // That a version expires is part of normal life and says nothing of how the server does, but a list has to be good for a watch.
      const growsMs = isExpired && isResumed ? BACKOFF.initialMs : backoff.next();
      const retryAfterMs = Math.max(growsMs, isApiError(error) ? (error.retryAfterMs ?? 0) : 0);
      if (!isExpired || !hasState) report(consumer, error, retryAfterMs);
      await sleep(retryAfterMs, signal, clock).catch(() => {});
    }
  }
}

// Whoever is told of a failure may fail, too, and has nobody to tell; what is watched goes on.
function report(consumer: ListWatchConsumer, error: unknown, retryAfterMs: number): void {
  try {
    consumer.onFailure(error, retryAfterMs);
  } catch {
    // Nothing is left to be done.
  }
}

// The server has not come to the version from which the watch is to go on, and never may: its store was restored.
function isVersionTooLarge(error: unknown): boolean {
  return isApiError(error) && error.causes.some(({ reason }) => reason === VERSION_TOO_LARGE);
}

/** How far a list-watch has come. */
export interface StreamState {
  /** The last version seen; absent if the whole state has to be read. */
  version: string | undefined;
  usesWatchList: boolean;
  /** Whether a part of the state is known already. */
  isRelist: boolean;
}

interface Run {
  readonly consumer: ListWatchConsumer;
  readonly decoder: WatchedDecoder;
  readonly state: StreamState;
  readonly signal: AbortSignal;
}

async function runOnce(options: ListWatchOptions, run: Run): Promise<void> {
  const { state, consumer } = run;
  const isInitial = state.version === undefined;
  if (isInitial) consumer.beginReplace();
  try {
    if (isInitial && !state.usesWatchList) await list(options, run);
    await watch(options, run);
  } finally {
    state.isRelist = true;
  }
}

function selectorsOf({ labelSelector, fieldSelector, shardSelector }: ListWatchOptions) {
  return { labelSelector, fieldSelector, shardSelector };
}

async function list(options: ListWatchOptions, { consumer, decoder, state, signal }: Run): Promise<void> {
  const { definition, namespace, requester } = options;
  let next: string | undefined;
  let version: string;
  do {
    const query = queryOf({ ...selectorsOf(options), limit: LIST_LIMIT, continue: next });
    const path = collectionPath(definition, namespace) + query;
    const accept = options.isMetadataOnly === true ? { accept: METADATA_LIST } : {};
    const { body } = await requester.send({ method: "GET", path, ...accept, signal });
    ({ resourceVersion: version, continue: next } = metadataOf(body));
    const visit = ({ start, end }: Range) => {
      const identity = state.isRelist ? peekIdentity(body, start) : undefined;
      if (identity !== undefined && consumer.observeKnown(identity.key, identity.version)) return;
      consumer.observeListed(decoder.decode(body, { start, end, lacksType: true }));
    };
    await visitInTurns(itemsOf(body), { turns, visit, isOver: () => signal.aborted });
    signal.throwIfAborted();
  } while (next !== undefined);
  consumer.endReplace(version);
  state.version = version;
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
  const reader = new WatchReader(options, { ...run, isInitial });
  const idleTimeoutMs = options.idleTimeoutMs ?? IDLE_TIMEOUT_MS;
  const watchdog = new Watchdog(run.signal, () =>
    reader.isInitial ? Math.min(idleTimeoutMs, INITIAL_EVENTS_TIMEOUT_MS) : idleTimeoutMs,
  );
  const splitter = new LineSplitter();
  let isOver = false;
  const eachLine = { turns, visit: (line: Buffer) => reader.read(line), isOver: () => isOver };
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
          const rest = visitInTurns(splitter.split(chunk), eachLine);
          watchdog.reset();
          return rest;
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
    isOver = true;
    watchdog.stop();
  }
}
