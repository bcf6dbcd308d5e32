// The list-watches of an operator. Sources that follow the same objects, in whichever controller, share one list-watch and one cache; it runs
// as long as any of them has a handle of it.
import type { FieldManagers } from "../base/decoded-resource.js";
import type { InformerActivity } from "../base/activity.js";
import { isAbsent } from "../base/errors.js";
import { describeObject, refOfKey } from "../base/kubernetes-object.js";
import { messageOf, type Logger } from "../base/logger.js";
import { ApiClient, requesterOf } from "../client/api-client.js";
import type { Connection } from "../client/connect/connection.js";
import { objectPath } from "../client/resource-path.js";
import type { CacheBound } from "../cache/bounded-objects.js";
import { ResourceCache } from "../cache/resource-cache.js";
import { createWatchedDecoder } from "./decode-watched.js";
import { Informer } from "./informer.js";
import { METADATA_OBJECT, type InformerScope } from "./list-watch-options.js";
import { Restores } from "./restores.js";

/** A request for an informer. */
export interface InformerRequest extends InformerScope {
  /** The connection to another cluster; equal by identity. Default: the cluster of the operator. */
  readonly connection?: Connection | undefined;
  /** Whether the versions of the kind can be compared, as those of Kubernetes' own API servers can. Default: true. */
  readonly comparesVersions?: boolean | undefined;
  /** The number of objects that are kept whole. Default: all. A bounded cache is not shared. */
  readonly maxCachedObjects?: number | undefined;
}

type InformerMember = "cache" | "health" | "isKnown" | "isSynced" | "isUnserved" | "onKnown" | "start" | "startOrThrow";

/** A use of an informer, which runs as long as anybody uses it. */
export interface InformerHandle {
  /** Tests simulate it, without a client. */
  readonly informer: Pick<Informer, InformerMember> & Partial<Pick<Informer, "client">>;
  /** Ends this use, once; the last release stops the informer. */
  release(): Promise<void>;
}

/** The informers of an operator, as those use them who watch. */
export type SharedInformers = Pick<InformerPool, "acquire">;

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
  /** How many informers follow it; whoever opened the client counts, too. */
  users: number;
}

/** Creates informers, one for all equal requests. */
export class InformerPool {
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

  activity(): readonly InformerActivity[] {
    return [...this.#informers.values()].map(({ informer }) => informer.activity);
  }

  /** Returns a handle of the informer that follows these objects. It does not start the informer. */
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

/** Reads objects one by one as an informer of this scope keeps them (JOSDK KubernetesResourceFetcher). */
function createObjectFetcher(
  { definition, isMetadataOnly = false, projection }: InformerScope,
  { client, fieldManagers }: Pick<InformerPoolOptions, "client" | "fieldManagers">,
): CacheBound["fetch"] {
  const decode = createWatchedDecoder({ definition, projection, fieldManagers });
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
