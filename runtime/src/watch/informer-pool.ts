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

interface InformerPoolOptions {
  readonly client: ApiClient;
  /** Clients of other clusters that the caller opens and closes. The pool opens one for any other connection. */
  readonly clusters?: Iterable<ApiClient> | undefined;
  readonly fieldManagers: Iterable<string>;
  readonly logger: Logger;
}

interface Cluster {
  readonly id: number;
  readonly client: ApiClient;
  readonly restores: Restores;
  /** How many informers follow it; whoever opened the client counts, too. */
  users: number;
}

/** Creates informers, one for all equal requests. */
export class InformerPool implements SharedInformers {
  readonly #options: InformerPoolOptions;
  readonly #informers = new Map<string, { readonly informer: Informer; users: number }>();
  /** That of the operator has no connection. */
  readonly #clusters = new Map<Connection | undefined, Cluster>();
  #ids = 0;

  constructor(options: InformerPoolOptions) {
    this.#options = options;
    this.#addCluster(undefined, options.client).users++;
    for (const client of options.clusters ?? []) this.#addCluster(client.connection, client).users++;
  }

  get size(): number {
    return this.#informers.size;
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

  #create(request: InformerRequest, { client, restores }: Cluster): Informer {
    const { connection: _, comparesVersions = true, maxCachedObjects, ...scope } = request;
    const { fieldManagers, logger } = this.#options;
    const fetch = createObjectFetcher(scope, { client, fieldManagers });
    const bound = maxCachedObjects === undefined ? undefined : { maxObjects: maxCachedObjects, fetch };
    const cache = new ResourceCache({ comparesVersions, bound, isServerOutdated: () => restores.isUnderWay });
    return new Informer({ ...scope, fieldManagers, logger, cache, client, restores });
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
