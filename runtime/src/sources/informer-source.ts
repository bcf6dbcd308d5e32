import type { Defined, KubernetesObject, ObjectKey, ObjectRef, ResourceReader } from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import { checkCounts, checkFunctions, checkNamespaces, describe } from "../base/validation.js";
import { compileProjection } from "../cache/projection.js";
import type { EventFilters } from "../cache/resource-view.js";
import { type Connection, type ConnectionOptions, createConnection } from "../client/connection.js";
import type { InformerRequest } from "../watch/shared-informers.js";
import type { EventSource, SourceCondition } from "./event-source.js";
import { KindSource, type KindSourceOptions } from "./kind-source.js";
import type { ContextualMapper, PrimaryToSecondaryMapper } from "./mappers.js";

/** Options of `informerSource`: what to watch, and how to map objects to primaries. */
export interface InformerSourceOptions<
  Resource extends KubernetesObject,
  Primary extends KubernetesObject = KubernetesObject,
> extends Pick<InformerRequest, "fieldSelector" | "labelSelector" | "shardSelector"> {
  /** Unique in its controller. */
  readonly name: string;
  /** The kind: a generated class, or the result of `untypedResource`. */
  readonly resource: Defined<Resource>;
  /** Returns the primaries to reconcile when an object changes. Default: the primaries that name it in `primaryToSecondary`, otherwise `byAnyLink` */
  readonly mapper?: ContextualMapper<Resource, Primary> | undefined;
  /** Returns the objects that a primary refers to. Use it if the objects themselves do not identify the primary. */
  readonly primaryToSecondary?: PrimaryToSecondaryMapper<Primary, never> | undefined;
  /** The namespaces to watch. Default: those of the controller, including later changes */
  readonly namespaces?: "sameAsController" | "all" | "current" | readonly string[] | undefined;
  /** The connection to another cluster. Owner references do not work across clusters, so the source requires a mapper. */
  readonly connection?: Connection | ConnectionOptions;
  readonly filters?: EventFilters<Resource> | undefined;
  /** Index functions for `byIndex`, by the name of the index. */
  readonly indexes?: { readonly [name: string]: (resource: Resource) => readonly string[] } | undefined;
  /**
   * With `metadata`, the API server sends, and the cache keeps, only metadata. With paths such as `spec.containers[].image` or
   * `metadata.labels["example.com/app"]`, the cache keeps the values at these paths and the metadata; if any path is within the metadata, only these
   * values, the identity, and the owner references are kept of the metadata. A partial object cannot be written.
   *
   * @example informerSource({ name: "pods", resource: Pod, cache: { paths: ["status.phase"] } })
   */
  readonly cache?: "full" | "metadata" | { readonly paths: readonly string[] };
  /**
   * The number of complete objects to keep per watched namespace (or in total for all namespaces), in addition to those used by reconciles in
   * progress. All others are evicted and read again before a reconcile of their primary; until then lookups do not find them, and their events have
   * no old state. Such a watch is not shared.
   */
  readonly maxCachedObjects?: number;
  /**
   * Set to false for kinds whose resourceVersions cannot be compared. An own write is then only known when the watch delivers it, and causes an
   * event. Default: true
   *
   * @example comparesVersions: false
   */
  readonly comparesVersions?: boolean;
  /**
   * With `first`, the user's other sources start after this one has synced. Default: `default`
   *
   * @example startPriority: "first"
   */
  readonly startPriority?: "first" | "default";
  /**
   * Evaluated before each reconcile of a primary. The source watches while the condition is met for any primary, and has no objects otherwise.
   * Default: it always watches; if the API server does not serve the kind, the source has no objects and reports that in its health
   *
   * @example informerSource({ name: "routes", resource: Route, activationCondition: crdPresent })
   */
  readonly activationCondition?: SourceCondition | undefined;
}

/** An event source for the objects of one kind. */
export interface InformerSource<Resource extends KubernetesObject>
  extends EventSource<Resource>, ResourceReader<Resource> {
  get(ref: ObjectRef | ObjectKey): Resource | undefined;
  /** Returns the matching objects of a namespace, or of all namespaces, sorted by key, without evicted ones. */
  list(options?: {
    readonly namespace?: string;
    readonly where?: (resource: Resource) => boolean;
  }): readonly Resource[];
}

/** Creates an event source that watches one kind (JOSDK's InformerEventSource). Identical watches in an operator share an informer and its cache. */
export function informerSource<Resource extends KubernetesObject, Primary extends KubernetesObject = KubernetesObject>(
  options: InformerSourceOptions<Resource, Primary>,
): InformerSource<Resource> {
  const { resource, cache: kept = "full", connection: cluster, ...rest } = options;
  const { name, mapper, primaryToSecondary, namespaces, filters, indexes, startPriority, ...others } = rest;
  const { activationCondition, ...selected } = others;
  const owner = `event source "${name}"`;
  checkStorage(owner, options);
  if (typeof namespaces !== "string") checkNamespaces(owner, namespaces);
  checkFunctions(owner, { mapper, primaryToSecondary, activationCondition });
  const definition = (resource as Partial<Defined<Resource>> | undefined)?.definition;
  if (definition === undefined)
    throw new TypeError(`${owner} has no resource; give it a generated class, or what untypedResource returns`);
  const connection = cluster && ("credentials" in cluster ? cluster : createConnection(cluster));
  if (connection !== undefined && mapper === undefined && primaryToSecondary === undefined)
    throw new Error(
      `${owner} watches ${definition.plural} in another cluster, where owner references do not apply; give it a ` +
        "mapper, such as byLabel or byAnnotation",
    );
  const isMetadataOnly = kept === "metadata";
  const projection = typeof kept === "object" ? kept.paths : undefined;
  const request = { ...selected, definition, connection, isMetadataOnly, projection };
  const untyped = {
    name,
    request,
    namespaces,
    mapper,
    primaryToSecondary,
    filters,
    indexes,
    startPriority,
    activationCondition,
  };
  // The view contains objects of the definition, which the options are typed for.
  return new KindSource(untyped as KindSourceOptions) as unknown as InformerSource<Resource>;
}

type Storage = Pick<InformerSourceOptions<KubernetesObject>, "cache" | "comparesVersions" | "maxCachedObjects">;

function checkStorage(owner: string, { cache: kept = "full", comparesVersions, maxCachedObjects }: Storage): void {
  if (typeof kept !== "object" && kept !== "full" && kept !== "metadata")
    throw new TypeError(
      `${owner} has ${describe(kept)} for cache; it needs "full", "metadata" or an object with paths`,
    );
  if (typeof kept === "object")
    try {
      compileProjection(kept.paths);
    } catch (error) {
      throw new Error(`the cache of ${owner} is wrong: ${messageOf(error)}`, { cause: error });
    }
  checkCounts(owner, { maxCachedObjects: [maxCachedObjects, 1] });
  if (maxCachedObjects !== undefined && comparesVersions === false)
    throw new Error(
      `${owner} cannot have maxCachedObjects: evicted objects are read again, and without comparable resourceVersions it is unknown ` +
        "whether the object read is newer than the one from the watch; remove maxCachedObjects",
    );
}
