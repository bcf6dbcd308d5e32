// The list-watches of an operator. Sources that follow the same objects, in whichever controller, share one list-watch and one cache; it runs
// as long as any of them has a handle of it.
import type { Logger } from "../base/logger.js";
import { ApiClient } from "../client/api-client.js";
import type { Connection } from "../client/connect/connection.js";
import { ResourceCache } from "../cache/resource-cache.js";
import type { InformerHandle, InformerRequest, SharedInformers } from "./shared-informers.js";
import { createObjectFetcher } from "./fetch-object.js";
import { Informer } from "./informer.js";
import { Restores } from "./restores.js";

/** Settings of all informers of a pool. */
export interface InformerPoolOptions {
  readonly client: ApiClient;
  /** Clients of other clusters that the caller opens and closes. The pool opens one for any other connection. */
  readonly clusters?: Iterable<ApiClient> | undefined;
  /** The field managers of all controllers. */
  readonly fieldManagers: Iterable<string>;
  readonly logger: Logger;
}

interface Shared<Value> {
  readonly value: Value;
  users: number;
}

/** Creates informers, one for all equal requests. */
export class InformerPool implements SharedInformers {
  readonly #options: InformerPoolOptions;
  readonly #informers = new Map<string, Shared<Informer>>();
  /** The clients of other clusters. */
  readonly #clients = new Map<Connection, Shared<ApiClient>>();
  readonly #connectionIds = new WeakMap<Connection, number>();
  readonly #restores = new WeakMap<ApiClient, Restores>();
  #connections = 0;
  /** Counts the informers with bounded caches that were created. */
  #bounded = 0;

  constructor(options: InformerPoolOptions) {
    this.#options = options;
    // The use of the caller is never released.
    for (const client of options.clusters ?? []) this.#clients.set(client.connection, { value: client, users: 1 });
  }

  /** The number of informers. */
  get size(): number {
    return this.#informers.size;
  }

  acquire(request: InformerRequest): InformerHandle {
    const key = this.#keyOf(request);
    let shared = this.#informers.get(key);
    if (shared === undefined) this.#informers.set(key, (shared = { value: this.#create(request), users: 0 }));
    shared.users++;
    const { value: informer } = shared;
    let isReleased = false;
    const release = async () => {
      if (isReleased) return;
      isReleased = true;
      if (--shared.users > 0) return;
      // A request from now on gets a new informer with an empty cache.
      this.#informers.delete(key);
      await informer.stop();
      await this.#releaseClient(request.connection);
    };
    return { informer, release };
  }

  #create({ connection, comparesVersions = true, maxCachedObjects, ...scope }: InformerRequest): Informer {
    const { client: own, clusters: _clusters, ...options } = this.#options;
    const client = this.#acquireClient(connection) ?? own;
    const fetch = createObjectFetcher(scope, { client, fieldManagers: options.fieldManagers });
    const bound = maxCachedObjects === undefined ? undefined : { maxObjects: maxCachedObjects, fetch };
    const restores = this.#restoresOf(client);
    const cache = new ResourceCache({ comparesVersions, bound, isServerOutdated: () => restores.isUnderWay });
    return new Informer({ ...scope, ...options, cache, client, restores });
  }

  #restoresOf(client: ApiClient): Restores {
    const known = this.#restores.get(client) ?? new Restores();
    this.#restores.set(client, known);
    return known;
  }

  #acquireClient(connection: Connection | undefined): ApiClient | undefined {
    if (connection === undefined) return undefined;
    let shared = this.#clients.get(connection);
    if (shared === undefined) this.#clients.set(connection, (shared = { value: new ApiClient(connection), users: 0 }));
    shared.users++;
    return shared.value;
  }

  async #releaseClient(connection: Connection | undefined): Promise<void> {
    const shared = connection && this.#clients.get(connection);
    if (connection === undefined || shared === undefined || --shared.users > 0) return;
    this.#clients.delete(connection);
    await shared.value.close();
  }

  #keyOf(request: InformerRequest): string {
    const { definition, namespace, labelSelector, fieldSelector, shardSelector, connection } = request;
    const { isMetadataOnly = false, comparesVersions = true, projection, maxCachedObjects } = request;
    // A bounded cache is not shared: its reader decides which objects stay whole.
    const bounded = maxCachedObjects === undefined ? undefined : ++this.#bounded;
    const form = [isMetadataOnly, projection && [...new Set(projection)].sort(), bounded];
    const scope = [definition.apiVersion, definition.plural, namespace, labelSelector, fieldSelector, shardSelector];
    return JSON.stringify([this.#idOf(connection), ...scope, ...form, comparesVersions]);
  }

  #idOf(connection: Connection | undefined): number {
    if (connection === undefined) return 0;
    let id = this.#connectionIds.get(connection);
    if (id === undefined) this.#connectionIds.set(connection, (id = ++this.#connections));
    return id;
  }
}
