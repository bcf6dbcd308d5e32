// Follows the objects of one kind until its signal is aborted: by a list (WatchList, or a paged LIST if the server does not support that) that
// goes on as a watch. After an interruption the watch is resumed at the last version. A version that is too old (410), and a server that is
// older than the version, cause a relist. Every other failure is retried after a growing, random delay.
import type { WatchEnd } from "../base/activity.js";
import { type ApiStatus, ConnectionError, isApiError } from "../base/errors.js";
import {
  type DecodedResource,
  type FieldManagers,
  type KubernetesObject,
  type ManagedWrite,
  type ObjectKey,
  type ResourceDefinition,
  isNewerVersion,
  versionOf,
} from "../base/kubernetes-object.js";
import { callUnawaited } from "../base/user-calls.js";
import { Backoff, type Clock, abortWith, sleep, systemClock, turns, withDeadline } from "../base/wait.js";
import { compileProjection } from "../cache/projection.js";
import type { ResourceCache } from "../cache/resource-cache.js";
import { collectionPath, queryOf } from "../client/api-client.js";
import {
  DeferredDecoder,
  JSON_BYTES,
  type Range,
  decodeResource,
  endOfValue,
  findMember,
  peekIdentity,
  stringAt,
} from "../client/object-decoder.js";
import { METADATA_LIST, itemsOf, metadataOf, pagesOf } from "../client/pager.js";
import { type ApiRequester, errorOf, errorOfStatus } from "../client/transport.js";

// The values of client-go's reflector.
const BACKOFF = { initialMs: 400, factor: 2, maxMs: 15_000 };
// A stream that has lasted this long was healthy: the next failure starts the backoff anew.
const HEALTHY_AFTER_MS = 10_000;
const SHORT_LIVED_MS = 1_000;
const MIN_TIMEOUT_SECONDS = 300;
// A quiet watch is checked for changes and for the version of the server, so that a dead one is noticed within 40 s: the interval and the
// answer. Bookmarks come once a minute at most.
const QUIET_MS = 30_000;
const INITIAL_TIMEOUT_MS = 30_000;
const ANSWER_TIMEOUT_MS = 8_000;
// How long the watch may take to bring an event that the check has seen.
const LATE_EVENT_MS = 1_000;
// A server that has started anew answers 410: it does not know what came after an older version.
const CHANGE_EVENT = /^\s*\{"type":"(?:ADDED|MODIFIED|DELETED|ERROR)"/;

/** Thrown when the server does not send a list in a watch. */
class WatchListUnsupportedError extends Error {}

/** The objects that one list-watch follows: informers with equal scopes are one. */
export interface WatchScope {
  readonly definition: ResourceDefinition;
  /** Default: all namespaces. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** A hash range of the objects (ShardedListAndWatch, an alpha feature of Kubernetes 1.36). */
  readonly shardSelector?: string | undefined;
  /** Whether the server sends only the metadata of the objects. */
  readonly isMetadataOnly?: boolean | undefined;
  /** The paths that are kept of each object. Default: the whole object. */
  readonly projection?: readonly string[] | undefined;
}

/** How a list-watch reads from the server, and where it puts what it reads. */
export interface WatchContext {
  readonly requester: ApiRequester;
  /** Between `beginReplace` and `endReplace` come the objects of a list, and nothing else. A list that breaks off begins anew. */
  readonly cache: ResourceCache;
  readonly fieldManagers: FieldManagers;
  readonly events?: WatchEvents;
  /** The list-watches of the same server, which learn from each other that it was restored. */
  readonly restores?: Restores | undefined;
  /** How long a watch may be quiet before the server is asked whether all is well. Default: 30 s. */
  readonly quietMs?: number | undefined;
  /** How long the server may take to answer that. Default: 8 s. */
  readonly answerTimeoutMs?: number | undefined;
  /** How long an initial list may send nothing before it counts as unsupported. Default: 30 s. */
  readonly initialTimeoutMs?: number | undefined;
  readonly backoff?: Backoff;
  readonly clock?: Clock | undefined;
}

/** Notified of how a list-watch is doing. */
export interface WatchEvents {
  onListed?(): void;
  /** Called for every piece that a watch brings. */
  onReceived?(): void;
  /** Called when a watch has ended, or could not begin, and another one follows. */
  onEnded?(reason: WatchEnd): void;
  /** Called when the server answers a watch: an earlier failure is over. */
  onConnected?(): void;
  /** Called after a failure; the next attempt follows after `retryAfterMs`. */
  onFailure?(error: unknown, retryAfterMs: number): void;
}

/** Follows the objects of a scope (client-go Reflector). */
export class ListWatch {
  readonly #scope: WatchScope;
  readonly #context: WatchContext;
  readonly #events: WatchEvents;
  readonly #backoff: Backoff;
  readonly #clock: Clock;
  readonly #restores: Restores;
  readonly #reader: WatchReader;
  #attempt = new AbortController();
  #usesWatchList = true;

  constructor(scope: WatchScope, context: WatchContext) {
    const { events = {}, backoff = new Backoff(BACKOFF), clock = systemClock, restores = new Restores() } = context;
    this.#scope = scope;
    this.#context = context;
    this.#events = events;
    this.#backoff = backoff;
    this.#clock = clock;
    this.#restores = restores;
    this.#reader = new WatchReader(scope, context, () => {
      restores.settle(this.#onRestored);
      events.onListed?.();
    });
  }

  /** Follows the objects until the signal is aborted; resolves then, and never rejects. Called once. */
  async run(signal: AbortSignal): Promise<void> {
    const leave = this.#restores.add(this.#onRestored);
    signal.addEventListener("abort", leave, { once: true });
    while (!signal.aborted) {
      const startedAt = this.#clock.now();
      const isResumed = this.#reader.isListed;
      this.#attempt = new AbortController();
      const leaveAttempt = abortWith(this.#attempt, signal);
      try {
        if (isResumed) await this.#checkVersion(this.#attempt.signal);
        else {
          this.#reader.beginList();
          if (!this.#usesWatchList) await this.#list(this.#attempt.signal);
          // The next relist tries WatchList again: a busy server may have ended the stream.
          this.#usesWatchList = true;
        }
        await this.#watch(this.#attempt.signal);
        this.#events.onEnded?.("ended");
        // Without a delay, a server that ends every stream at once would be asked in a tight loop.
        if (this.#clock.now() - startedAt > SHORT_LIVED_MS) this.#backoff.reset();
        else await sleep(this.#backoff.next(), signal, this.#clock);
      } catch (error) {
        if (signal.aborted) return;
        const retryAfterMs = this.#fail(error, { startedAt, isResumed });
        if (retryAfterMs !== undefined) await sleep(retryAfterMs, signal, this.#clock).catch(() => {});
      } finally {
        leaveAttempt();
      }
    }
  }

  /** Takes what ended an attempt. Returns after how long the next one follows; undefined if that is at once. */
  #fail(
    error: unknown,
    { startedAt, isResumed }: { readonly startedAt: number; readonly isResumed: boolean },
  ): number | undefined {
    const reader = this.#reader;
    const isExpired = isApiError(error) && (error.code === 410 || /^(Expired|Gone)$/.test(error.reason));
    const hadState = reader.isListed;
    if (error instanceof RestoredError) {
      reader.markRestored();
      this.#restores.markRestored(this.#onRestored);
    } else this.#restores.settle(this.#onRestored);
    // A kind that is not served has no history from which a watch could be resumed.
    if (isExpired || isApiError(error, 404)) reader.expire();
    if (error instanceof WatchListUnsupportedError) {
      this.#usesWatchList = false;
      return undefined;
    }
    this.#events.onEnded?.(isExpired ? "expired" : reader.isRestored ? "restored" : "failed");
    if (this.#clock.now() - startedAt > HEALTHY_AFTER_MS) this.#backoff.reset();
    // An expired version says nothing about the health of the server, unless it is the version of a fresh list.
    const growsMs = isExpired && isResumed ? BACKOFF.initialMs : this.#backoff.next();
    const retryAfterMs = Math.max(growsMs, isApiError(error) ? (error.retryAfterMs ?? 0) : 0);
    // A listener that throws must not end the list-watch.
    const report = () => this.#events.onFailure?.(error, retryAfterMs);
    if (!isExpired || !hadState) callUnawaited(report, { onFailure: () => {} });
    return retryAfterMs;
  }

  /** Called when another list-watch of the server finds it restored; this very function is the list-watch in `Restores`. */
  readonly #onRestored = (): void => {
    this.#reader.markRestored();
    this.#reader.beginList();
    this.#attempt.abort(new RestoredError("another watch found the store of the server restored to an older state"));
  };

  async #list(signal: AbortSignal): Promise<void> {
    const reader = this.#reader;
    const pages = pagesOf(this.#context.requester, {
      accept: this.#scope.isMetadataOnly === true ? METADATA_LIST : undefined,
      signal,
      pathOf: (page) => this.#pathOf(page),
      read: (body) => ({ metadata: metadataOf(body), body }),
      onRestart: () => reader.beginList(),
    });
    let version = "";
    for await (const { metadata, body } of pages) {
      await turns.visit(itemsOf(body), (item) => reader.readItem(body, item), signal);
      signal.throwIfAborted();
      version = metadata.resourceVersion;
    }
    reader.endList(version);
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { transport } = this.#context.requester;
    const [clock, events, reader] = [this.#clock, this.#events, this.#reader];
    const isInitial = !reader.isListed;
    const path = this.#pathOf({
      watch: true,
      allowWatchBookmarks: true,
      ...(isInitial
        ? { sendInitialEvents: true, resourceVersionMatch: "NotOlderThan" }
        : { resourceVersion: reader.version }),
      timeoutSeconds: MIN_TIMEOUT_SECONDS + Math.floor(Math.random() * MIN_TIMEOUT_SECONDS),
    });
    const stream: StreamState = { hasAnswered: false, receivedAt: clock.now() };
    const over = new AbortController();
    const died = new AbortController();
    const running = AbortSignal.any([signal, over.signal]);
    this.#checkWhenQuiet(stream, running).catch((error: unknown) => running.aborted || died.abort(error));
    const splitter = transport.createEventSplitter({ method: "GET", path });
    const accept = this.#scope.isMetadataOnly === true ? METADATA_OBJECT : undefined;
    try {
      const response = await transport.send(
        { method: "GET", path, accept, signal: AbortSignal.any([signal, died.signal]) },
        {
          onStart(status) {
            stream.hasAnswered = true;
            stream.receivedAt = clock.now();
            if (status === 200) events.onConnected?.();
          },
          onData(chunk) {
            stream.receivedAt = clock.now();
            events.onReceived?.();
            return turns.visit(splitter.split(chunk), (line) => reader.read(line), over.signal);
          },
        },
      );
      if (response.status !== 200) {
        const error = errorOf(response);
        if (isInitial && (error.code === 400 || error.code === 422)) throw new WatchListUnsupportedError();
        throw error;
      }
      // A server that does not support sendInitialEvents ends the stream without the bookmark.
      if (!reader.isListed) throw new WatchListUnsupportedError();
    } catch (error) {
      throw died.signal.reason ?? error;
    } finally {
      over.abort(new Error("the stream has ended"));
    }
  }

  // Detects dead connections, and restored servers, which answer 200 and silence to a watch from a version that they have not reached: neither
  // differs from a quiet kind. So the server is asked on another connection, before a watch is resumed and while it is quiet.

  /** Checks a stream whenever it is quiet, until the signal is aborted; rejects if the stream is dead, or does not bring the list. */
  async #checkWhenQuiet(stream: StreamState, signal: AbortSignal): Promise<void> {
    const { requester, quietMs = QUIET_MS, initialTimeoutMs = INITIAL_TIMEOUT_MS } = this.#context;
    const { server } = requester.transport.connection;
    while (!signal.aborted) {
      const leftMs = stream.receivedAt + (this.#reader.isListed ? quietMs : initialTimeoutMs) - this.#clock.now();
      if (leftMs > 0) {
        // From the end of the list on, it is looked at more often.
        await sleep(Math.min(leftMs, quietMs), signal, this.#clock);
        continue;
      }
      if (!stream.hasAnswered) throw new ConnectionError(`${server} does not answer: nothing arrived`);
      // A server that answers but sends no bookmark at the end of the list does not support sendInitialEvents.
      if (!this.#reader.isListed) throw new WatchListUnsupportedError();
      await this.#checkChanges(signal);
      await this.#checkVersion(signal);
      stream.receivedAt = this.#clock.now();
    }
  }

  /** Throws if the server has changes that the watch does not bring: its connection has died. */
  async #checkChanges(signal: AbortSignal): Promise<void> {
    const before = this.#reader.version;
    if (!(await this.#hasChangesSince(before, signal))) return;
    await sleep(LATE_EVENT_MS, signal, this.#clock);
    if (this.#reader.version !== before) return;
    const { server } = this.#context.requester.transport.connection;
    throw new ConnectionError(
      `watch is stale: ${server} has changes after resourceVersion ${before} that it did not deliver`,
    );
  }

  async #hasChangesSince(version: string, signal: AbortSignal): Promise<boolean> {
    const { transport } = this.#context.requester;
    const path = this.#pathOf({ watch: true, resourceVersion: version, timeoutSeconds: 1 });
    const enough = new AbortController();
    let first = "";
    const onData = (chunk: Buffer) => {
      first = chunk.toString("latin1", 0, 100);
      enough.abort(new Error("one event is enough"));
    };
    try {
      await this.#inTime(signal, (inner) => {
        const either = AbortSignal.any([inner, enough.signal]);
        return transport.send({ method: "GET", path, accept: METADATA_OBJECT, signal: either }, { onData });
      });
    } catch (error) {
      if (!enough.signal.aborted) throw error;
    }
    return CHANGE_EVENT.test(first);
  }

  /** Asks for the version of the server, by a list of one object; throws if it is older than that of the watch, or does not come in time. */
  async #checkVersion(signal: AbortSignal): Promise<void> {
    // The watch may go on meanwhile.
    const last = this.#reader.version;
    // With a label selector the server would scan all objects. Roles with resourceNames need the field selector.
    const path = this.#pathOf({ labelSelector: undefined, shardSelector: undefined, limit: 1 });
    // So few attempts end before the time is over, and tell why they failed.
    const requester = this.#context.requester.with({ maxAttempts: 5 });
    const { body } = await this.#inTime(signal, (inner) =>
      requester.send({ method: "GET", path, accept: METADATA_LIST, signal: inner }),
    );
    requireNotOlder(this.#context.cache, metadataOf(body).resourceVersion, last);
  }

  #inTime<Answer>(signal: AbortSignal, ask: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
    const { requester, clock, answerTimeoutMs: timeoutMs = ANSWER_TIMEOUT_MS } = this.#context;
    const message = `${requester.transport.connection.server} does not answer`;
    return withDeadline(ask, { timeoutMs, clock, message }, [signal]);
  }

  #pathOf(parameters: Parameters<typeof queryOf>[0]): string {
    const { definition, namespace, labelSelector, fieldSelector, shardSelector } = this.#scope;
    const query = queryOf({ labelSelector, fieldSelector, shardSelector, ...parameters });
    return collectionPath(definition, namespace) + query;
  }
}

/** What the stream of a watch has brought so far. */
interface StreamState {
  hasAnswered: boolean;
  receivedAt: number;
}

/** Asks for the metadata of an object alone. The answer states the kind PartialObjectMetadata; the decoder restores its own kind. */
export const METADATA_OBJECT = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

const INITIAL_EVENTS_END = "k8s.io/initial-events-end";

/**
 * Turns the pages and events of a list-watch into calls of its cache, and knows how far the list-watch has come: it lists (`beginList`) until it
 * is listed (`endList`), and then watches until the version expires or the server is found to be restored, after which it has to list again.
 */
class WatchReader {
  /** The last version that the server has sent; "0" before the first. */
  version = "0";
  /** Whether the list is complete and the watch goes on from this version. */
  isListed = false;
  /** Whether the server was restored to an older version than this one. */
  isRestored = false;
  readonly #cache: ResourceCache;
  readonly #isMetadataOnly: boolean;
  readonly #decode: ReturnType<typeof createWatchedDecoder>;
  readonly #onListed: () => void;
  /** How many lists have begun: objects of the first one are unknown. */
  #lists = 0;
  #written: ManagedWrite | undefined;

  constructor(scope: WatchScope, { cache, fieldManagers }: WatchContext, onListed: () => void) {
    const onWritten = (write: ManagedWrite | undefined) => (this.#written = write);
    this.#cache = cache;
    this.#isMetadataOnly = scope.isMetadataOnly === true;
    this.#decode = createWatchedDecoder(scope, { cache, fieldManagers, onWritten });
    this.#onListed = onListed;
  }

  beginList(): void {
    this.isListed = false;
    this.#lists++;
    this.#cache.beginReplace({ isRestored: this.isRestored });
  }

  /** The version is too old for a watch. */
  expire(): void {
    this.isListed = false;
  }

  /** The server was restored: the next list may be older than the cache. */
  markRestored(): void {
    this.isRestored = true;
    this.isListed = false;
  }

  /** Ends a list as of `version`; throws a RestoredError if it is older than an earlier state, and was not expected to be. */
  endList(version: string): void {
    if (!this.isRestored) requireNotOlder(this.#cache, version, this.version);
    this.#cache.endReplace(version);
    this.version = version;
    this.isListed = true;
    this.isRestored = false;
    this.#onListed();
  }

  /** Takes an object of a page, and changes its bytes. */
  readItem(page: Buffer, { start, end }: Range): void {
    if (!this.#isKnown(page, start)) this.#cache.observe(this.#decode(page, { start, end, lacksType: true }));
  }

  /** Takes the line of one event, and changes its bytes. */
  read(line: Buffer): void {
    const cache = this.#cache;
    const { type, start, end } = eventIn(line);
    const parse = () => JSON.parse(line.toString("utf8", start, end)) as unknown;
    switch (type) {
      case "ADDED":
      case "MODIFIED":
      case "DELETED": {
        if (type !== "DELETED" && this.#isKnown(line, start)) return;
        const entry = this.#decode(line, { start, end, lacksType: this.#isMetadataOnly });
        if (type === "DELETED") cache.observeDeletion(entry.object);
        else cache.observe(entry, this.isListed ? this.#written : undefined);
        if (this.isListed) this.version = versionOf(entry);
        return;
      }
      case "BOOKMARK":
        // A bookmark has no managed fields to cut.
        return this.#readBookmark(parse() as KubernetesObject);
      case "ERROR":
        throw errorOfStatus(parse() as ApiStatus);
    }
  }

  // Known states are not decoded: decoding is most of the work.
  #isKnown(bytes: Buffer, start: number): boolean {
    const cache = this.#cache;
    // The first list brings nothing that is known, and the watch nothing but what own writes made.
    const mayBeKnown = this.isListed ? cache.expectsOwn : this.#lists > 1;
    const identity = mayBeKnown ? peekIdentity(bytes, start) : undefined;
    if (identity === undefined) return false;
    const { key, version } = identity;
    if (!this.isListed) return cache.observeKnown(key, version);
    const answer = cache.getVersion(key, version);
    if (answer === undefined) return false;
    cache.observe(answer);
    this.version = version;
    return true;
  }

  #readBookmark({ metadata }: KubernetesObject): void {
    const version = metadata.resourceVersion ?? "0";
    if (!this.isListed) {
      if (metadata.annotations?.[INITIAL_EVENTS_END] === "true") this.endList(version);
      return;
    }
    requireNotOlder(this.#cache, version, this.version);
    this.#cache.observeVersion(version);
    this.version = version;
  }
}

/** Returns the type of an event, and where its object stands. */
function eventIn(line: Buffer): Range & { readonly type: string } {
  const type = findMember(line, 0, '"type"');
  const object = findMember(line, 0, '"object"');
  if (type === undefined || object === undefined) throw new SyntaxError("a line of a watch is no event");
  // Mostly the object is the last member: the end of the event is its end, and no scan is needed.
  const end = type > object ? endOfValue(line, object) : line.lastIndexOf(JSON_BYTES.CLOSE_BRACE);
  return { type: stringAt(line, type), start: object, end };
}

interface WatchedRange extends Range {
  /** Whether the object states a type that is not its own, or none: in a list, or where only metadata are sent. */
  readonly lacksType: boolean;
}

interface DecoderOptions {
  readonly fieldManagers: FieldManagers;
  /** The cache of the list-watch; absent for single objects. */
  readonly cache?: ResourceCache;
  /** Called for each object that is decoded whole, with the latest write of the field managers. */
  readonly onWritten?: (write: ManagedWrite | undefined) => void;
}

/** Returns what decodes the objects of one list-watch, or, without its cache, single ones; their bytes are changed. */
export function createWatchedDecoder(
  { definition, projection }: WatchScope,
  { fieldManagers, cache, onWritten }: DecoderOptions,
): (bytes: Buffer, range: WatchedRange) => DecodedResource {
  const { apiVersion, kind } = definition;
  const project = projection && compileProjection(projection);
  // The first list brings nothing that is known.
  const known = (key: ObjectKey) => (cache?.observedVersion === "0" ? undefined : cache?.observed.get(key));
  // Objects that are cut are parsed at once.
  const deferred =
    project === undefined && cache !== undefined ? new DeferredDecoder({ fieldManagers, known }) : undefined;
  return (bytes, range) => {
    const { start, end, lacksType } = range;
    const entry = deferred?.decode(bytes, range) ?? decodeResource(bytes, { start, end, fieldManagers });
    onWritten?.(deferred?.latestWrite);
    if (lacksType) Object.assign(entry.object, { apiVersion, kind });
    // A cut object cannot be compared with a desired one, so that `owned` is of no use.
    return project === undefined ? entry : { object: project(entry.object) };
  };
}

/** Thrown when the server is at an older version than the last one read from it: its store was restored from a backup. */
class RestoredError extends Error {}

/** Throws a RestoredError if a version of the server is older than one that was read from it before. */
function requireNotOlder(cache: ResourceCache, version: string, last: string): void {
  if (!cache.comparesVersions || !isNewerVersion(last, version)) return;
  throw new RestoredError(
    `resourceVersion went back from ${last} to ${version}: the store of the API server was restored; relisting`,
  );
}

// One list-watch is the first to see that the store of its server was restored. All of them are outdated: until each has listed its kind again,
// an object of one kind would be written from an undone state of another kind.

/** The list-watches of one server that have to list again because it was restored. */
export class Restores {
  /** Called when another list-watch sees that the server was restored. */
  readonly #listeners = new Set<() => void>();
  readonly #outdated = new Set<() => void>();

  /** Whether the cache of some kind may be newer than the server. */
  get isUnderWay(): boolean {
    return this.#outdated.size > 0;
  }

  /** Adds a list-watch; returns the function that removes it. */
  add(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      this.#outdated.delete(listener);
    };
  }

  /** Records that a list-watch found the server restored, and calls all others, unless this is known already. */
  markRestored(by: () => void): void {
    if (this.#outdated.has(by)) return;
    for (const listener of this.#listeners) this.#outdated.add(listener);
    for (const listener of this.#listeners) if (listener !== by) listener();
  }

  /** Records that a list-watch has listed its kind again, or failed to: the others do not wait for it. */
  settle(listener: () => void): void {
    this.#outdated.delete(listener);
  }
}
