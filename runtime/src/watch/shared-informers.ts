import type { ResourceDefinition } from "../base/resource-definition.js";
import type { Connection } from "../client/connect/connection.js";
import type { Informer } from "./informer.js";

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

/** Keeps a cache up to date for all its users; tests simulate it, without a client. */
export type SharedInformer = Pick<Informer, "cache" | "health" | "start" | "startOrThrow"> &
  Partial<Pick<Informer, "client">>;

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
