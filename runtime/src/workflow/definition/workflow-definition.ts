import type { KubernetesObject } from "../../base/kubernetes-object.js";
import type { ResourceDefinition } from "../../base/resource-definition.js";
import type { ApiClient } from "../../client/api-client.js";
import type { ExternalOrigin } from "../../sources/external/external-watch.js";
import type { Context } from "./context.js";
import type { Operations } from "./operations.js";
import type { EventFilters } from "../../cache/resource-change.js";

export type { Context } from "./context.js";
export type { CreateArguments, DeleteArguments, DeletionOptions, Operations, UpdateArguments } from "./operations.js";

/**
 * What `desired` and the conditions of a dependent are called with.
 *
 * The objects are those of the cache: they are frozen, and the same for everybody.
 */
export interface DependentArguments<Primary, Secondary> {
  readonly primary: Primary;
  /** The live dependents by name, as the cache knows them now; of a bulk dependent its items by their keys. */
  readonly secondary: Secondary;
  readonly context: Context<Primary>;
}

/** What a condition is called with: also the dependent that it belongs to, with its live object or resource. */
export interface ConditionArguments<Primary, Secondary, Live = object> extends DependentArguments<Primary, Secondary> {
  readonly dependent: {
    readonly name: string;
    /** Its kind; absent for what Kubernetes does not have. */
    readonly definition?: ResourceDefinition;
    /** The client of the cluster that it is in; absent for what Kubernetes does not have. */
    readonly client?: ApiClient;
    /** The key of the item that a postcondition of a bulk dependent is asked about; absent for any other. */
    readonly item?: string;
    /** The live object, of a bulk dependent that of the item; absent while there is none. */
    readonly live: Live | undefined;
  };
}

/** Computes what a dependent should be, or the items of a bulk dependent by their keys; called at most once for each reconcile. */
export type Desired<Primary, Secondary, Input> = (
  args: DependentArguments<Primary, Secondary>,
) => Input | Promise<Input>;

/** What a condition found, with anything that is worth to be read in the result of the workflow (JOSDK DetailedCondition). */
export interface ConditionResult<Detail = unknown> {
  readonly isMet: boolean;
  readonly detail: Detail;
}

/** Decides about a dependent; called at most once for each reconcile, a postcondition of a bulk dependent once for each item. */
export type Condition<Primary, Secondary, Detail = unknown, Live = object> = (
  args: ConditionArguments<Primary, Secondary, Live>,
) => boolean | ConditionResult<Detail> | Promise<boolean | ConditionResult<Detail>>;

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

/** How often, and how soon, a step of a workflow is tried again within one run. */
export interface StepRetry {
  /** How often at most, the first attempt included. */
  readonly maxAttempts: number;
  /** The wait before the second attempt; 1 s unless given. */
  readonly initialIntervalMs?: number;
  /** How much longer each wait is than the one before; 1.5 unless given. */
  readonly multiplier?: number;
  /** No wait is longer; no limit unless given. */
  readonly maxIntervalMs?: number;
}

/** How the items of a bulk dependent are written. */
export interface BulkOptions {
  /** How many items are written at once; 10 unless given. */
  readonly maxConcurrency?: number;
}

/** What a dependent waits for: what it cannot exist without, or what it waits for only if that is wanted. */
export type Dependency = string | OptionalDependency;

/**
 * An optional dependency: the dependent waits for it if it is wanted, and goes on without it if its conditions exclude it.
 *
 * In `secondary` of the dependent it is `undefined` while it is not wanted, also before it is deleted. A deletion keeps the order of the graph.
 */
export interface OptionalDependency<Name = string> {
  readonly name: Name;
  readonly optional: true;
}

/** Returns the name of what a dependent waits for. */
export function nameOfDependency(dependency: Dependency): string {
  return typeof dependency === "string" ? dependency : dependency.name;
}

/** What every dependent of a workflow has, whatever it consists of. */
export interface NodeDefinition extends Conditions {
  readonly name: string;
  readonly dependsOn: readonly Dependency[];
  /** Bulk dependents of which an item waits for the item of the same key only; its deletion goes before theirs. */
  readonly itemsDependOn?: readonly string[];
  /** Makes it a bulk dependent: `desired` returns any number of objects by key, and what is not among them is deleted. */
  readonly bulk?: BulkOptions;
  /**
   * How long its step may take in one run, its retries included; as long as the reconcile unless given. Of a bulk dependent `desired`, with the
   * conditions before it, and each item have this time.
   */
  readonly timeoutMs?: number;
  /** Tries a step again that failed, before the run counts it as failed; not unless given. */
  readonly retry?: StepRetry;
}

/** Tells whether the live object is as desired, in place of the matcher of the runtime; both are complete objects. */
export type DependentMatcher<Resource = never> = (
  desired: Resource,
  live: Resource,
  context: Context,
) => boolean | Promise<boolean>;

/** A dependent that is an object of Kubernetes, or a set of them: data and functions, nothing that changes. */
export interface KubernetesDependent extends NodeDefinition {
  readonly resource: ResourceDefinition;
  /**
   * What the runtime does with it: `managed` creates, updates and deletes it, which is the default; `createOnly` leaves what exists as it
   * is; `readOnly` waits for what somebody else makes, and has no `desired`.
   */
  readonly mode?: "managed" | "createOnly" | "readOnly";
  /** Absent if it is read-only. */
  readonly desired?: Desired<never, never, object>;
  /** Where the object lives; the namespace of the primary unless stated. */
  readonly namespace?: string;
  /** The name of another cluster, of those that the operator is given. */
  readonly cluster?: string;
  /** The name of an event source of the controller that knows the objects; the dependent then has no watch of its own. */
  readonly eventSource?: string;
  /** Limits the watch to objects with these labels, which `desired` has to set. */
  readonly labelSelector?: string;
  /** Limits the watch to objects with these fields, of those that the API server can select by. */
  readonly fieldSelector?: string;
  /** Which events of the object cause a reconcile; all unless given. */
  readonly filters?: EventFilters<never>;
  /**
   * Whether Kubernetes' garbage collector deletes the object after its primary (an owner reference ties it to the primary), as
   * opposed to the runtime in the order of the graph (annotations tie it).
   */
  readonly garbageCollected: boolean;
  /** What becomes of the object when it must not exist any more: `orphan` leaves it, untied from the primary; `delete` unless given. */
  readonly onDelete?: "delete" | "orphan";
  /** What is done about an object of the name that is not of this primary: `adopt` takes it over; `refuse`, an error, unless given. */
  readonly existing?: "refuse" | "adopt";
  /** Whether it is written by server-side apply; true unless given. False: by POST and PUT. */
  readonly serverSideApply?: boolean;
  /** Who writes it, as the API server records it; that of the controller unless given. */
  readonly fieldManager?: string;
  readonly matcher?: DependentMatcher;
  /** Own functions for what is done with the object. Default: what the runtime does. */
  readonly operations?: Operations;
}

/** What is given to the functions of an external dependent besides their subject. */
export interface ExternalArguments<Primary = never, Secondary = never> extends DependentArguments<Primary, Secondary> {
  /** The id that was kept when it was created; undefined if there is none, or the dependent has no state. */
  readonly state?: string | undefined;
}

/** Where the runtime keeps the ids of external resources; `path` leads through the status of the primary: `["databaseId"]`. */
export type ExternalState = { readonly kind: "status"; readonly path: readonly string[] } | ObjectState;

/**
 * Ids that are kept in objects beside the primary, which owns them: in a ConfigMap, a Secret, or an object of a kind of the user's, where
 * `path` leads to the id. The items of a bulk dependent share an object, unless each has one of its own.
 */
export type ObjectState<Kind = ResourceDefinition> = { readonly perItem?: boolean } & (
  | { readonly kind: "configMap" | "secret" }
  | { readonly kind: "resource"; readonly resource: Kind; readonly path: readonly string[] }
);

/**
 * A dependent outside Kubernetes, such as a row in a database, or a set of them. A function that is absent cannot be done. `ExternalOptions`
 * of the builder says what each of them is for, and has their types.
 */
export interface ExternalDependent extends NodeDefinition {
  readonly source: ExternalOrigin;
  /** Absent if it is only read. */
  readonly desired?: Desired<never, never, unknown>;
  readonly state?: ExternalState | undefined;
  readonly onDeleteFailure?: "block" | "release";
  idOf?(resource: unknown): string;
  isOwn?(resource: unknown, primary: KubernetesObject): boolean;
  create?(desired: unknown, args: object): unknown;
  update?(desired: unknown, live: unknown, args: object): unknown;
  delete?(live: unknown, args: object): unknown;
  matches?(desired: unknown, live: unknown): boolean;
}

/** One dependent of a workflow. */
export type DependentDefinition = KubernetesDependent | ExternalDependent;

/** Tells whether a dependent is an object of Kubernetes. */
export function isKubernetes(dependent: DependentDefinition): dependent is KubernetesDependent {
  return "resource" in dependent;
}

/** What becomes of the objects of a dependent that the workflow had in an earlier version. */
export interface RemovedDependent {
  readonly resource: ResourceDefinition;
  /** `keep` leaves them as they are, and tied to their primary; `orphan` unties them, so that they outlive it. */
  readonly policy: "delete" | "keep" | "orphan";
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
   * Who runs it: the runtime, before the reconciler (`implicit`, which is the default), or the reconciler by `context.workflow` (`explicit`).
   * The cleanup is implicit where the reconciler has none.
   */
  readonly invocation?: "implicit" | "explicit";
  /**
   * What becomes of errors of dependents: with `throw`, which is the default, the reconcile fails with a WorkflowError when the run is over;
   * with `result` they are only in the result. A cleanup in which something failed is tried again in either case.
   */
  readonly exceptions?: "throw" | "result";
  /** How many steps are done at once, of all primaries together; 50 unless given. */
  readonly maxConcurrency?: number;
  /** Whether objects of a watched kind that no dependent wants are deleted. Default: true. False: only what `removed` names. */
  readonly inventory?: boolean;
  /** Dependents of earlier versions, by the names that they had. Their kinds are watched as long as they stand here. */
  readonly removed?: { readonly [name: string]: RemovedDependent };
}
