// The informers of an operator. Sources of all controllers that watch the same objects share one informer, with one list-watch and one cache. An
// informer runs until its last handle is released.
import type { InformerActivity } from "../base/activity.js";
import { isAbsent } from "../base/errors.js";
import { type FieldManagers, describeObject, refOfKey } from "../base/kubernetes-object.js";
import { type Logger, messageOf } from "../base/logger.js";
import type { CacheBound } from "../cache/bounded-cache.js";
import { ResourceCache } from "../cache/resource-cache.js";
import { ApiClient, objectPath, requesterOf } from "../client/api-client.js";
import type { Connection } from "../client/connection.js";
import {
  type Informer,
  METADATA_OBJECT,
  Restores,
  SharedInformer,
  type WatchScope,
  createWatchedDecoder,
} from "./informer.js";

/** A request for an informer. */
export interface InformerRequest extends WatchScope {
  /** The connection to another cluster, compared by identity. Default: the operator's cluster */
  readonly connection?: Connection | undefined;
  /** Whether resourceVersions of the kind can be compared, as with Kubernetes' own API servers. Default: true */
  readonly comparesVersions?: boolean | undefined;
  /** The number of complete objects to keep. A bounded cache is not shared. Default: all */
  readonly maxCachedObjects?: number | undefined;
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
    const cache = new ResourceCache({ comparesVersions, bound, isServerOutdated: restores.isUnderWay });
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
