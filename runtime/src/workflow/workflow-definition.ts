import type { KubernetesObject, ResourceDefinition, Unstored } from "../base/kubernetes-object.js";
import type { EventFilters } from "../cache/resource-view.js";
import type { ApiClient, DeleteOptions } from "../client/api-client.js";
import type { ExternalOrigin } from "../sources/dependent-sources.js";
import type { Context, LookupsOf } from "./context.js";

/**
 * Arguments of `desired` and the conditions of a dependent. Objects are frozen, like those in the cache. `Guarded` is the primary type, narrowed by
 * what conditions guarantee.
 */
export interface DependentArguments<Primary, Secondary, Guarded extends Primary = Primary> {
  readonly primary: Guarded;
  /** The live dependents by name; for a bulk dependent, its items by key. */
  readonly secondary: Secondary;
  /** The first matching overload wins: lookups of a class of which event sources cache only a part return the partial type. */
  readonly context: LookupsOf<Secondary> & Context<Primary>;
}

/** Arguments of a condition. */
export interface ConditionArguments<Primary, Secondary, Live = object> extends DependentArguments<Primary, Secondary> {
  readonly dependent: {
    readonly name: string;
    /** The kind; absent for an external dependent. */
    readonly definition?: ResourceDefinition;
    /** The client for its cluster; absent for an external dependent. */
    readonly client?: ApiClient;
  };
  /**
   * The live object or resource of the dependent. A postcondition of a bulk dependent gets that of the item; its other conditions get `undefined`.
   */
  readonly live: Live | undefined;
  /** The item key for a postcondition of a bulk dependent. Absent if there are no items. */
  readonly item?: string;
}

/**
 * Computes the desired object of a dependent, or the desired items of a bulk dependent by key. Called once per reconcile; called again if the live
 * object has changed in the meantime. `Guarded` is the primary type, narrowed by the conditions of the dependent.
 */
export type Desired<Primary, Secondary, Input, Guarded extends Primary = Primary> = (
  args: DependentArguments<Primary, Secondary, Guarded>,
) => Input | Promise<Input>;

/** The result of a condition. The workflow result contains the detail (JOSDK's DetailedCondition). */
export interface ConditionResult<Detail = unknown> {
  readonly isMet: boolean;
  readonly detail: Detail;
}

/**
 * Decides about a dependent. Evaluated once per run, or once per item for a postcondition of a bulk dependent; evaluated again if the live object has
 * changed in the meantime.
 */
export type Condition<Primary, Secondary, Detail = unknown, Live = object> = (
  args: ConditionArguments<Primary, Secondary, Live>,
) => boolean | ConditionResult<Detail> | Promise<boolean | ConditionResult<Detail>>;

/** Arguments of an `existing` condition: `live` is the object that was found. */
export interface ExistingArguments<Primary, Secondary, Live = object> extends ConditionArguments<
  Primary,
  Secondary,
  Live
> {
  readonly live: Live;
}

/** Decides whether a dependent adopts an existing object that belongs to no primary. */
export type ExistingCondition<Primary, Secondary, Live = object> = (
  args: ExistingArguments<Primary, Secondary, Live>,
) => boolean | ConditionResult | Promise<boolean | ConditionResult>;

/** The four conditions of a dependent, in the order of their evaluation. */
export interface Conditions {
  /** If false, the dependent counts as absent: it is neither watched nor deleted, and everything that depends on it is deleted. */
  readonly activationCondition?: Condition<never, never>;
  /** If false, the dependent and everything that depends on it are deleted. */
  readonly reconcilePrecondition?: Condition<never, never>;
  /** If false, everything that depends on it waits. */
  readonly readyPostcondition?: Condition<never, never>;
  /** If false after a deletion, its dependencies are not deleted yet. */
  readonly deletePostcondition?: Condition<never, never>;
}

/** Retries of a workflow step within one run. */
export interface StepRetry {
  /** Retries after the first failure; 0 for none. */
  readonly maxRetries: number;
  /** The wait before the first retry, in milliseconds. Default: 1,000 */
  readonly initialIntervalMs?: number;
  /** The factor by which each wait grows. Default: 1.5 */
  readonly multiplier?: number;
  /** The maximum wait, in milliseconds. Default: no limit */
  readonly maxIntervalMs?: number;
}

/** Options of a bulk dependent. */
export interface BulkOptions {
  /** The maximum number of items that are written concurrently. Default: 10 */
  readonly maxConcurrency?: number;
}

/**
 * A dependency that is only waited for if its conditions do not exclude it. While it is excluded, it is missing from `secondary` (`undefined`, or no
 * items of a bulk dependent), even before it is deleted. Deletions follow the order of the graph.
 */
export interface OptionalDependency<Name = string> {
  readonly name: Name;
  readonly optional: true;
}

/** Options common to all dependents of a workflow. */
export interface NodeDefinition extends Conditions {
  readonly name: string;
  /** Names of the dependent in earlier versions of the operator. Objects created under them belong to it. */
  readonly movedFrom?: readonly string[];
  /** The dependents that it waits for: names of those that it cannot exist without, or optional ones. */
  readonly dependsOn: readonly (string | OptionalDependency)[];
  /** Bulk dependents of which each item only waits for the item with the same key. Items are deleted before the items that they depend on. */
  readonly itemsDependOn?: readonly string[];
  /** Makes it a bulk dependent: `desired` returns any number of objects by key, and all others are deleted. */
  readonly bulk?: BulkOptions;
  /**
   * The timeout of its step in one run, including retries, in milliseconds. For a bulk dependent, it applies separately to `desired` with the
   * preceding conditions, and to each item. Default: no timeout besides that of the reconcile
   */
  readonly timeoutMs?: number;
  /** Retries a failed step before it counts as failed. Default: no retry */
  readonly retry?: StepRetry;
}

/** Reports whether the live object equals the desired one, instead of the built-in matcher. Both are complete objects. */
export type DependentMatcher<Resource extends KubernetesObject = never> = (
  desired: Unstored<Resource>,
  live: Resource,
  context: Context,
) => boolean | Promise<boolean>;

/** Arguments of a custom `create` function. */
export interface CreateArguments<Primary, Secondary, Input> extends DependentArguments<Primary, Secondary> {
  readonly desired: Input;
  /** Creates the object as the runtime does. If it is not called, the dependent waits until the object exists. */
  next(): Promise<void>;
}

/** Arguments of a custom `update` function. */
export interface UpdateArguments<Primary, Secondary, Input, Live> extends DependentArguments<Primary, Secondary> {
  readonly desired: Input;
  readonly live: Live;
  /** Updates the object as the runtime does, unless it is up to date. */
  next(): Promise<void>;
}

/** Arguments of a custom `delete` function. */
export interface DeleteArguments<Primary, Secondary, Live> extends DependentArguments<Primary, Secondary> {
  readonly live: Live;
  /**
   * Deletes the object as the runtime does, unless it was recreated. If it is not called, the object stays. Default: the API server's propagation
   * policy
   */
  next(options?: Pick<DeleteOptions, "propagationPolicy">): Promise<void>;
}

/**
 * Custom functions that replace the built-in operations on the object of a dependent, or on each item. `false` disables an operation.
 *
 * Functions may be called repeatedly for the same object, so they must be idempotent.
 */
export interface Operations<Primary = never, Secondary = never, Input = never, Live = never, Known = Secondary> {
  /** Called if the object does not exist. `false`: another client creates it, and the dependent waits for it. */
  readonly create?: false | ((args: CreateArguments<Primary, Secondary, Input>) => void | Promise<void>);
  /** Called if the object exists; with a `matcher`, only if it differs. `false`: the object is not updated. */
  readonly update?: false | ((args: UpdateArguments<Primary, Secondary, Input, Live>) => void | Promise<void>);
  /**
   * Called if the object must not exist, unless the garbage collector deletes it. `false`: the object stays. While the primary is being deleted,
   * dependencies of the dependent may have been deleted already, so any member of `secondary` may be missing.
   */
  readonly delete?: false | ((args: DeleteArguments<Primary, Known, Live>) => void | Promise<void>);
}

/**
 * The name of an object that another client creates. The functions must only depend on the primary: an index over their results maps an object to its
 * primaries.
 */
export interface ObjectReference<Primary = never> {
  /** Returns the name; without a name the dependent must not exist. A string is the name for all primaries, and limits the watch to this object. */
  readonly name: string | ((args: { readonly primary: Primary }) => string | undefined);
  /** Returns the namespace, which may be any in the cluster. A string limits the watch to this namespace. Default: the namespace of the primary */
  readonly namespace?: string | ((args: { readonly primary: Primary }) => string | undefined);
}

/** A dependent that is a Kubernetes object, or a set of them. */
export interface KubernetesDependent extends NodeDefinition {
  readonly resource: ResourceDefinition;
  /**
   * `managed` creates, updates, and deletes the object. `createOnly` does not update it. `readOnly` waits for an object that another client creates,
   * and has no `desired`. `once` creates the object once per primary (by UID), and not again after its deletion, for example a Job; its readiness is
   * then that of its last state. Default: `managed`
   */
  readonly mode?: "managed" | "createOnly" | "readOnly" | "once";
  /**
   * With `mode: "once"`, the object is recreated when this value changes, after the previous one has ended. Derive it from the primary, never from
   * the operator: a new operator version would run all Jobs again. Default: the object is never recreated
   *
   * @example again: ({ primary }) => primary.spec.version
   */
  readonly again?: (args: { readonly primary: never }) => string | number | boolean | undefined;
  /** Absent if it is read-only. */
  readonly desired?: Desired<never, never, object>;
  /** Identifies a read-only object by name, instead of an event source. */
  readonly ref?: ObjectReference;
  /** Default: the namespace of the primary */
  readonly namespace?: string;
  /** The name of another cluster that is configured for the operator. Default: the operator's own cluster */
  readonly cluster?: string;
  /** The name of a controller's event source that provides the objects, instead of a watch for the dependent. */
  readonly eventSource?: string;
  /** Limits the watch to objects with these labels, which `desired` has to set. */
  readonly labelSelector?: string;
  /** Limits the watch to objects with these fields. */
  readonly fieldSelector?: string;
  /** Which events of the object cause a reconcile. Default: all */
  readonly filters?: EventFilters<never>;
  /**
   * What happens to the object when the primary is deleted. `garbageCollected`: the garbage collector deletes it because of its owner reference.
   * `ordered`: the runtime deletes it before the primary, in reverse order of the graph. `orphan`: the runtime releases it before the primary is
   * deleted, and also if it must not exist while the primary does. Default: `garbageCollected`; in another cluster, where owner references do not
   * work, `ordered`
   */
  readonly deletion?: Deletion;
  /**
   * What to do if an object with the name already exists and does not belong to this primary: `adopt` makes it the dependent's object, `refuse`
   * fails. A condition gets the object as `live`, and adopts it if it is met. Default: `refuse`
   *
   * @example existing: ({ live }) => live?.metadata.annotations?.["example.com/adopt"] === "true"
   */
  readonly existing?: "refuse" | "adopt" | Condition<never, never>;
  /**
   * Keeps the object until its primary is cleaned up, by a finalizer: for example a Secret that the `delete` function of another dependent needs.
   * Otherwise a foreground deletion of the primary, or the deletion of the namespace, would delete the object earlier. Default: false
   */
  readonly heldForCleanup?: boolean;
  /**
   * What to do if the API server rejects a write because a field of the object is immutable, such as the template of a Job: `fail` reports the
   * fields, `recreate` deletes the object and creates it again. The Pods of a StatefulSet stay and are adopted; other objects that it owns are
   * deleted with it. Not available for PersistentVolumeClaims and other kinds whose deletion loses data, or if `desired` reads the live object.
   * Default: `fail`, because a deletion cannot be undone
   *
   * @example onImmutable: "recreate"
   */
  readonly onImmutable?: "fail" | "recreate";
  /** Whether to use server-side apply. If false, the object is written by POST and PUT. Default: true */
  readonly serverSideApply?: boolean;
  /** Default: the field manager of the controller */
  readonly fieldManager?: string;
  /**
   * Fields that another controller manages from now on, and that `desired` no longer sets. They keep their values; otherwise an apply would remove
   * fields that it set before, and defaults would replace them. Each is a path such as `spec.replicas`.
   *
   * @example
   * // A HorizontalPodAutoscaler scales the Deployment from now on, and starts with the replicas that it has.
   * released: ["spec.replicas"]
   */
  readonly released?: readonly string[];
  readonly matcher?: DependentMatcher;
  /** Custom functions that replace built-in operations. */
  readonly operations?: Operations;
}

/** Arguments of the functions of an external dependent, besides desired and live resources. */
export interface ExternalArguments<
  Primary = never,
  Secondary = never,
  State extends KeptState = string,
> extends DependentArguments<Primary, Secondary> {
  /** The state that was stored when the resource was created. */
  readonly state?: State | undefined;
  /**
   * An idempotency key for services that support one: the same in every attempt to create a resource, even after a restart. It has the form of a
   * UUID, and is derived from the UID of the primary, the dependent, the item, and the ID of the previous resource.
   */
  readonly token: string;
}

/** The stored state of an external resource: its ID or, with `stateOf`, an object that contains it. */
export type KeptState = string | { readonly id: string };

/** Where the state is stored: at a path in the status of the primary, such as `["databaseId"]`, or in objects. */
export type ExternalState = { readonly kind: "status"; readonly path: readonly string[] } | ObjectState;

/**
 * Stores states in objects that the primary owns: a ConfigMap, a Secret, or an object of a custom kind with the states at `path`. The items of a bulk
 * dependent share an object, unless each has its own (`perItem`).
 */
export type ObjectState<Kind = ResourceDefinition> = { readonly perItem?: boolean } & (
  | { readonly kind: "configMap" | "secret" }
  | { readonly kind: "resource"; readonly resource: Kind; readonly path: readonly string[] }
);

/** A dependent outside Kubernetes, such as a row in a database, or a set of them. See `ExternalOptions` for its functions. */
export interface ExternalDependent extends NodeDefinition {
  readonly source: ExternalOrigin;
  /** Absent if it is read-only. */
  readonly desired?: Desired<never, never, unknown>;
  readonly state?: ExternalState | undefined;
  readonly onDeleteFailure?: "block" | "release";
  readonly creationGraceMs?: number | undefined;
  idOf?(resource: unknown): string;
  stateOf?(resource: unknown): KeptState;
  isOwn?(resource: unknown, primary: KubernetesObject): boolean;
  create?(desired: unknown, args: object): unknown;
  update?(desired: unknown, live: unknown, args: object): unknown;
  delete?(live: unknown, args: object): unknown;
  matches?(desired: unknown, live: unknown): boolean;
}

/** A dependent of a workflow. */
export type DependentDefinition = KubernetesDependent | ExternalDependent;

/** A kind in the cluster of the primaries, or in another cluster given by name. */
export interface KindInCluster {
  readonly resource: ResourceDefinition;
  readonly cluster?: string | undefined;
}

/** Reports whether a dependent has a name now, or had it in an earlier version. */
export function hasName({ name, movedFrom }: Pick<NodeDefinition, "name" | "movedFrom">, wanted?: string): boolean {
  return wanted !== undefined && (wanted === name || movedFrom?.includes(wanted) === true);
}

/** Reports whether a dependent is a Kubernetes object. */
export function isKubernetes(dependent: DependentDefinition): dependent is KubernetesDependent {
  return "resource" in dependent;
}

// Deleting objects of these kinds loses data, or all objects in them.
const DATA_KINDS: ReadonlySet<string> = new Set([
  "/Namespace",
  "/PersistentVolume",
  "/PersistentVolumeClaim",
  "apiextensions.k8s.io/CustomResourceDefinition",
  "snapshot.storage.k8s.io/VolumeSnapshot",
  "snapshot.storage.k8s.io/VolumeSnapshotContent",
]);

/** Reports whether deleting an object of a kind loses data, so that it is never deleted to recreate it. */
export function ownsData({ group, kind }: Pick<ResourceDefinition, "group" | "kind">): boolean {
  return DATA_KINDS.has(`${group}/${kind}`);
}

/** What happens to objects: the garbage collector deletes them, the runtime deletes them in the order of the graph, or the runtime releases them. */
export type Deletion = "garbageCollected" | "ordered" | "orphan";

/** Returns the deletion policy of a dependent, or its default. */
export function deletionOf({ deletion, cluster }: Pick<KubernetesDependent, "deletion" | "cluster">): Deletion {
  return deletion ?? (cluster === undefined ? "garbageCollected" : "ordered");
}

/**
 * Reports whether a dependent has to be cleaned up before its primary is deleted. Garbage-collected and read-only objects do not, unless they are
 * held; orphaned ones have to be released.
 */
export function needsCleanup(dependent: DependentDefinition): boolean {
  return isHeldForCleanup(dependent) || isDeletedByOperator(dependent);
}

/** Reports whether objects of a dependent are held for the cleanup of their primary. */
export function isHeldForCleanup(dependent: DependentDefinition): boolean {
  return isKubernetes(dependent) && dependent.heldForCleanup === true;
}

/** Reports whether the operator deletes or releases the objects of a dependent before its primary is deleted. */
export function isDeletedByOperator(dependent: DependentDefinition): boolean {
  if (!isKubernetes(dependent)) return dependent.delete !== undefined;
  const { mode, operations } = dependent;
  return mode !== "readOnly" && operations?.delete !== false && deletionOf(dependent) !== "garbageCollected";
}

/** What happens to the objects of a dependent that was removed from the workflow. */
export interface RemovedDependent {
  readonly resource: ResourceDefinition;
  /**
   * `garbageCollected` keeps them until the primary is deleted, `ordered` deletes them now, and `orphan` releases them now, so that they outlive the
   * primary.
   */
  readonly deletion: Deletion;
  /** Their namespace, if the dependent had a namespace that the controller does not watch. */
  readonly namespace?: string;
  /** The name of their cluster, if it is not the operator's cluster. */
  readonly cluster?: string;
}

/** A primary kind and its dependents, in an order in which they can be created. */
export interface WorkflowDefinition {
  readonly primary: ResourceDefinition;
  readonly dependents: readonly DependentDefinition[];
  /**
   * With `implicit`, the runtime runs the workflow before the reconciler. With `explicit`, the reconciler runs it through `context.workflow`; the
   * cleanup is implicit if the reconciler has no `cleanup`. Default: `implicit`
   */
  readonly invocation?: "implicit" | "explicit";
  /**
   * What to do with errors of dependents: `throw` fails the reconcile with a WorkflowError after the run, `result` only reports them in the result. A
   * failed cleanup is retried in either case. Default: `throw`
   */
  readonly exceptions?: "throw" | "result";
  /** The maximum number of concurrent steps, for all primaries together. Default: 50 */
  readonly maxConcurrency?: number;
  /** Whether to prune all objects that no dependent claims. If false, only objects of dependents in `removed` are deleted. Default: true */
  readonly pruning?: boolean;
  /** Dependents of earlier versions, by their former names. Their kinds are watched while they are listed here. */
  readonly removed?: { readonly [name: string]: RemovedDependent };
}
