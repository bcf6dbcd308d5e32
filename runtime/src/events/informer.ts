import { findError, type ApiError } from "../base/errors.js";
import { messageOf, type Logger } from "../base/logger.js";
import { crdNameOf, kindNameOf, type ResourceDefinition } from "../base/resource-definition.js";
import type { ApiClient } from "../cluster/api-client.js";
import type { IndexFunction } from "../cluster/object-index.js";
import { ResourceCache } from "../cluster/resource-cache.js";
import { ResourceView } from "../cluster/resource-view.js";
import { runListWatch } from "./list-watch.js";

/** What an informer watches. */
export interface InformerOptions {
  readonly definition: ResourceDefinition;
  /** The namespaces to watch; all of them unless given. */
  readonly namespaces?: readonly string[] | undefined;
  readonly labelSelector?: string | undefined;
  /** Whose managed fields are kept. */
  readonly fieldManagers: Iterable<string>;
  readonly indexes?: { readonly [name: string]: IndexFunction };
  readonly client: ApiClient;
  readonly logger: Logger;
  readonly watchIdleTimeoutMs?: number | undefined;
}

/** Keeps what is known of one kind up to date; the view reports what others change. */
export class Informer {
  readonly definition: ResourceDefinition;
  readonly cache: ResourceView;
  /** By namespace; one for all of them has none. */
  readonly #caches = new Map<string | undefined, ResourceCache>();
  readonly #options: InformerOptions;
  #running: { controller: AbortController; ended: Promise<unknown>; synced: Promise<void> } | undefined;
  #lastFailure: unknown;
  /** How to tell those who wait for the state that it is not to be had now. */
  readonly #waiting = new Set<(reason: Error) => void>();

  constructor(options: InformerOptions) {
    this.definition = options.definition;
    this.cache = new ResourceView(options.definition, options.indexes);
    this.#options = options;
  }

  /** Starts watching, if it does not yet; resolves when the whole state is known. */
  start(): Promise<void> {
    if (this.#running !== undefined) return this.#running.synced;
    const controller = new AbortController();
    const scopes: readonly (string | undefined)[] =
      this.definition.scope === "Cluster" ? [undefined] : (this.#options.namespaces ?? [undefined]);
    const runs = scopes.map((namespace) => this.#run(namespace, controller.signal));
    const synced = Promise.all(runs.map((run) => run.synced)).then(() => {});
    this.#running = { controller, synced, ended: Promise.all(runs.map((run) => run.ended)) };
    return synced;
  }

  /** Starts watching as `start` does, but throws as soon as an attempt fails; further attempts are made all the same. */
  async startOrThrow(): Promise<void> {
    const synced = this.start();
    let giveUp = (_reason: Error): void => {};
    const failed = new Promise<never>((_, reject) => (giveUp = reject));
    this.#waiting.add(giveUp);
    // An attempt that failed before says the same as the next one, which may take a while.
    if (this.#lastFailure !== undefined) giveUp(this.#errorOf(this.#lastFailure));
    try {
      await Promise.race([synced, failed]);
    } finally {
      this.#waiting.delete(giveUp);
    }
  }

  /** Stops watching; what is cached stays as it is. */
  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    this.#lastFailure = undefined;
    this.#giveUpWaiting(new Error(`the watch of ${this.definition.kind} was stopped`));
    running?.controller.abort(new Error("the informer was stopped"));
    await running?.ended;
  }

  /** Forgets what is cached, without telling anybody; only while nothing is watched. */
  clear(): void {
    this.cache.clear();
    this.#caches.clear();
  }

  /** Resolves when the whole state is known; absent while nothing is watched. */
  get synced(): Promise<void> | undefined {
    return this.#running?.synced;
  }

  /** Why there is no state, or no new one; absent while all is well. */
  get lastFailure(): unknown {
    return this.#lastFailure;
  }

  #run(namespace: string | undefined, signal: AbortSignal): { synced: Promise<void>; ended: Promise<void> } {
    const { client, definition, fieldManagers, labelSelector, watchIdleTimeoutMs } = this.#options;
    const cache = this.#cacheOf(namespace);
    let announceSynced = () => {};
    const synced = new Promise<void>((resolve) => (announceSynced = resolve));
    const { transport, requester } = client;
    const ended = runListWatch(
      { definition, namespace, labelSelector, fieldManagers, transport, requester, idleTimeoutMs: watchIdleTimeoutMs },
      {
        beginReplace: () => cache.beginReplace(),
        replace: (entries, version) => {
          this.#lastFailure = undefined;
          cache.replace(entries, version);
          announceSynced();
        },
        observe: (entry) => {
          this.#lastFailure = undefined;
          cache.observe(entry);
        },
        expectsOwn: () => cache.expectsOwn,
        observeOwn: (version) => cache.observeOwn(version),
        observeDeletion: (object) => cache.observeDeletion(object),
        observeVersion: (version) => cache.observeVersion(version),
        onFailure: (error, retryAfterMs) => this.#reportFailure(error, retryAfterMs),
      },
      signal,
    );
    return { synced, ended };
  }

  #cacheOf(namespace: string | undefined): ResourceCache {
    let cache = this.#caches.get(namespace);
    if (cache === undefined) {
      this.#caches.set(namespace, (cache = new ResourceCache()));
      this.cache.attach(cache, namespace);
    }
    return cache;
  }

  #giveUpWaiting(reason: Error): void {
    for (const giveUp of this.#waiting) giveUp(reason);
  }

  #errorOf(failure: unknown): Error {
    const message = describeFailure(failure, this.definition, this.#options.client.connection);
    return new Error(message.replace(/; trying again$/, ""), { cause: failure });
  }

  #reportFailure(error: unknown, retryAfterMs: number): void {
    const isRepeated = messageOf(error) === messageOf(this.#lastFailure);
    this.#lastFailure = error;
    const { definition, client, logger } = this.#options;
    const fields = {
      kind: kindNameOf(definition),
      server: client.connection.server,
      retryAfterMs: Math.round(retryAfterMs),
    };
    const message = describeFailure(error, definition, client.connection);
    // The first time it is news; after that it would fill the log.
    if (isRepeated) logger.debug(fields, message);
    else logger.warn(fields, message);
    this.#giveUpWaiting(this.#errorOf(error));
  }
}

/** Says why a kind cannot be watched and what to do about it. */
export function describeFailure(
  error: unknown,
  definition: ResourceDefinition,
  { server, origin }: { server: string; origin: string },
): string {
  const apiError = findError<ApiError>(error, "ApiError");
  const kind = kindNameOf(definition);
  if (apiError?.code === 404 && definition.isCustom) {
    return (
      `${kind} is not served by ${server}: the CustomResourceDefinition ${crdNameOf(definition)} is not installed or does not serve ` +
      `${definition.version}; install it with kubectl apply -f crds/; trying again`
    );
  }
  if (apiError?.code === 401)
    return `${server} rejects the credentials from ${origin} (401 Unauthorized), so ${kind} cannot be watched; trying again`;
  if (apiError?.code === 403)
    return `not allowed to list and watch ${kind} at ${server}: ${apiError.message}; grant list and watch on ${definition.plural}; trying again`;
  return `cannot watch ${kind} at ${server}: ${messageOf(error)}; trying again`;
}
