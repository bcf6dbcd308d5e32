import type { InformerActivity, SourceHealth, WatchEnd } from "../base/activity.js";
import { findError, isApiError, type ApiError } from "../base/errors.js";
import { messageOf, type LineLevel, type Logger } from "../base/logger.js";
import { untilAborted } from "../base/promises.js";
import { crdNameOf, kindNameOf } from "../base/resource-definition.js";
import { requesterOf, type ApiClient } from "../client/api-client.js";
import type { ResourceCache } from "../cache/resource-cache.js";
import { runListWatch } from "./list-watch.js";
import type { InformerScope, ListWatchOptions } from "./list-watch-options.js";

interface InformerOptions extends Pick<ListWatchOptions, "cache" | "fieldManagers" | "restores">, InformerScope {
  readonly client: ApiClient;
  readonly logger: Logger;
}

interface Run {
  readonly controller: AbortController;
  readonly synced: Promise<void>;
  readonly ended: Promise<void>;
  isSynced: boolean;
  /** Whether the API server serves the kind in no version, so that there are no objects. */
  isUnserved: boolean;
}

const MAX_BUSY_ANSWERS = 8;

/** Keeps one cache up to date. It logs one line when the watch fails, and one when it works again. */
export class Informer {
  readonly cache: ResourceCache;
  readonly client: ApiClient;
  readonly #options: InformerOptions;
  #run: Run | undefined;
  #lastFailure: unknown;
  #busyAnswers = 0;
  #givenUp = new AbortController();
  #receivedAt: number | undefined;
  readonly #knownListeners = new Set<() => void>();
  readonly #ends: Partial<Record<WatchEnd, number>> = {};

  constructor(options: InformerOptions) {
    this.cache = options.cache;
    this.client = options.client;
    this.#options = options;
  }

  /** `unknown` until the first list has ended or failed; `unhealthy` from a failure to the next success. */
  get health(): SourceHealth {
    if (this.#lastFailure !== undefined)
      return { status: "unhealthy", reason: this.#errorOf(this.#lastFailure).message };
    return { status: this.#run?.isSynced === true ? "healthy" : "unknown" };
  }

  /** Whether a list has ended since the start. A watch that fails later leaves the cache as it is. */
  get isSynced(): boolean {
    return this.#run?.isSynced === true;
  }

  /** Whether the cache has all objects: it is synced, or the kind is not served. What is not known must not be taken for absent. */
  get isKnown(): boolean {
    return this.isSynced || this.isUnserved;
  }

  /** Whether there are no objects, because the API server serves the kind in no version. */
  get isUnserved(): boolean {
    return this.#run?.isUnserved === true && this.cache.observed.size === 0;
  }

  /** Calls `listener` each time the objects become known; returns the function that ends it. */
  onKnown(listener: () => void): () => void {
    this.#knownListeners.add(listener);
    return () => void this.#knownListeners.delete(listener);
  }

  get activity(): InformerActivity {
    const { definition, namespace } = this.#options;
    const { server } = this.client.connection;
    const { size: objects } = this.cache.observed;
    const { isKnown } = this;
    const watched = { kind: kindNameOf(definition), namespace, server, objects, isKnown };
    return { ...watched, receivedAt: this.#receivedAt, ends: this.#ends };
  }

  /** Starts watching, unless it does already; resolves when the first list has ended. */
  start(): Promise<void> {
    this.#run ??= this.#begin();
    return this.#run.synced;
  }

  /** Starts watching as `start` does, but rejects as soon as an attempt fails. Further attempts follow all the same. */
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
    this.#giveUpWaiting(new Error(`the watch of ${describeWatched(this.#options)} was stopped`));
    run?.controller.abort(new Error("the informer was stopped"));
    await run?.ended;
  }

  #begin(): Run {
    let announceSynced = () => {};
    const synced = new Promise<void>((resolve) => (announceSynced = resolve));
    const controller = new AbortController();
    const options = {
      ...this.#options,
      requester: requesterOf(this.client),
      onListed: () => {
        const wasSynced = run.isSynced;
        run.isSynced = true;
        run.isUnserved = false;
        this.#reportSuccess();
        announceSynced();
        if (!wasSynced) this.#notifyKnown();
      },
      onReceived: () => void (this.#receivedAt = performance.now()),
      onEnded: (reason: WatchEnd) => void (this.#ends[reason] = (this.#ends[reason] ?? 0) + 1),
      onConnected: () => {
        run.isUnserved = false;
        if (run.isSynced) this.#reportSuccess();
      },
      onFailure: (error: unknown, retryAfterMs: number) => this.#reportFailure(error, retryAfterMs),
    };
    const ended = runListWatch(options, controller.signal);
    const run: Run = { controller, synced, ended, isSynced: false, isUnserved: false };
    return run;
  }

  #giveUpWaiting(reason: Error): void {
    this.#givenUp.abort(reason);
    this.#givenUp = new AbortController();
  }

  #errorOf(failure: unknown): Error {
    return new Error(describeFailure(failure, this.#options), { cause: failure });
  }

  #reportSuccess(): void {
    this.#busyAnswers = 0;
    if (this.#lastFailure === undefined) return;
    this.#lastFailure = undefined;
    this.#log("info", {}, `${describeWatched(this.#options)} is watched again`);
  }

  #log(level: LineLevel, fields: object, message: string): void {
    const { client, definition, logger } = this.#options;
    const facts = { kind: kindNameOf(definition), server: client.connection.server, ...fields };
    logger[level](facts, message);
  }

  #reportFailure(error: unknown, retryAfterMs: number): void {
    const isRepeated = messageOf(error) === messageOf(this.#lastFailure);
    this.#lastFailure = error;
    const message = `${describeFailure(error, this.#options)}; trying again`;
    // A repeated failure would fill the log.
    this.#log(isRepeated ? "debug" : "warn", { retryAfterMs: Math.round(retryAfterMs) }, message);
    if (isApiError(error, 404) && this.#run !== undefined) void this.#checkServed(this.#run, error);
    this.#busyAnswers = isApiError(error, 429) ? this.#busyAnswers + 1 : 0;
    if (!this.#isBusy) this.#giveUpWaiting(this.#errorOf(error));
  }

  // A kind that is served in no version has no objects. After any other failure the objects are unknown, and stay cached.
  async #checkServed(run: Run, failure: unknown): Promise<void> {
    const { cache, client, definition } = this.#options;
    const { signal } = run.controller;
    const versions = await client.servedVersions(definition, { signal }).catch(() => undefined);
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

  // The server answers 429 while it sets up the storage of a kind that has just appeared: whoever waits for the kind waits on.
  get #isBusy(): boolean {
    return this.#busyAnswers > 0 && this.#busyAnswers < MAX_BUSY_ANSWERS;
  }
}

function describeWatched({ definition, namespace }: InformerScope): string {
  return kindNameOf(definition) + (namespace === undefined ? "" : ` in namespace "${namespace}"`);
}

function describeFailure(error: unknown, watched: InformerOptions): string {
  const { definition } = watched;
  const { server, origin } = watched.client.connection;
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
