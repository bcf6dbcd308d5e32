import { findError, isApiError, type ApiError } from "../base/errors.js";
import { messageOf, type Logger } from "../base/logger.js";
import { crdNameOf, kindNameOf, type ResourceDefinition } from "../base/resource-definition.js";
import { requesterOf, type ApiClient } from "../client/api-client.js";
import { compileProjection } from "../decode/projection.js";
import type { ResourceCache } from "../cache/resource-cache.js";
import type { InformerScope, SharedInformer } from "./shared-informers.js";
import { runListWatch } from "./list-watch.js";
import type { Restores } from "./restores.js";
import type { SourceHealth } from "../base/health.js";

/** Settings of an informer. */
export interface InformerOptions extends InformerScope {
  readonly cache: ResourceCache;
  readonly client: ApiClient;
  /** The list-watches of the same server. */
  readonly restores?: Restores | undefined;
  /** Whose managed fields are kept. */
  readonly fieldManagers: Iterable<string>;
  readonly logger: Logger;
}

interface Run {
  readonly controller: AbortController;
  readonly synced: Promise<void>;
  readonly ended: Promise<void>;
  isSynced: boolean;
}

const MAX_BUSY_ANSWERS = 8;

/** Keeps one cache up to date. It logs one line when the watch fails, and one when it works again. */
export class Informer implements SharedInformer {
  readonly definition: ResourceDefinition;
  readonly namespace: string | undefined;
  readonly cache: ResourceCache;
  readonly client: ApiClient;
  readonly #options: InformerOptions;
  #run: Run | undefined;
  #lastFailure: unknown;
  /** How many attempts in succession the server was too busy for. */
  #busyAnswers = 0;
  /** The rejections of the starts that wait for the first list. */
  readonly #waiting = new Set<(reason: Error) => void>();

  constructor(options: InformerOptions) {
    this.definition = options.definition;
    this.namespace = options.namespace;
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

  /** The last failure of the watch; absent while it works. */
  get lastFailure(): unknown {
    return this.#lastFailure;
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
    let giveUp = (_reason: Error): void => {};
    const failed = new Promise<never>((_, reject) => (giveUp = reject));
    this.#waiting.add(giveUp);
    // The next attempt may take a while, and would fail for the same reason.
    if (this.#lastFailure !== undefined && !this.#isBusy) giveUp(this.#errorOf(this.#lastFailure));
    try {
      await Promise.race([synced, failed]);
    } finally {
      this.#waiting.delete(giveUp);
    }
  }

  /** Stops watching. The cache keeps its objects. */
  async stop(): Promise<void> {
    const run = this.#run;
    this.#run = undefined;
    this.#lastFailure = undefined;
    this.#giveUpWaiting(new Error(`the watch of ${describeWatched(this.definition, this.namespace)} was stopped`));
    run?.controller.abort(new Error("the informer was stopped"));
    await run?.ended;
  }

  #begin(): Run {
    const { cache, client, logger: _logger, projection, ...followed } = this.#options;
    const project = projection && compileProjection(projection);
    let announceSynced = () => {};
    const synced = new Promise<void>((resolve) => (announceSynced = resolve));
    const controller = new AbortController();
    const requester = requesterOf(client);
    const { transport } = requester;
    const ended = runListWatch(
      {
        ...followed,
        ...{ project, transport, requester },
        known: (key) => cache.observed.get(key),
        comparesVersions: cache.comparesVersions,
      },
      {
        beginReplace: (options) => cache.beginReplace(options),
        observeKnown: (key, version) => cache.observeKnown(key, version),
        observeListed: (entry) => cache.observeListed(entry),
        forgetListed: (object) => cache.forgetListed(object),
        endReplace: (version) => {
          cache.endReplace(version);
          run.isSynced = true;
          this.#reportSuccess();
          announceSynced();
        },
        onConnected: () => {
          if (run.isSynced) this.#reportSuccess();
        },
        observe: (entry) => cache.observe(entry),
        expectsOwn: () => cache.expectsOwn,
        observeOwn: (version) => cache.observeOwn(version),
        observeDeletion: (object) => cache.observeDeletion(object),
        observeVersion: (version) => cache.observeVersion(version),
        onFailure: (error, retryAfterMs) => this.#reportFailure(error, retryAfterMs),
      },
      controller.signal,
    );
    const run: Run = { controller, synced, ended, isSynced: false };
    return run;
  }

  #giveUpWaiting(reason: Error): void {
    for (const giveUp of this.#waiting) giveUp(reason);
  }

  #errorOf(failure: unknown): Error {
    const message = describeFailure(failure, this, this.#options.client.connection);
    return new Error(message.replace(/; trying again$/, ""), { cause: failure });
  }

  #reportSuccess(): void {
    this.#busyAnswers = 0;
    if (this.#lastFailure === undefined) return;
    this.#lastFailure = undefined;
    const { server } = this.#options.client.connection;
    const message = `${describeWatched(this.definition, this.namespace)} is watched again`;
    this.#log("info", { kind: kindNameOf(this.definition), server }, message);
  }

  // A logger that throws must not end the watch.
  #log(level: keyof Logger, fields: object, message: string): void {
    try {
      this.#options.logger[level](fields, message);
    } catch {
      // There is no other place to report it.
    }
  }

  #reportFailure(error: unknown, retryAfterMs: number): void {
    const isRepeated = messageOf(error) === messageOf(this.#lastFailure);
    this.#lastFailure = error;
    const { client, cache } = this.#options;
    const fields = {
      kind: kindNameOf(this.definition),
      server: client.connection.server,
      retryAfterMs: Math.round(retryAfterMs),
    };
    const message = describeFailure(error, this, client.connection);
    // A repeated failure would fill the log.
    this.#log(isRepeated ? "debug" : "warn", fields, message);
    // A kind that is no longer served has no objects. After any other failure the objects are unknown, and stay cached.
    if (isApiError(error, 404) && this.#run?.isSynced === true) {
      cache.beginReplace();
      cache.replace([], cache.observedVersion);
    }
    this.#busyAnswers = isApiError(error, 429) ? this.#busyAnswers + 1 : 0;
    if (!this.#isBusy) this.#giveUpWaiting(this.#errorOf(error));
  }

  // The server answers 429 while it sets up the storage of a kind that has just appeared: whoever waits for the kind waits on.
  get #isBusy(): boolean {
    return this.#busyAnswers > 0 && this.#busyAnswers < MAX_BUSY_ANSWERS;
  }
}

/** Names the kind that a list-watch follows, and its namespace if it is only one, for messages. */
function describeWatched(definition: ResourceDefinition, namespace?: string): string {
  return kindNameOf(definition) + (namespace === undefined ? "" : ` in namespace "${namespace}"`);
}

/** Says why a kind cannot be watched and what to do about it. */
function describeFailure(
  error: unknown,
  watched: { readonly definition: ResourceDefinition; readonly namespace?: string | undefined },
  { server, origin }: { server: string; origin: string },
): string {
  const { definition, namespace } = watched;
  const apiError = findError<ApiError>(error, "ApiError");
  const kind = kindNameOf(definition);
  const what = describeWatched(definition, namespace);
  if (apiError?.code === 404 && definition.isCustom) {
    return (
      `${kind} is not served by ${server}: the CustomResourceDefinition ${crdNameOf(definition)} is not installed or does not serve ` +
      `${definition.version}; install it with kubectl apply -f crds/; trying again`
    );
  }
  if (apiError?.code === 404) return `${kind} is not served by ${server}; trying again`;
  if (apiError?.code === 401)
    return `${server} rejects the credentials from ${origin} (401 Unauthorized), so ${what} cannot be watched; trying again`;
  if (apiError?.code === 403)
    return `not allowed to list and watch ${what} at ${server}: ${apiError.message}; grant list and watch on ${definition.plural}; trying again`;
  return `cannot watch ${what} at ${server}: ${messageOf(error)}; trying again`;
}
