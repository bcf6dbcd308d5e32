// The informers of an operator. Sources of all controllers that follow the same objects share one informer, with one list-watch and one cache.
// It runs until the last source releases its handle.
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
  /** The connection to another cluster; equal by identity. Default: the cluster of the operator. */
  readonly connection?: Connection | undefined;
  /** Whether the versions of the kind can be compared, as those of Kubernetes' own API servers can. Default: true. */
  readonly comparesVersions?: boolean | undefined;
  /** The number of objects that are kept whole. Default: all. A bounded cache is not shared. */
  readonly maxCachedObjects?: number | undefined;
}

/** The objects that one list-watch follows, and how it is doing. */
interface Informer {
  readonly cache: ResourceCache;
  /** Absent where tests simulate the informer. */
  readonly client?: ApiClient;
  /** `unknown` until the first list has ended or failed; `unhealthy` from a failure to the next success. */
  readonly health: SourceHealth;
  /** Whether a list has ended since the start. A watch that fails later leaves the cache as it is. */
  readonly isSynced: boolean;
  /** Whether the cache has all objects: it is synced, or the kind is not served. What is not known must not be taken for absent. */
  readonly isKnown: boolean;
  /** Whether there are no objects, because the API server serves the kind in no version. */
  readonly isUnserved: boolean;
  /** Calls `listener` each time the objects become known; returns the function that ends it. */
  onKnown(listener: () => void): () => void;
  /** Starts watching, unless it does already; resolves when the first list has ended. */
  start(): Promise<void>;
  /** Starts watching as `start` does, but rejects as soon as an attempt fails. Further attempts follow all the same. */
  startOrThrow(): Promise<void>;
}

/** A use of an informer, which runs until its last use is released. */
export interface InformerHandle {
  readonly informer: Informer;
  /** Ends this use, once; the last release stops the informer. */
  release(): Promise<void>;
}

/** The informers of an operator (client-go SharedInformerFactory). */
export interface SharedInformers {
  /** Returns a handle of the informer that follows these objects. It does not start the informer. */
  acquire(request: InformerRequest): InformerHandle;
}

interface InformerPoolOptions {
  readonly client: ApiClient;
  /** Clients of other clusters that the caller opens and closes. The pool opens one for any other connection. */
  readonly clusters?: Iterable<ApiClient> | undefined;
  readonly fieldManagers: FieldManagers;
  readonly logger: Logger;
}

interface Cluster {
  readonly id: number;
  readonly client: ApiClient;
  readonly restores: Restores;
  /** The number of informers of the cluster, and one more for a client that the caller opened. */
  users: number;
}

/** Creates informers, one for all equal requests. */
export class InformerPool implements SharedInformers {
  readonly #options: InformerPoolOptions;
  readonly #informers = new Map<string, { readonly informer: SharedInformer; users: number }>();
  /** That of the operator has no connection. */
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
      // A request from now on gets a new informer with an empty cache.
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
    // A bounded cache is not shared: its reader decides which objects stay whole.
    return JSON.stringify([id, ...scope, ...form, maxCachedObjects === undefined ? undefined : this.#ids++]);
  }
}

/** Reads objects one by one as an informer of this scope keeps them (JOSDK KubernetesResourceFetcher). */
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
  /** Whether the API server serves the kind in no version, so that there are no objects. */
  isUnserved: boolean;
}

const MAX_BUSY_ANSWERS = 8;

/** Keeps one cache up to date. It logs one line when the watch fails, and one when it works again. */
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
    // The next attempt may take a while, and would fail for the same reason.
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
    // A repeated failure would fill the log.
    this.#log(isRepeated ? "debug" : "warn", { retryAfterMs: Math.round(retryAfterMs) }, message);
    if (isApiError(error, 404) && this.#run !== undefined) void this.#checkServed(this.#run, error);
    this.#busyAnswers = isApiError(error, 429) ? this.#busyAnswers + 1 : 0;
    if (!this.#isBusy) this.#giveUpWaiting(this.#errorOf(error));
  }

  // A kind that is served in no version has no objects. After any other failure the objects are unknown, and stay cached.
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

  // The server answers 429 while it sets up the storage of a kind that has just appeared: a start that waits for the kind goes on waiting.
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
