import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { EventFilters } from "../cluster/event-filters.js";
import type { Context } from "./context.js";

export type { Context } from "./context.js";

/**
 * What `desired` and the conditions of a dependent are called with.
 *
 * The objects are those of the cache: they are frozen, and the same for everybody.
 */
export interface DependentArguments<Primary, Secondary> {
  readonly primary: Primary;
  /** The live dependents by name, as the cache knows them now. */
  readonly secondary: Secondary;
  readonly context: Context<Primary>;
}

/** What a condition is called with: also the dependent that it belongs to. */
export interface ConditionArguments<Primary, Secondary> extends DependentArguments<Primary, Secondary> {
  readonly dependent: {
    readonly name: string;
    readonly definition: ResourceDefinition;
    /** The live object; absent while there is none. */
    readonly live: KubernetesObject | undefined;
  };
}

/** Computes what a dependent should be; called at most once for each reconcile. */
export type Desired<Primary, Secondary, Input> = (
  args: DependentArguments<Primary, Secondary>,
) => Input | Promise<Input>;

/** Decides about a dependent; called at most once for each reconcile. */
export type Condition<Primary, Secondary> = (
  args: ConditionArguments<Primary, Secondary>,
) => boolean | Promise<boolean>;

/** One dependent of a workflow: data and functions, nothing that changes. */
export interface DependentDefinition {
  readonly name: string;
  readonly resource: ResourceDefinition;
  readonly dependsOn: readonly string[];
  readonly desired: Desired<never, never, object>;
  /** False: the dependent counts as absent, is not watched and not deleted; what depends on it is deleted. */
  readonly activationCondition?: Condition<never, never>;
  /** False: the dependent and all that depends on it are deleted. */
  readonly reconcilePrecondition?: Condition<never, never>;
  /** False: what depends on it waits. */
  readonly readyPostcondition?: Condition<never, never>;
  /** False after a deletion: what it depends on is not deleted yet. */
  readonly deletePostcondition?: Condition<never, never>;
  /** Where the object lives; the namespace of the primary unless stated. */
  readonly namespace?: string;
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
  readonly isGarbageCollected: boolean;
}

/** A primary kind and the dependents that each of its objects needs, in an order in which they can be created. */
export interface WorkflowDefinition {
  readonly primary: ResourceDefinition;
  readonly dependents: readonly DependentDefinition[];
}
