import type { ResourceDefinition } from "../base/resource-definition.js";
import type { ApiClient } from "../client/api-client.js";
import type { Connection } from "../client/connect/connection.js";
import type { ResourceCache } from "../cache/resource-cache.js";
import type { SourceHealth } from "../base/health.js";

/** What one list-watch follows. */
export interface InformerScope {
  readonly definition: ResourceDefinition;
  /** One namespace; all of them unless given. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** A hash range of the objects (ShardedListAndWatch, an alpha feature of Kubernetes 1.36). */
  readonly shardSelector?: string | undefined;
  /** Whether the server sends only the metadata of the objects. */
  readonly isMetadataOnly?: boolean | undefined;
  /** The paths that are kept of the objects; all of each unless given. */
  readonly projection?: readonly string[] | undefined;
}

/** What is wanted of an informer. */
export interface InformerRequest extends InformerScope {
  /** Another cluster; that of the operator unless given. The same object means the same connections. */
  readonly connection?: Connection | undefined;
  /** Whether the versions of the kind can be compared, as those of Kubernetes' own API servers can; true unless given. */
  readonly comparesVersions?: boolean | undefined;
  /** How many objects are kept whole; all of them unless given. A cache that has such a limit is not shared. */
  readonly maxCachedObjects?: number | undefined;
}

/** Keeps a cache up to date for everybody who needs it. */
export interface SharedInformer {
  readonly cache: ResourceCache;
  /** Speaks to the cluster that is watched; absent in tests. */
  readonly client?: ApiClient;
  readonly health: SourceHealth;
  /** Starts watching, if it does not yet; resolves when the whole state is known. */
  start(): Promise<void>;
  /** Starts watching as `start` does, but throws as soon as an attempt fails; further attempts are made all the same. */
  startOrThrow(): Promise<void>;
}

/** A use of an informer, which runs as long as anybody uses it. */
export interface InformerHandle {
  readonly informer: SharedInformer;
  /** Ends this use, once; the last release stops the informer. */
  release(): Promise<void>;
}

/** The list-watches of an operator, one for everything that is the same. */
export interface SharedInformers {
  /** Returns a handle of the informer that follows these objects, which is not started by that. */
  acquire(request: InformerRequest): InformerHandle;
}
