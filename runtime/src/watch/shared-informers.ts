// The informers of an operator. Sources of all controllers that watch the same objects share one informer, with one list-watch and one cache. An
// informer runs until its last handle is released.
import type { InformerActivity, SourceHealth, WatchEnd } from "../base/activity.js";
import { type ApiError, findError, isAbsent, isApiError } from "../base/errors.js";
import { type FieldManagers, crdNameOf, describeObject, kindNameOf, refOfKey } from "../base/kubernetes-object.js";
import { type LineLevel, type Logger, messageOf } from "../base/logger.js";
import { untilAborted } from "../base/wait.js";
import type { CacheBound } from "../cache/bounded-cache.js";
import { ResourceCache } from "../cache/resource-cache.js";
import { ApiClient, objectPath, requesterOf } from "../client/api-client.js";
import type { Connection } from "../client/connection.js";
import {
  ListWatch,
  METADATA_OBJECT,
  Restores,
  type WatchEvents,
  type WatchScope,
  createWatchedDecoder,
} from "./list-watch.js";

/** A request for an informer. */
export interface InformerRequest extends WatchScope {
  /** The connection to another cluster, compared by identity. Default: the operator's cluster */
  readonly connection?: Connection | undefined;
  /** Whether resourceVersions of the kind can be compared, as with Kubernetes' own API servers. Default: true */
  readonly comparesVersions?: boolean | undefined;
  /** The number of complete objects to keep. A bounded cache is not shared. Default: all */
  readonly maxCachedObjects?: number | undefined;
}

/** A list-watch with its cache and its health. */
interface Informer {
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

/** A handle of an informer, which runs until its last handle is released. */
export interface InformerHandle {
  readonly informer: Informer;
  /** Releases this handle, once. The last release stops the informer. */
  release(): Promise<void>;
}

/** The informers of an operator (client-go's SharedInformerFactory). */
export interface SharedInformers {
  /** Returns a handle of the informer for these objects, without starting it. */
  acquire(request: InformerRequest): InformerHandle;
}

interface InformerPoolOptions {
  readonly client: ApiClient;
  /** Clients for other clusters, which the caller opens and closes. The pool opens one for any other connection. */
  readonly clusters?: Iterable<ApiClient> | undefined;
  readonly fieldManagers: FieldManagers;
  readonly logger: Logger;
}

interface Cluster {
  readonly id: number;
  readonly client: ApiClient;
  readonly restores: Restores;
  /** The number of informers of the cluster, plus one for a client that the caller opened. */
  users: number;
}

/** Creates informers; equal requests share one. */
export class InformerPool implements SharedInformers {
  readonly #options: InformerPoolOptions;
  readonly #informers = new Map<string, { readonly informer: SharedInformer; users: number }>();
  /** Keyed by connection; undefined for the operator's cluster. */
  readonly #clusters = new Map<Connection | undefined, Cluster>();
  #ids = 0;

  constructor(options: InformerPoolOptions) {
    this.#options = options;
    this.#addCluster(undefined, options.client).users++;
    for (const client of options.clusters ?? []) this.#addCluster(client.connection, client).users++;
  }

  activity(): readonly InformerActivity[] {
    return [...this.#informers.values()].map(({ informer }) => informer.activity);
  }

  acquire(request: InformerRequest): InformerHandle {
    const { connection } = request;
    const cluster = this.#clusters.get(connection) ?? this.#addCluster(connection, new ApiClient(connection!));
    const key = this.#keyOf(request, cluster);
    const shared = this.#informers.get(key) ?? { informer: this.#create(request, cluster), users: 0 };
    if (shared.users++ === 0) {
      this.#informers.set(key, shared);
      cluster.users++;
    }
    const { informer } = shared;
    let isReleased = false;
    const release = async () => {
      if (isReleased) return;
      isReleased = true;
      if (--shared.users > 0) return;
      // Further requests get a new informer with an empty cache.
      this.#informers.delete(key);
      await informer.stop();
      if (--cluster.users > 0) return;
      this.#clusters.delete(connection);
      await cluster.client.close();
    };
    return { informer, release };
  }

  #create(request: InformerRequest, { client, restores }: Cluster): SharedInformer {
    const { comparesVersions = true, maxCachedObjects: maxObjects } = request;
    const { fieldManagers, logger } = this.#options;
    const bound =
      maxObjects === undefined ? undefined : { maxObjects, fetch: createObjectFetcher(request, client, fieldManagers) };
    const cache = new ResourceCache({ comparesVersions, bound, isServerOutdated: () => restores.isUnderWay });
    return new SharedInformer(request, { fieldManagers, logger, cache, client, restores });
  }

  #addCluster(connection: Connection | undefined, client: ApiClient): Cluster {
    const cluster = { id: this.#ids++, client, restores: new Restores(), users: 0 };
    this.#clusters.set(connection, cluster);
    return cluster;
  }

  #keyOf(request: InformerRequest, { id }: Cluster): string {
    const { definition, namespace, labelSelector, fieldSelector, shardSelector } = request;
    const { isMetadataOnly = false, comparesVersions = true, projection, maxCachedObjects } = request;
    const scope = [definition.apiVersion, definition.plural, namespace, labelSelector, fieldSelector, shardSelector];
    const form = [isMetadataOnly, comparesVersions, projection && [...new Set(projection)].sort()];
    // A bounded cache is not shared, because its reader decides which objects are kept complete.
    return JSON.stringify([id, ...scope, ...form, maxCachedObjects === undefined ? undefined : this.#ids++]);
  }
}

/** Returns a function that reads single objects in the form in which an informer with this scope caches them (JOSDK's KubernetesResourceFetcher). */
function createObjectFetcher(scope: WatchScope, client: ApiClient, fieldManagers: FieldManagers): CacheBound["fetch"] {
  const { definition, isMetadataOnly = false } = scope;
  const decode = createWatchedDecoder(scope, { fieldManagers });
  const accept = isMetadataOnly ? METADATA_OBJECT : undefined;
  return async (key, signal) => {
    const ref = refOfKey(key);
    try {
      const path = objectPath(definition, ref);
      const { body } = await requesterOf(client).send({ method: "GET", path, accept, signal });
      return decode(body, { start: 0, end: body.length, lacksType: isMetadataOnly });
    } catch (error) {
      if (isAbsent(error)) return undefined;
      const what = `${describeObject(definition, ref)} was evicted from a bounded cache and could not be fetched again`;
      throw new Error(`${what}: ${messageOf(error)}`, { cause: error });
    }
  };
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
