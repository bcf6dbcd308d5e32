// An informer keeps a cache up to date with the objects of one kind, and reports its health. It lists and watches them until it is stopped: by
// WatchList, or by a paginated LIST followed by a watch if the API server does not support that. After an interruption the watch resumes at the last
// resourceVersion. An expired resourceVersion (410), or an API server that is older than it, causes a relist. All other failures are retried with a
// randomized backoff.
import type { InformerActivity, SourceHealth, WatchEnd } from "../base/activity.js";
import { type ApiError, type ApiStatus, ConnectionError, findError, isApiError } from "../base/errors.js";
import {
  type DecodedResource,
  type FieldManagers,
  type KubernetesObject,
  type ManagedWrite,
  type ObjectKey,
  type ResourceDefinition,
  crdNameOf,
  isNewerVersion,
  kindNameOf,
  versionOf,
} from "../base/kubernetes-object.js";
import { type LineLevel, type Logger, messageOf } from "../base/logger.js";
import { callUnawaited } from "../base/user-calls.js";
import { Backoff, type Clock, abortWith, sleep, systemClock, turns, untilAborted, withDeadline } from "../base/wait.js";
import { compileProjection } from "../cache/projection.js";
import type { ResourceCache } from "../cache/resource-cache.js";
import { type ApiClient, collectionPath, queryOf, requesterOf } from "../client/api-client.js";
import type { Connection } from "../client/connection.js";
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

/** The objects to list and watch. Informers with equal scopes are shared. */
export interface WatchScope {
  readonly definition: ResourceDefinition;
  /** Default: all namespaces */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** A hash range of the objects (ShardedListAndWatch, alpha in Kubernetes 1.36). */
  readonly shardSelector?: string | undefined;
  /** Whether the API server sends only the metadata of the objects. */
  readonly isMetadataOnly?: boolean | undefined;
  /** The paths to keep of each object. Default: the whole object */
  readonly projection?: readonly string[] | undefined;
}

/** A list-watch with its cache and its health. */
export interface Informer {
  readonly cache: ResourceCache;
  /** Absent in tests that simulate the informer. */
  readonly client?: ApiClient;
  /** `unknown` until the first list has completed or failed; `unhealthy` from a failure until the next success. */
  readonly health: SourceHealth;
  /** Whether a list has completed since the start. If the watch fails later, the cache stays unchanged. */
  readonly isSynced: boolean;
  /** Whether the cache contains all objects: it has synced, or the kind is not served. Otherwise, missing objects must not be treated as absent. */
  readonly isKnown: boolean;
  /** Whether there are no objects because the API server does not serve the kind in any version. */
  readonly isUnserved: boolean;
  /** Calls `listener` whenever the objects become known. Returns the function that removes the listener. */
  onKnown(listener: () => void): () => void;
  /** Starts watching, unless it already does. Resolves when the first list has completed. */
  start(): Promise<void>;
  /** Starts watching like `start`, but rejects as soon as an attempt fails. The informer keeps retrying. */
  startOrThrow(): Promise<void>;
}

interface InformerContext {
  readonly client: ApiClient;
  readonly cache: ResourceCache;
  readonly fieldManagers: FieldManagers;
  readonly logger: Logger;
  readonly restores?: Restores;
}

interface InformerRun {
  readonly controller: AbortController;
  readonly synced: Promise<void>;
  readonly ended: Promise<void>;
  isSynced: boolean;
  /** Whether the API server does not serve the kind in any version, so that there are no objects. */
  isUnserved: boolean;
}

const MAX_BUSY_ANSWERS = 8;

/** Keeps a cache up to date. Logs one line when the watch fails, and one when it is restored. */
export class SharedInformer implements Informer {
  readonly cache: ResourceCache;
  readonly client: ApiClient;
  readonly #scope: WatchScope;
  readonly #context: InformerContext;
  #run: InformerRun | undefined;
  #lastFailure: unknown;
  #busyAnswers = 0;
  #givenUp = new AbortController();
  #receivedAt: number | undefined;
  readonly #knownListeners = new Set<() => void>();
  readonly #ends: Partial<Record<WatchEnd, number>> = {};

  constructor(scope: WatchScope, context: InformerContext) {
    this.cache = context.cache;
    this.client = context.client;
    this.#scope = scope;
    this.#context = context;
  }

  get health(): SourceHealth {
    if (this.#lastFailure !== undefined)
      return { status: "unhealthy", reason: this.#errorOf(this.#lastFailure).message };
    return { status: this.#run?.isSynced === true ? "healthy" : "unknown" };
  }

  get isSynced(): boolean {
    return this.#run?.isSynced === true;
  }

  get isKnown(): boolean {
    return this.isSynced || this.isUnserved;
  }

  get isUnserved(): boolean {
    return this.#run?.isUnserved === true && this.cache.observed.size === 0;
  }

  onKnown(listener: () => void): () => void {
    this.#knownListeners.add(listener);
    return () => void this.#knownListeners.delete(listener);
  }

  get activity(): InformerActivity {
    const { definition, namespace } = this.#scope;
    const { server } = this.client.connection;
    const { size: objects } = this.cache.observed;
    const { isKnown } = this;
    const watched = { kind: kindNameOf(definition), namespace, server, objects, isKnown };
    return { ...watched, receivedAt: this.#receivedAt, ends: this.#ends };
  }

  start(): Promise<void> {
    this.#run ??= this.#begin();
    return this.#run.synced;
  }

  async startOrThrow(): Promise<void> {
    const synced = this.start();
    if (this.#run?.isSynced === true) return;
    // The next attempt may be delayed by the backoff, and would probably fail for the same reason.
    if (this.#lastFailure !== undefined && !this.#isBusy) throw this.#errorOf(this.#lastFailure);
    await untilAborted(synced, this.#givenUp.signal);
  }

  /** Stops watching. The cache keeps its objects. */
  async stop(): Promise<void> {
    const run = this.#run;
    this.#run = undefined;
    this.#lastFailure = undefined;
    this.#giveUpWaiting(new Error(`the watch of ${describeWatched(this.#scope)} was stopped`));
    run?.controller.abort(new Error("the informer was stopped"));
    await run?.ended;
  }

  #begin(): InformerRun {
    let announceSynced = () => {};
    const synced = new Promise<void>((resolve) => (announceSynced = resolve));
    const controller = new AbortController();
    const events: WatchEvents = {
      onListed: () => {
        const wasSynced = run.isSynced;
        run.isSynced = true;
        run.isUnserved = false;
        this.#reportSuccess();
        announceSynced();
        if (!wasSynced) this.#notifyKnown();
      },
      onReceived: () => void (this.#receivedAt = performance.now()),
      onEnded: (reason) => void (this.#ends[reason] = (this.#ends[reason] ?? 0) + 1),
      onConnected: () => {
        run.isUnserved = false;
        if (run.isSynced) this.#reportSuccess();
      },
      onFailure: (error, retryAfterMs) => this.#reportFailure(error, retryAfterMs),
    };
    const { cache, fieldManagers, restores } = this.#context;
    const context = { requester: requesterOf(this.client), cache, fieldManagers, restores, events };
    const ended = new ListWatch(this.#scope, context).run(controller.signal);
    const run: InformerRun = { controller, synced, ended, isSynced: false, isUnserved: false };
    return run;
  }

  #giveUpWaiting(reason: Error): void {
    this.#givenUp.abort(reason);
    this.#givenUp = new AbortController();
  }

  #errorOf(failure: unknown): Error {
    return new Error(describeFailure(failure, this.#scope, this.client.connection), { cause: failure });
  }

  #reportSuccess(): void {
    this.#busyAnswers = 0;
    if (this.#lastFailure === undefined) return;
    this.#lastFailure = undefined;
    this.#log("info", {}, `${describeWatched(this.#scope)}: watch restored`);
  }

  #log(level: LineLevel, fields: object, message: string): void {
    const facts = { kind: kindNameOf(this.#scope.definition), server: this.client.connection.server, ...fields };
    this.#context.logger[level](facts, message);
  }

  #reportFailure(error: unknown, retryAfterMs: number): void {
    const isRepeated = messageOf(error) === messageOf(this.#lastFailure);
    this.#lastFailure = error;
    const message = `${describeFailure(error, this.#scope, this.client.connection)}; trying again`;
    // Avoid filling the log with a repeated failure.
    this.#log(isRepeated ? "debug" : "warn", { retryAfterMs: Math.round(retryAfterMs) }, message);
    if (isApiError(error, 404) && this.#run !== undefined) void this.#checkServed(this.#run, error);
    this.#busyAnswers = isApiError(error, 429) ? this.#busyAnswers + 1 : 0;
    if (!this.#isBusy) this.#giveUpWaiting(this.#errorOf(error));
  }

  // A kind that is not served in any version has no objects. After any other failure, the objects are unknown and stay cached.
  async #checkServed(run: InformerRun, failure: unknown): Promise<void> {
    const { cache, client } = this;
    const { signal } = run.controller;
    const versions = await client.servedVersions(this.#scope.definition, { signal }).catch(() => undefined);
    if (this.#lastFailure !== failure || this.#run !== run) return;
    const wasKnown = this.isKnown;
    run.isUnserved = versions?.length === 0;
    if (!run.isUnserved) return;
    if (run.isSynced) {
      cache.beginReplace();
      cache.endReplace(cache.observedVersion);
    } else if (!wasKnown) this.#notifyKnown();
  }

  #notifyKnown(): void {
    for (const listener of [...this.#knownListeners]) listener();
  }

  // The API server responds 429 while it initializes the storage of a new kind: a start that waits for the kind continues to wait.
  get #isBusy(): boolean {
    return this.#busyAnswers > 0 && this.#busyAnswers < MAX_BUSY_ANSWERS;
  }
}

function describeWatched({ definition, namespace }: WatchScope): string {
  return kindNameOf(definition) + (namespace === undefined ? "" : ` in namespace "${namespace}"`);
}

function describeFailure(error: unknown, watched: WatchScope, { server, origin }: Connection): string {
  const { definition } = watched;
  const apiError = findError<ApiError>(error, "ApiError");
  const kind = kindNameOf(definition);
  const what = describeWatched(watched);
  if (apiError?.code === 404 && definition.isCustom)
    return (
      `${kind} is not served by ${server}: the CustomResourceDefinition ${crdNameOf(definition)} is not installed or does not serve ` +
      `${definition.version}; install it (kinds of this project: kubectl apply -f crds/)`
    );
  if (apiError?.code === 404) return `${kind} is not served by ${server}`;
  if (apiError?.code === 401)
    return `${server} rejects the credentials from ${origin} (401 Unauthorized), so ${what} cannot be watched`;
  if (apiError?.code === 403)
    return `not allowed to list and watch ${what} at ${server}: ${apiError.message}; grant list and watch on ${definition.plural}`;
  return `cannot watch ${what} at ${server}: ${messageOf(error)}`;
}

// Values of client-go's reflector.
const BACKOFF = { initialMs: 400, factor: 2, maxMs: 15_000 };
// A stream that lasted this long was healthy: the next failure resets the backoff.
const HEALTHY_AFTER_MS = 10_000;
const SHORT_LIVED_MS = 1_000;
const MIN_TIMEOUT_SECONDS = 300;
// A quiet watch is checked for missed changes and for the version of the API server, so that a dead one is detected within 40 s: the interval plus
// the timeouts of the checks. Bookmarks arrive about once a minute.
const QUIET_MS = 30_000;
const INITIAL_TIMEOUT_MS = 30_000;
const ANSWER_TIMEOUT_MS = 8_000;
// How long the watch may take to deliver an event that the check has found.
const LATE_EVENT_MS = 1_000;
// An API server that was restarted may respond 410, because its watch cache does not reach back to the version.
const CHANGE_EVENT = /^\s*\{"type":"(?:ADDED|MODIFIED|DELETED|ERROR)"/;

/** Thrown if the API server does not support WatchList (`sendInitialEvents`). */
class WatchListUnsupportedError extends Error {}

/** What a list-watch reads from, and the cache that it fills. */
export interface WatchContext {
  readonly requester: ApiRequester;
  /**
   * The cache to fill. Between `beginReplace` and `endReplace` it receives the objects of a list and nothing else. An interrupted list starts over.
   */
  readonly cache: ResourceCache;
  readonly fieldManagers: FieldManagers;
  readonly events?: WatchEvents;
  /** The list-watches of the same API server, which inform each other if its store was restored. */
  readonly restores?: Restores | undefined;
  /** How long a watch may be quiet before it is checked, in milliseconds. Default: 30 s */
  readonly quietMs?: number | undefined;
  /** The timeout of the requests of a check, in milliseconds. Default: 8 s */
  readonly answerTimeoutMs?: number | undefined;
  /** How long an initial list may send nothing before it counts as unsupported, in milliseconds. Default: 30 s */
  readonly initialTimeoutMs?: number | undefined;
  readonly backoff?: Backoff;
  readonly clock?: Clock | undefined;
}

/** Notifications about the progress of a list-watch. */
export interface WatchEvents {
  onListed?(): void;
  /** Called for every chunk of a watch response. */
  onReceived?(): void;
  /** Called when a watch has ended, or could not start, and is restarted. */
  onEnded?(reason: WatchEnd): void;
  /** Called when a watch response starts: an earlier failure is resolved. */
  onConnected?(): void;
  /** Called after a failure. The next attempt starts after `retryAfterMs`. */
  onFailure?(error: unknown, retryAfterMs: number): void;
}

/** Lists and watches the objects of a scope (client-go's Reflector). */
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

  /** Runs until the signal is aborted, and resolves then. Never rejects. Call it once. */
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
          // The next relist tries WatchList again: a busy API server may have ended the stream.
          this.#usesWatchList = true;
        }
        await this.#watch(this.#attempt.signal);
        this.#events.onEnded?.("ended");
        // Avoid a tight loop if the API server ends every stream immediately.
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

  /** Handles the error that ended an attempt. Returns the time until the next attempt in milliseconds; undefined for immediately. */
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
    // A kind that is not served has no history from which a watch could resume.
    if (isExpired || isApiError(error, 404)) reader.expire();
    if (error instanceof WatchListUnsupportedError) {
      this.#usesWatchList = false;
      return undefined;
    }
    this.#events.onEnded?.(isExpired ? "expired" : reader.isRestored ? "restored" : "failed");
    if (this.#clock.now() - startedAt > HEALTHY_AFTER_MS) this.#backoff.reset();
    // An expired version does not indicate an unhealthy API server, unless it is the version of a fresh list.
    const growsMs = isExpired && isResumed ? BACKOFF.initialMs : this.#backoff.next();
    const retryAfterMs = Math.max(growsMs, isApiError(error) ? (error.retryAfterMs ?? 0) : 0);
    // A listener that throws must not end the list-watch.
    const report = () => this.#events.onFailure?.(error, retryAfterMs);
    if (!isExpired || !hadState) callUnawaited(report, { onFailure: () => {} });
    return retryAfterMs;
  }

  /**
   * Called when another list-watch detects that the store of the API server was restored. The function also identifies this list-watch in `Restores`.
   */
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
      // An API server that does not support sendInitialEvents ends the stream without the bookmark.
      if (!reader.isListed) throw new WatchListUnsupportedError();
    } catch (error) {
      throw died.signal.reason ?? error;
    } finally {
      over.abort(new Error("the stream has ended"));
    }
  }

  // Detects dead connections and restored API servers. Both look like a quiet kind: a restored server responds 200 and sends no events to a watch
  // from a version that it has not reached. The checks use another connection, before a watch is resumed and while it is quiet.

  /** Checks a stream whenever it is quiet, until the signal is aborted. Rejects if the stream is dead or does not deliver the list. */
  async #checkWhenQuiet(stream: StreamState, signal: AbortSignal): Promise<void> {
    const { requester, quietMs = QUIET_MS, initialTimeoutMs = INITIAL_TIMEOUT_MS } = this.#context;
    const { server } = requester.transport.connection;
    while (!signal.aborted) {
      const leftMs = stream.receivedAt + (this.#reader.isListed ? quietMs : initialTimeoutMs) - this.#clock.now();
      if (leftMs > 0) {
        // After the end of the list, it is checked more often.
        await sleep(Math.min(leftMs, quietMs), signal, this.#clock);
        continue;
      }
      if (!stream.hasAnswered) throw new ConnectionError(`${server} does not answer: nothing arrived`);
      // An API server that responds but sends no bookmark at the end of the list does not support sendInitialEvents.
      if (!this.#reader.isListed) throw new WatchListUnsupportedError();
      await this.#checkChanges(signal);
      await this.#checkVersion(signal);
      stream.receivedAt = this.#clock.now();
    }
  }

  /** Throws if the API server has changes that the watch does not deliver: its connection is dead. */
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

  /**
   * Reads the version of the API server with a list of one object. Throws if it is older than the version of the watch, or if the request times out.
   */
  async #checkVersion(signal: AbortSignal): Promise<void> {
    // The watch may advance during the request.
    const last = this.#reader.version;
    // With a label selector, the API server would scan all objects. Roles with resourceNames require the field selector.
    const path = this.#pathOf({ labelSelector: undefined, shardSelector: undefined, limit: 1 });
    // Few attempts, so that the request fails with its own error before it times out.
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

/** The state of a watch response. */
interface StreamState {
  hasAnswered: boolean;
  receivedAt: number;
}

/** Requests only metadata. The response has kind PartialObjectMetadata; the decoder restores the object's own kind. */
export const METADATA_OBJECT = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

const INITIAL_EVENTS_END = "k8s.io/initial-events-end";

/**
 * Applies the pages and events of a list-watch to its cache, and tracks its progress: it is listing from `beginList` to `endList`, and then watching
 * until the version expires or the store of the API server is found to be restored, which requires a relist.
 */
class WatchReader {
  /** The last version that the API server has sent; "0" before the first. */
  version = "0";
  /** Whether the list is complete and a watch can resume from this version. */
  isListed = false;
  /** Whether the store of the API server was restored to an older version than this one. */
  isRestored = false;
  readonly #cache: ResourceCache;
  readonly #isMetadataOnly: boolean;
  readonly #decode: ReturnType<typeof createWatchedDecoder>;
  readonly #onListed: () => void;
  /** The number of lists so far: no object of the first one is known. */
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

  /** Requires a relist, because the version is too old for a watch. */
  expire(): void {
    this.isListed = false;
  }

  /** Requires a relist because the store was restored: the next list may be older than the cache. */
  markRestored(): void {
    this.isRestored = true;
    this.isListed = false;
  }

  /** Ends a list at `version`. Throws a RestoredError if it is unexpectedly older than an earlier state. */
  endList(version: string): void {
    if (!this.isRestored) requireNotOlder(this.#cache, version, this.version);
    this.#cache.endReplace(version);
    this.version = version;
    this.isListed = true;
    this.isRestored = false;
    this.#onListed();
  }

  /** Reads an object of a page. Modifies its bytes. */
  readItem(page: Buffer, { start, end }: Range): void {
    if (!this.#isKnown(page, start)) this.#cache.observe(this.#decode(page, { start, end, lacksType: true }));
  }

  /** Reads the line of one event. Modifies its bytes. */
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

  // Do not decode known states: decoding is the most expensive part.
  #isKnown(bytes: Buffer, start: number): boolean {
    const cache = this.#cache;
    // In the first list nothing is known; in a watch, only the results of own writes are.
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

/** Returns the type of an event and the position of its object. */
function eventIn(line: Buffer): Range & { readonly type: string } {
  const type = findMember(line, 0, '"type"');
  const object = findMember(line, 0, '"object"');
  if (type === undefined || object === undefined) throw new SyntaxError("a line of a watch is no event");
  // Fast path: the object is usually the last member, so it ends with the event.
  const end = type > object ? endOfValue(line, object) : line.lastIndexOf(JSON_BYTES.CLOSE_BRACE);
  return { type: stringAt(line, type), start: object, end };
}

interface WatchedRange extends Range {
  /** Whether the object has no apiVersion and kind, as in a list, or those of PartialObjectMetadata. */
  readonly lacksType: boolean;
}

interface DecoderOptions {
  readonly fieldManagers: FieldManagers;
  /** The cache of the list-watch; absent to decode single objects. */
  readonly cache?: ResourceCache;
  /** Called for each completely decoded object, with the latest write of the field managers. */
  readonly onWritten?: (write: ManagedWrite | undefined) => void;
}

/** Returns the decoder for the objects of a list-watch or, without a cache, for single objects. It modifies the bytes. */
export function createWatchedDecoder(
  { definition, projection }: WatchScope,
  { fieldManagers, cache, onWritten }: DecoderOptions,
): (bytes: Buffer, range: WatchedRange) => DecodedResource {
  const { apiVersion, kind } = definition;
  const project = projection && compileProjection(projection);
  // In the first list nothing is known.
  const known = (key: ObjectKey) => (cache?.observedVersion === "0" ? undefined : cache?.observed.get(key));
  // Projected objects are parsed immediately.
  const deferred =
    project === undefined && cache !== undefined ? new DeferredDecoder({ fieldManagers, known }) : undefined;
  return (bytes, range) => {
    const { start, end, lacksType } = range;
    const entry = deferred?.decode(bytes, range) ?? decodeResource(bytes, { start, end, fieldManagers });
    onWritten?.(deferred?.latestWrite);
    if (lacksType) Object.assign(entry.object, { apiVersion, kind });
    // A projected object cannot be compared with a desired one, so `owned` is useless.
    return project === undefined ? entry : { object: project(entry.object) };
  };
}

/** Thrown if the API server is at an older version than the last one read from it: its store was restored from a backup. */
class RestoredError extends Error {}

/** Throws a RestoredError if a version is older than one that was read before. */
function requireNotOlder(cache: ResourceCache, version: string, last: string): void {
  if (!cache.comparesVersions || !isNewerVersion(last, version)) return;
  throw new RestoredError(
    `resourceVersion went back from ${last} to ${version}: the store of the API server was restored; relisting`,
  );
}

// When one list-watch detects that the store of its API server was restored, the caches of all list-watches are outdated. Until each kind has been
// relisted, an object could be written based on a reverted state of another kind.

/** The list-watches of one API server that have to relist because its store was restored. */
export class Restores {
  /** Called when another list-watch detects the restore. */
  readonly #listeners = new Set<() => void>();
  readonly #outdated = new Set<() => void>();

  /** Whether the cache of any kind may be newer than the API server. */
  readonly isUnderWay = (): boolean => this.#outdated.size > 0;

  /** Adds a list-watch. Returns the function that removes it. */
  add(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      this.#outdated.delete(listener);
    };
  }

  /** Records that a list-watch has detected a restore, and notifies all others, unless it is known already. */
  markRestored(by: () => void): void {
    if (this.#outdated.has(by)) return;
    for (const listener of this.#listeners) this.#outdated.add(listener);
    for (const listener of this.#listeners) if (listener !== by) listener();
  }

  /** Records that a list-watch has relisted its kind, or failed to: the others do not wait for it. */
  settle(listener: () => void): void {
    this.#outdated.delete(listener);
  }
}
