import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import { createConnection, type Connection, type ConnectionOptions } from "../cluster/connection.js";
import type { EventFilters } from "../cluster/event-filters.js";
import type { EventSource } from "../cluster/event-source.js";
import type { ResourceView } from "../cluster/resource-view.js";
import type { PrimaryToSecondaryMapper } from "./mappers.js";
import { ViewSource, type ContextualMapper, type ViewSourceOptions } from "./view-source.js";

/** What an informer source watches, and which primaries that concerns. */
export interface InformerSourceOptions<
  Resource extends KubernetesObject,
  Primary extends KubernetesObject = KubernetesObject,
> {
  /** Unique in its controller. */
  readonly name: string;
  /** The kind: a generated class, or what `untypedResource` returns. */
  readonly resource: { readonly definition: ResourceDefinition<Resource> };
  /**
   * Returns the primaries that an object concerns. Unless given, these are the ones that `primaryToSecondary` names the object for, or
   * else those in the object's owner references and in the annotations that the runtime writes.
   */
  readonly mapper?: ContextualMapper<Resource>;
  /** Returns the objects that a primary refers to, where the objects themselves do not tell whose they are. */
  readonly primaryToSecondary?: PrimaryToSecondaryMapper<Primary>;
  /** Those that the controller watches, unless given; they change with those of the controller. */
  readonly namespaces?: "sameAsController" | "all" | readonly string[];
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** A hash range of the objects (ShardedListAndWatch, an alpha feature of Kubernetes 1.36). */
  readonly shardSelector?: string;
  /** Another cluster; owner references mean nothing there, so it needs a mapper. */
  readonly connection?: Connection | ConnectionOptions;
  readonly filters?: EventFilters<Resource>;
  /** Finds objects by the values that these functions return, through `byIndex`. */
  readonly indexes?: { readonly [name: string]: (resource: Resource) => readonly string[] };
  /** `metadata`: the server sends, and the cache keeps, the metadata alone. */
  readonly form?: "full" | "metadata" | { readonly paths: readonly string[] };
  /** False for kinds whose versions cannot be compared: own writes are not known before the watch brings them, and come as events. */
  readonly comparesVersions?: boolean;
  /** `first`: known before the other sources are started. */
  readonly startPriority?: "first" | "default";
}

/** An event source of one kind of Kubernetes. */
export interface InformerSource<Resource extends KubernetesObject> extends EventSource<Resource> {
  readonly view: ResourceView;
  get(key: ObjectKey): Resource | undefined;
  /** Returns the objects for which an index function of the source gave `value`. */
  byIndex(index: string, value: string): readonly Resource[];
  /** Returns the objects of a namespace, or of all, that fulfil a condition. */
  list(options?: {
    readonly namespace?: string;
    readonly where?: (resource: Resource) => boolean;
  }): readonly Resource[];
}

/**
 * Creates an event source that watches one kind (JOSDK InformerEventSource).
 *
 * All controllers of an operator that watch the same objects share one watch and one cache.
 */
export function informerSource<Resource extends KubernetesObject, Primary extends KubernetesObject = KubernetesObject>(
  options: InformerSourceOptions<Resource, Primary>,
): InformerSource<Resource> {
  const { name, resource, mapper, primaryToSecondary, namespaces = "sameAsController", startPriority } = options;
  const { labelSelector, fieldSelector, shardSelector, comparesVersions, filters, indexes } = options;
  const connection = options.connection === undefined ? undefined : connectionOf(options.connection);
  if (connection !== undefined && mapper === undefined && primaryToSecondary === undefined)
    throw new Error(
      `event source "${name}" watches ${resource.definition.plural} in another cluster, where owner references mean nothing: give it a ` +
        "mapper, such as byLabel or byAnnotation",
    );
  const request = {
    definition: resource.definition,
    labelSelector,
    fieldSelector,
    shardSelector,
    comparesVersions,
    connection,
    isMetadataOnly: options.form === "metadata",
  };
  // A view holds what the definition says, so the types of the options are those of its objects.
  const source = new ViewSource({
    name,
    request,
    namespaces,
    mapper,
    primaryToSecondary,
    filters,
    indexes,
    startPriority,
  } as ViewSourceOptions);
  return source as unknown as InformerSource<Resource>;
}

function connectionOf(connection: Connection | ConnectionOptions): Connection {
  return "credentials" in connection ? connection : createConnection(connection);
}
