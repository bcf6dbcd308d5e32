import type { KubernetesObject, ResourceDefinition, Unstored } from "../base/kubernetes-object.js";
import type { EventFilters } from "../cache/resource-view.js";
import type { ApiClient, DeleteOptions } from "../client/api-client.js";
import type { ExternalOrigin } from "../sources/dependent-sources.js";
import type { Context, LookupsOf } from "./context.js";

/**
 * What `desired` and the conditions of a dependent are called with; the objects are frozen, as those of the cache. `Guarded` is the primary
 * with what conditions guarantee of it.
 */
export interface DependentArguments<Primary, Secondary, Guarded extends Primary = Primary> {
  readonly primary: Guarded;
  /** The live dependents by name; of a bulk dependent its items by their keys. */
  readonly secondary: Secondary;
  /** The first method that fits a call wins: a lookup of a class of which event sources keep less than whole objects gives what is kept. */
  readonly context: LookupsOf<Secondary> & Context<Primary>;
}

/** What a condition is called with. */
export interface ConditionArguments<Primary, Secondary, Live = object> extends DependentArguments<Primary, Secondary> {
  readonly dependent: {
    readonly name: string;
    /** The kind; absent for an external dependent. */
    readonly definition?: ResourceDefinition;
    /** The client of its cluster; absent for an external dependent. */
    readonly client?: ApiClient;
  };
  /** The live object or resource of the dependent. A postcondition of a bulk dependent gets that of the item; its other conditions get `undefined`. */
  readonly live: Live | undefined;
  /** The key of the item that a postcondition of a bulk dependent is asked about. Absent if there are no items. */
  readonly item?: string;
}

/**
 * Computes what a dependent should be, or the items of a bulk dependent by their keys; called at most once for each reconcile. `Guarded` is the
 * primary as the conditions of the dependent let it pass.
 */
export type Desired<Primary, Secondary, Input, Guarded extends Primary = Primary> = (
  args: DependentArguments<Primary, Secondary, Guarded>,
) => Input | Promise<Input>;

/** What a condition found; the result of the workflow has the detail (JOSDK DetailedCondition). */
export interface ConditionResult<Detail = unknown> {
  readonly isMet: boolean;
  readonly detail: Detail;
}

/** Decides about a dependent; called at most once for each reconcile, a postcondition of a bulk dependent once for each item. */
export type Condition<Primary, Secondary, Detail = unknown, Live = object> = (
  args: ConditionArguments<Primary, Secondary, Live>,
) => boolean | ConditionResult<Detail> | Promise<boolean | ConditionResult<Detail>>;

/** What the condition `existing` is called with: `live` is the object that was found. */
export interface ExistingArguments<Primary, Secondary, Live = object> extends ConditionArguments<
  Primary,
  Secondary,
  Live
> {
  readonly live: Live;
}

/** Decides whether a dependent adopts an object that already exists and belongs to no primary. */
export type ExistingCondition<Primary, Secondary, Live = object> = (
  args: ExistingArguments<Primary, Secondary, Live>,
) => boolean | ConditionResult | Promise<boolean | ConditionResult>;

/** The four conditions of a dependent, in the order in which a reconcile asks them. */
export interface Conditions {
  /** False: the dependent counts as absent, is not watched and not deleted; what depends on it is deleted. */
  readonly activationCondition?: Condition<never, never>;
  /** False: the dependent and all that depends on it are deleted. */
  readonly reconcilePrecondition?: Condition<never, never>;
  /** False: what depends on it waits. */
  readonly readyPostcondition?: Condition<never, never>;
  /** False after a deletion: what it depends on is not deleted yet. */
  readonly deletePostcondition?: Condition<never, never>;
}

/** How a step of a workflow is retried within one run. */
export interface StepRetry {
  /** Retries after the first failure. 0: none */
  readonly maxRetries: number;
  /** The wait before the first retry. Default: 1,000 */
  readonly initialIntervalMs?: number;
  /** How much longer each wait is than the one before. Default: 1.5 */
  readonly multiplier?: number;
  /** The longest wait. Default: no limit */
  readonly maxIntervalMs?: number;
}

/** How the items of a bulk dependent are written. */
export interface BulkOptions {
  /** How many items are written at once. Default: 10 */
  readonly maxConcurrency?: number;
}

/**
 * A dependency that is waited for only if its conditions do not exclude it. While it is not wanted, `secondary` has `undefined` for it, also
 * before it is deleted. A deletion keeps the order of the graph.
 */
export interface OptionalDependency<Name = string> {
  readonly name: Name;
  readonly optional: true;
}

/** What every dependent of a workflow has. */
export interface NodeDefinition extends Conditions {
  readonly name: string;
  /** The names that it had in earlier versions of the operator: what was made under them is its own. */
  readonly movedFrom?: readonly string[];
  /** The dependents that it waits for, by their names if it cannot exist without them. */
  readonly dependsOn: readonly (string | OptionalDependency)[];
  /** Bulk dependents of which an item waits for the item of the same key only; its deletion goes before theirs. */
  readonly itemsDependOn?: readonly string[];
  /** Makes it a bulk dependent: `desired` returns any number of objects by key, and what is not among them is deleted. */
  readonly bulk?: BulkOptions;
  /**
   * How long its step may take in one run, retries included; of a bulk dependent `desired` with the conditions before it, and each item.
   * Default: as long as the reconcile
   */
  readonly timeoutMs?: number;
  /** Retries a failed step before the run counts it as failed. Default: no retry */
  readonly retry?: StepRetry;
}

/** Tells whether the live object is as desired, in place of the matcher of the runtime; both are complete objects. */
export type DependentMatcher<Resource extends KubernetesObject = never> = (
  desired: Unstored<Resource>,
  live: Resource,
  context: Context,
) => boolean | Promise<boolean>;

/** What the own `create` of a dependent is called with. */
export interface CreateArguments<Primary, Secondary, Input> extends DependentArguments<Primary, Secondary> {
  readonly desired: Input;
  /** Creates the object as the runtime does. A dependent that is not created is waited for. */
  next(): Promise<void>;
}

/** What the own `update` of a dependent is called with. */
export interface UpdateArguments<Primary, Secondary, Input, Live> extends DependentArguments<Primary, Secondary> {
  readonly desired: Input;
  readonly live: Live;
  /** Makes the object as desired if it is not, as the runtime does. */
  next(): Promise<void>;
}

/** What the own `delete` of a dependent is called with. */
export interface DeleteArguments<Primary, Secondary, Live> extends DependentArguments<Primary, Secondary> {
  readonly live: Live;
  /** Deletes the object as the runtime does, unless it was created anew. Without a call it is left. Default: the policy of the API server */
  next(options?: Pick<DeleteOptions, "propagationPolicy">): Promise<void>;
}

/**
 * What stands in the place of what the runtime does with the object of a dependent, or with each item. `false`: it is never done.
 *
 * The functions may be called again for the same object: they must be idempotent.
 */
export interface Operations<Primary = never, Secondary = never, Input = never, Live = never, Known = Secondary> {
  /** Called when there is no object. `false`: somebody else creates it, and it is waited for. */
  readonly create?: false | ((args: CreateArguments<Primary, Secondary, Input>) => void | Promise<void>);
  /** Called when there is an object; with a `matcher` only if it differs. `false`: it is left as it is. */
  readonly update?: false | ((args: UpdateArguments<Primary, Secondary, Input, Live>) => void | Promise<void>);
  /**
   * Called when the object must not exist, unless the garbage collector deletes it. `false`: it is left. Whatever the dependent waits for may
   * be gone while the primary is being deleted, so any of it may be missing in `secondary`.
   */
  readonly delete?: false | ((args: DeleteArguments<Primary, Known, Live>) => void | Promise<void>);
}

/**
 * The name of an object that somebody else makes. The functions look at nothing but the primary: an index finds the primaries of an object
 * by what they return.
 */
export interface ObjectReference<Primary = never> {
  /** Returns the name; without one the dependent is not wanted. A text is the name for all primaries: then no other object is watched. */
  readonly name: string | ((args: { readonly primary: Primary }) => string | undefined);
  /** Returns the namespace, of any of the cluster. A text is the only namespace that is watched. Default: the namespace of the primary */
  readonly namespace?: string | ((args: { readonly primary: Primary }) => string | undefined);
}

/** A dependent that is an object of Kubernetes, or a set of them. */
export interface KubernetesDependent extends NodeDefinition {
  readonly resource: ResourceDefinition;
  /**
   * `managed` creates, updates and deletes the object; `createOnly` does not update it; `readOnly` waits for an object that somebody else
   * creates, and has no `desired`. `once` creates the object once for each primary, by its uid, and not again when it is gone: for a Job. Its
   * readiness is then that of its last state. Default: `managed`
   */
  readonly mode?: "managed" | "createOnly" | "readOnly" | "once";
  /**
   * With `mode: "once"`: the object is created again when this has another value, after the one before has ended. A value of the primary, never
   * one of the operator: a new version of the operator would run all Jobs again. Default: the object is never created again
   *
   * @example again: ({ primary }) => primary.spec.version
   */
  readonly again?: (args: { readonly primary: never }) => string | number | boolean | undefined;
  /** Absent if it is read-only. */
  readonly desired?: Desired<never, never, object>;
  /** Finds a read-only object by its name, in place of an event source. */
  readonly ref?: ObjectReference;
  /** Default: the namespace of the primary */
  readonly namespace?: string;
  /** The name of another cluster, of those that the operator is given. */
  readonly cluster?: string;
  /** The event source of the controller that knows the objects, in place of a watch of the dependent's own. */
  readonly eventSource?: string;
  /** Limits the watch to objects with these labels, which `desired` has to set. */
  readonly labelSelector?: string;
  /** Limits the watch to objects with these fields. */
  readonly fieldSelector?: string;
  /** Which events of the object cause a reconcile. Default: all */
  readonly filters?: EventFilters<never>;
  /**
   * What becomes of the object with its primary. `garbageCollected`: the garbage collector deletes it, by its owner reference. `ordered`: the
   * runtime deletes it before, in the order of the graph. `orphan`: the runtime unties it before, and also when it must not exist while the
   * primary lives. Default: `garbageCollected`; in another cluster, where no owner reference leads, `ordered`
   */
  readonly deletion?: Deletion;
  /**
   * What to do if an object with the name already exists and does not belong to this primary: `adopt` makes it the object of the dependent,
   * `refuse` fails. A condition decides by the object, which it gets as `live`, and adopts if it is met. Default: `refuse`
   *
   * @example existing: ({ live }) => live?.metadata.annotations?.["example.com/adopt"] === "true"
   */
  readonly existing?: "refuse" | "adopt" | Condition<never, never>;
  /**
   * Keeps the object until its primary is cleaned up, by a finalizer: for a Secret that the `delete` of another dependent needs, for example.
   * Foreground deletion of the primary, and deletion of the namespace, would delete the object before. Default: false
   */
  readonly heldForCleanup?: boolean;
  /**
   * What to do if the API server refuses a write because a field of the object is immutable, such as the template of a Job: `fail` reports the
   * fields, `recreate` deletes the object and creates it again. The Pods of a StatefulSet stay and are adopted; what other objects own goes with
   * them. Not for PersistentVolumeClaims and other kinds whose deletion loses data, nor if `desired` reads the live object.
   * Default: `fail`, as a deletion cannot be undone
   *
   * @example onImmutable: "recreate"
   */
  readonly onImmutable?: "fail" | "recreate";
  /** False: it is written by POST and PUT. Default: true */
  readonly serverSideApply?: boolean;
  /** Default: the field manager of the controller */
  readonly fieldManager?: string;
  /**
   * Fields that belong to another controller now, and that `desired` no longer states. They keep their value, where an apply would else remove
   * what it stated before, and a default would take its place. Each is a path of members, such as `spec.replicas`.
   *
   * @example
   * // A HorizontalPodAutoscaler scales the Deployment from now on, and starts with the replicas that it has.
   * released: ["spec.replicas"]
   */
  readonly released?: readonly string[];
  readonly matcher?: DependentMatcher;
  /** Own functions in place of those of the runtime. */
  readonly operations?: Operations;
}

/** What the functions of an external dependent are called with besides desired and live resources. */
export interface ExternalArguments<
  Primary = never,
  Secondary = never,
  State extends KeptState = string,
> extends DependentArguments<Primary, Secondary> {
  /** What was kept when the resource was created. */
  readonly state?: State | undefined;
  /**
   * The same in every attempt to create a resource, also after a restart: the idempotency key for services that have such. It has the form of a UUID,
   * and follows from the uid of the primary, the dependent, the item, and the id of the resource before.
   */
  readonly token: string;
}

/** What is kept of an external resource: its id, or with `stateOf` an object that has it. */
export type KeptState = string | { readonly id: string };

/** Where that is kept: at a path of the status of the primary, such as `["databaseId"]`, or in objects. */
export type ExternalState = { readonly kind: "status"; readonly path: readonly string[] } | ObjectState;

/**
 * States in objects beside the primary, which owns them: a ConfigMap, a Secret, or an object of a kind of the user's with the states at
 * `path`. The items of a bulk dependent share an object, unless each has one of its own (`perItem`).
 */
export type ObjectState<Kind = ResourceDefinition> = { readonly perItem?: boolean } & (
  | { readonly kind: "configMap" | "secret" }
  | { readonly kind: "resource"; readonly resource: Kind; readonly path: readonly string[] }
);

/** A dependent outside Kubernetes, such as a row in a database, or a set of them. `ExternalOptions` says what its functions are for. */
export interface ExternalDependent extends NodeDefinition {
  readonly source: ExternalOrigin;
  /** Absent if it is only read. */
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

/** One dependent of a workflow. */
export type DependentDefinition = KubernetesDependent | ExternalDependent;

/** A kind of objects in the cluster of the primaries, or in another one by its name. */
export interface KindInCluster {
  readonly resource: ResourceDefinition;
  readonly cluster?: string | undefined;
}

/** Tells whether a dependent has a name, or had it in an earlier version. */
export function hasName({ name, movedFrom }: Pick<NodeDefinition, "name" | "movedFrom">, wanted?: string): boolean {
  return wanted !== undefined && (wanted === name || movedFrom?.includes(wanted) === true);
}

/** Tells whether a dependent is an object of Kubernetes. */
export function isKubernetes(dependent: DependentDefinition): dependent is KubernetesDependent {
  return "resource" in dependent;
}

// Deletion of these loses data, or all objects in them.
const DATA_KINDS: ReadonlySet<string> = new Set([
  "/Namespace",
  "/PersistentVolume",
  "/PersistentVolumeClaim",
  "apiextensions.k8s.io/CustomResourceDefinition",
  "snapshot.storage.k8s.io/VolumeSnapshot",
  "snapshot.storage.k8s.io/VolumeSnapshotContent",
]);

/** Tells whether data is lost with an object of a kind, so that it is never deleted to create it again. */
export function ownsData({ group, kind }: Pick<ResourceDefinition, "group" | "kind">): boolean {
  return DATA_KINDS.has(`${group}/${kind}`);
}

/** What becomes of objects: the garbage collector deletes them, the runtime does in the order of the graph, or they are untied from the primary. */
export type Deletion = "garbageCollected" | "ordered" | "orphan";

/** Returns what becomes of the object of a dependent that may leave it to the default. */
export function deletionOf({ deletion, cluster }: Pick<KubernetesDependent, "deletion" | "cluster">): Deletion {
  return deletion ?? (cluster === undefined ? "garbageCollected" : "ordered");
}

/**
 * Tells whether there is something to do for a dependent before its primary goes. What the garbage collector deletes needs nothing, nor what
 * is only read, unless it is held; what is to be orphaned has to be untied.
 */
export function needsCleanup(dependent: DependentDefinition): boolean {
  return isHeldForCleanup(dependent) || isDeletedByOperator(dependent);
}

/** Tells whether objects of a dependent are held for the cleanup of their primary. */
export function isHeldForCleanup(dependent: DependentDefinition): boolean {
  return isKubernetes(dependent) && dependent.heldForCleanup === true;
}

/** Tells whether the operator deletes, or unties, the objects of a dependent before its primary goes. */
export function isDeletedByOperator(dependent: DependentDefinition): boolean {
  if (!isKubernetes(dependent)) return dependent.delete !== undefined;
  const { mode, operations } = dependent;
  return mode !== "readOnly" && operations?.delete !== false && deletionOf(dependent) !== "garbageCollected";
}

/** What becomes of the objects of a dependent that the workflow had in an earlier version. */
export interface RemovedDependent {
  readonly resource: ResourceDefinition;
  /** `garbageCollected` leaves them until the primary is gone; `ordered` deletes them now; `orphan` unties them now, so that they outlive it. */
  readonly deletion: Deletion;
  /** Where they live, if the dependent stated a namespace that the controller does not watch. */
  readonly namespace?: string;
  /** The name of another cluster, if they live there. */
  readonly cluster?: string;
}

/** A primary kind and the dependents that each of its objects needs, in an order in which they can be created. */
export interface WorkflowDefinition {
  readonly primary: ResourceDefinition;
  readonly dependents: readonly DependentDefinition[];
  /**
   * `implicit`: the runtime runs it before the reconciler. `explicit`: the reconciler does, by `context.workflow`; a cleanup is implicit if the
   * reconciler has none. Default: `implicit`
   */
  readonly invocation?: "implicit" | "explicit";
  /**
   * What becomes of errors of dependents: `throw` fails the reconcile with a WorkflowError after the run, `result` has them in the result
   * alone. A cleanup in which something failed is retried in either case. Default: `throw`
   */
  readonly exceptions?: "throw" | "result";
  /** How many steps are done at once, of all primaries together. Default: 50 */
  readonly maxConcurrency?: number;
  /** False: of the objects that no dependent wants, only those are deleted that `removed` names. Default: true */
  readonly pruning?: boolean;
  /** Dependents of earlier versions, by the names that they had. Their kinds are watched as long as they stand here. */
  readonly removed?: { readonly [name: string]: RemovedDependent };
}
