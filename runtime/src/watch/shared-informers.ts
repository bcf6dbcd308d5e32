import type { ResourceDefinition } from "../base/resource-definition.js";
import type { ApiClient } from "../client/api-client.js";
import type { Connection } from "../client/connect/connection.js";
import type { ResourceCache } from "../cache/resource-cache.js";
import type { SourceHealth } from "../base/health.js";

/** The objects that one list-watch follows. */
export interface InformerScope {
  readonly definition: ResourceDefinition;
  /** One namespace. Default: all namespaces. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** A hash range of the objects (ShardedListAndWatch, an alpha feature of Kubernetes 1.36). */
  readonly shardSelector?: string | undefined;
  /** Whether the server sends only the metadata of the objects. */
  readonly isMetadataOnly?: boolean | undefined;
  /** The paths that are kept of each object. Default: the whole object. */
  readonly projection?: readonly string[] | undefined;
}

/** A request for an informer. */
export interface InformerRequest extends InformerScope {
  /** The connection to another cluster; equal by identity. Default: the cluster of the operator. */
  readonly connection?: Connection | undefined;
  /** Whether the versions of the kind can be compared, as those of Kubernetes' own API servers can. Default: true. */
  readonly comparesVersions?: boolean | undefined;
  /** The number of objects that are kept whole. Default: all. A bounded cache is not shared. */
  readonly maxCachedObjects?: number | undefined;
}

/** Keeps a cache up to date for all its users. */
export interface SharedInformer {
  readonly cache: ResourceCache;
  /** The client of the watched cluster; absent in tests. */
  readonly client?: ApiClient;
  readonly health: SourceHealth;
  /** Starts watching, unless it does already; resolves when the first list has ended. */
  start(): Promise<void>;
  /** Starts watching as `start` does, but rejects as soon as an attempt fails. Further attempts follow all the same. */
  startOrThrow(): Promise<void>;
}

/** A use of an informer, which runs as long as anybody uses it. */
export interface InformerHandle {
  readonly informer: SharedInformer;
  /** Ends this use, once; the last release stops the informer. */
  release(): Promise<void>;
}

/** The informers of an operator, one for all equal requests. */
export interface SharedInformers {
  /** Returns a handle of the informer that follows these objects. It does not start the informer. */
  acquire(request: InformerRequest): InformerHandle;
}
