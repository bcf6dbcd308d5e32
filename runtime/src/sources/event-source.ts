// What every event source is, whoever wrote it: it knows secondary resources, and which primaries they concern.
import type { SourceHealth } from "../base/activity.js";
import type { SecondaryCause } from "../base/reconcile-reason.js";
import type { Clock } from "../base/clock.js";
import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import type { ProofKey } from "../base/proof-key.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { ApiClient } from "../client/api-client.js";
import type { ResourceChange } from "../cache/resource-change.js";
import type { ResourceView } from "../cache/resource-view.js";
import type { SharedInformers } from "../watch/informer-pool.js";

/** The primaries of a controller as its cache knows them, to read and to index. */
export type IndexedPrimaries = Pick<
  ResourceView,
  "get" | "has" | "keys" | "list" | "keysByIndex" | "byIndex" | "indexFor" | "addIndex" | "removeIndex"
>;

/** What an event source is started with. */
export interface EventSourceContext {
  /** The name of the controller. */
  readonly controller: string;
  readonly primary: ResourceDefinition;
  readonly primaries: IndexedPrimaries;
  /** The namespaces that the controller watches; all of them if absent. */
  readonly namespaces: readonly string[] | undefined;
  /** Whether the controller reconciles deleted primaries, too (JOSDK triggerReconcilerOnAllEvents). */
  readonly onAllEvents?: boolean;
  readonly fieldManager: string;
  /** Returns the key that proves links, once it is loaded. */
  proofKey?(): ProofKey | undefined;
  readonly client: ApiClient;
  /** The watches that all controllers of the operator share. */
  readonly informers: SharedInformers;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Returns what is known now of the dependents and the event sources of a primary, by name. */
  secondaryOf?(primary: KubernetesObject): object;
  /** As `secondaryOf`, also while a part of it is unknown, and missing. */
  knownSecondaryOf?(primary: KubernetesObject): object;
  /** Takes that something changed that belongs to these primaries, whether or not they are reconciled for it. */
  noteSecondaries?(primaries: Iterable<ObjectKey>): void;
  /** Asks for these primaries to be reconciled. */
  notify(primaries: Iterable<ObjectKey>, cause?: SecondaryCause): void;
}

/** Decides whether an event source runs for a primary; `crdPresent` and its negation are such conditions. */
export type SourceCondition = (args: never) => unknown;

/**
 * Brings events from somewhere (JOSDK's EventSource). It may be started again after it was stopped, and belongs to one controller at a time.
 * What its functions throw makes it unhealthy and never ends the operator.
 */
export interface EventSource<Resource = unknown> {
  /** Unique in its controller. */
  readonly name: string;
  /** The kind of its resources, or the user's own name for a type that Kubernetes does not have; absent if it has none. */
  readonly type?: ResourceDefinition | string | undefined;
  /** `first`: started, and awaited, before the others (JOSDK RESOURCE_STATE_LOADER). */
  readonly startPriority?: "first" | "default";
  /** Evaluated before each reconcile of a primary: the source runs while it is met for some primary. Default: it always runs. */
  readonly activationCondition?: SourceCondition | undefined;
  /** Whether it is started only when this replica leads, as what polls is. Default: every replica starts it, and knows what it knows. */
  readonly startsWhenLeading?: boolean;
  readonly health: SourceHealth;
  /** The client of the cluster that it watches, where that is another one than the operator's. */
  readonly client?: ApiClient | undefined;
  /** Starts; resolves when the state is known. */
  start(context: EventSourceContext): Promise<void>;
  /** Stops; what is known may be forgotten. */
  stop(): Promise<void>;
  /** The resources that belong to a primary, as far as they are known; those of the runtime's sources are sorted by key or id. */
  secondariesOf(primary: KubernetesObject): readonly Resource[];
  /** The resource of this key, whomever it belongs to. */
  get?(key: ObjectKey): Resource | undefined;
  /** Fetches what is not known yet of a primary, so that `secondariesOf` can answer, before every reconcile of it, which fails if it throws. */
  load?(primary: KubernetesObject, signal: AbortSignal): Promise<void>;
  /** Called at the end of a reconcile: what was fetched for it may be evicted. */
  release?(primary: ObjectKey): void;
  /**
   * Called for every change of a primary, before any filter (JOSDK ResourceEventAware). The `madeFor` of a change that its own reconcile
   * made is its `key`: to notify the primary of it would go on for ever. One that is not watched any more, because the namespaces changed,
   * counts as deleted, and so does, once more, one whose last reconcile ends after its deletion.
   */
  onPrimaryChange?(change: ResourceChange): void;
  /** Follows a change of the controller's namespaces; resolves when the new state is known. */
  setNamespaces?(namespaces: readonly string[] | undefined): Promise<void>;
}

/** Takes the events of the sources, from their start to their stop. */
export interface SourcesListener {
  /** Told of the changes of primaries that are not the controller's own, after the sources: what these know is there in the reconcile. */
  onPrimaryChange(change: ResourceChange): void;
  /** Told of the primaries that are gone: deleted, or not watched any more. */
  forget(primary: ObjectKey): void;
  onSecondaryChange(primaries: Iterable<ObjectKey>, cause: SecondaryCause & { readonly source: string }): void;
  /** Told of the changes of objects in the cluster of the operator that have a write of its field managers, and of their primaries. */
  onWritten?(
    change: ResourceChange,
    about: { readonly definition: ResourceDefinition; readonly primaries: Iterable<ObjectKey> },
  ): void;
  secondaryOf?(primary: KubernetesObject): object;
  /** Called each time objects become known that were not: primaries may have waited for them. */
  onKnown?(): void;
}
