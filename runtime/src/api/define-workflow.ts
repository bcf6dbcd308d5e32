import type { Defined, KubernetesObject, ResourceClass } from "../base/kubernetes-object.js";
import type { EventFilters } from "../cache/resource-view.js";
import type { PrimaryPatch, Reconciler } from "../reconcile/reconciler.js";
import type { ExternalOrigin } from "../sources/dependent-sources.js";
import type { MaybePromise } from "../sources/external-source.js";
import type { ConditionDetails, TypedWorkflow } from "../workflow/run.js";
import type {
  BulkOptions,
  Condition,
  ConditionArguments,
  Conditions,
  DependentDefinition,
  DependentMatcher,
  Desired,
  ExistingCondition,
  ExternalArguments,
  ExternalState,
  KeptState,
  KubernetesDependent,
  NodeDefinition,
  ObjectReference,
  ObjectState,
  Operations,
  OptionalDependency,
  RemovedDependent,
  WorkflowDefinition,
} from "../workflow/workflow-definition.js";

/** The dependents declared so far: the types of their live objects, by name. */
export type DependentTypes = { readonly [name: string]: unknown };

/** The transitive dependencies of each dependent that always exist when it is reconciled, by name. */
export type WaitsFor = { readonly [name: string]: string };

/**
 * The secondary resources that the functions of a dependent can read. Its required dependencies are present; other dependents may be absent. `Always`
 * is always present: the items of bulk dependents, of which there may be none, and the resources of event sources.
 */
export type SecondaryOf<
  Nodes extends DependentTypes,
  Present extends string,
  Always extends object = Record<never, never>,
> = {
  readonly [Name in keyof Nodes & string as Name extends Present ? Name : never]: Nodes[Name];
} & {
  readonly [Name in keyof Nodes & string as Name extends Present ? never : Name]?: Nodes[Name] | undefined;
} & Always;

/** The type of a dependent name that is already in use. The compiler prints this text. */
export interface DuplicateDependent<Name extends string> {
  readonly "this name is already a dependent of the workflow": Name;
}

/** The possible dependencies of a dependent: any dependent declared before it, required or optional. */
export type DependencyOf<Nodes> = (keyof Nodes & string) | OptionalDependency<keyof Nodes & string>;

/** The names of the transitive required dependencies of a dependent. */
type NeededBy<Needed, Waits extends WaitsFor> = Extract<Needed, string> | Waits[Extract<Needed, string>];

type LiveOf<Resource, Bulk> = [Bulk] extends [undefined] ? Resource : ItemsOf<Resource>;

type BulkOf<Name extends string, Resource, Bulk> = [Bulk] extends [undefined]
  ? Record<never, never>
  : { readonly [N in Name]: ItemsOf<Resource> };

/** An object with `mode: once` may already be deleted when its dependents are reconciled. */
type AbsentOf<Mode, Bulk> = [Mode, Bulk] extends ["once", undefined] ? undefined : never;

declare const workflowTypes: unique symbol;

/** Carries the argument types of a workflow's functions. The property never exists at run time. */
export interface ChainTypes<Primary = unknown, Secondary = unknown, Details = unknown> {
  readonly [workflowTypes]?: { readonly primary: Primary; readonly secondary: Secondary; readonly details: Details };
}

/**
 * A workflow under construction. It is a complete definition after every step.
 *
 * `dependsOn` accepts only dependents that were declared before, so unknown names and cycles do not compile. `Bulks` are the bulk dependents declared
 * so far, `Details` the details of conditions.
 */
export interface WorkflowBuilder<
  Primary,
  Nodes extends DependentTypes,
  Waits extends WaitsFor,
  Sources extends object = Record<never, never>,
  Bulks extends DependentTypes = Record<never, never>,
  Details extends object = Record<never, never>,
>
  extends
    TypedWorkflow<keyof Nodes & string, Details>,
    ChainTypes<Primary, SecondaryOf<Nodes, never, Sources & Bulks>, Details> {
  /** Adds a dependent. It is reconciled after its dependencies. */
  dependent<
    const Name extends string,
    Resource extends KubernetesObject,
    Input,
    const Needed extends DependencyOf<Nodes> = never,
    const ItemNames extends keyof Bulks & string = never,
    const Mode extends "managed" | "createOnly" | "readOnly" | "once" = "managed",
    Bulk extends BulkOption = undefined,
    Activation = never,
    Precondition = never,
    Ready = never,
    Delete = never,
  >(
    name: Name extends keyof Nodes ? DuplicateDependent<Name> : Name,
    options: ObjectOptions<Resource, Input, Mode> &
      DesiredOption<
        Primary,
        SecondaryOf<Nodes, NeededBy<Needed, Waits>, Sources & Bulks>,
        WantedOf<Input, Bulk>,
        Mode
      > &
      NodeOptions<
        Primary,
        SecondaryOf<Nodes, NeededBy<Needed, Waits>, Sources & Bulks>,
        SecondaryOf<Nodes, never, Sources & Bulks>,
        NoInfer<Resource>,
        Bulk,
        Needed,
        ItemNames,
        NodeDetails<Activation, Precondition, Ready, Delete>
      > & {
        /**
         * What to do with an existing object that does not belong to this primary. With a condition, the object is adopted if the condition is met.
         * Default: `refuse`
         */
        readonly existing?:
          | "refuse"
          | "adopt"
          | ExistingCondition<Primary, SecondaryOf<Nodes, NeededBy<Needed, Waits>, Sources & Bulks>, NoInfer<Resource>>;
        /**
         * With `mode: "once"`: recreates the object when this value changes, but not before the previous object has finished.
         *
         * @example again: ({ primary }) => primary.spec.version
         */
        readonly again?: (args: { readonly primary: Primary }) => string | number | boolean | undefined;
        readonly operations?: Operations<
          Primary,
          SecondaryOf<Nodes, NeededBy<Needed, Waits>, Sources & Bulks>,
          NoInfer<Input>,
          NoInfer<Resource>,
          SecondaryOf<Nodes, never, Sources & Bulks>
        >;
      },
  ): WorkflowBuilder<
    Primary,
    Nodes & { readonly [N in Name]: LiveOf<Resource, Bulk> | AbsentOf<Mode, Bulk> },
    Waits & { readonly [N in Name]: NeededBy<Needed, Waits> },
    Sources,
    Bulks & BulkOf<Name, Resource, Bulk>,
    Details & { readonly [N in Name]: NodeDetails<Activation, Precondition, Ready, Delete> }
  >;

  /** Adds a read-only dependent: an object that another client creates and that the primary refers to by name. The workflow waits for it. */
  reference<
    const Name extends string,
    Resource extends KubernetesObject,
    const Needed extends DependencyOf<Nodes> = never,
    Activation = never,
    Precondition = never,
    Ready = never,
    Delete = never,
  >(
    name: Name extends keyof Nodes ? DuplicateDependent<Name> : Name,
    options: ReferenceOptions<Primary, Resource> &
      NodeOptions<
        Primary,
        SecondaryOf<Nodes, NeededBy<Needed, Waits>, Sources & Bulks>,
        SecondaryOf<Nodes, never, Sources & Bulks>,
        NoInfer<Resource>,
        undefined,
        Needed,
        never,
        NodeDetails<Activation, Precondition, Ready, Delete>
      >,
  ): WorkflowBuilder<
    Primary,
    Nodes & { readonly [N in Name]: Resource },
    Waits & { readonly [N in Name]: NeededBy<Needed, Waits> },
    Sources,
    Bulks,
    Details & { readonly [N in Name]: NodeDetails<Activation, Precondition, Ready, Delete> }
  >;

  /** Adds a dependent outside of Kubernetes. Its functions read and write the resources of an external API. */
  external<
    const Name extends string,
    Resource,
    Wanted = Resource,
    const Needed extends DependencyOf<Nodes> = never,
    const ItemNames extends keyof Bulks & string = never,
    Bulk extends BulkOption = undefined,
    State extends KeptState = string,
    Activation = never,
    Precondition = never,
    Ready = never,
    Delete = never,
  >(
    name: Name extends keyof Nodes ? DuplicateDependent<Name> : Name,
    options: ExternalOptions<
      Primary,
      SecondaryOf<Nodes, NeededBy<Needed, Waits>, Sources & Bulks>,
      SecondaryOf<Nodes, never, Sources & Bulks>,
      Resource,
      Wanted,
      Bulk,
      State
    > &
      NodeOptions<
        Primary,
        SecondaryOf<Nodes, NeededBy<Needed, Waits>, Sources & Bulks>,
        SecondaryOf<Nodes, never, Sources & Bulks>,
        NoInfer<Resource>,
        Bulk,
        Needed,
        ItemNames,
        NodeDetails<Activation, Precondition, Ready, Delete>
      >,
  ): WorkflowBuilder<
    Primary,
    Nodes & { readonly [N in Name]: LiveOf<Resource, Bulk> },
    Waits & { readonly [N in Name]: NeededBy<Needed, Waits> },
    Sources,
    Bulks & BulkOf<Name, Resource, Bulk>,
    Details & { readonly [N in Name]: NodeDetails<Activation, Precondition, Ready, Delete> }
  >;
}

/** The type of a hand-written reconciler of a workflow. Its arguments have the names and types that the workflow declares. */
export type ReconcilerOf<Workflow extends ChainTypes, Status> =
  Workflow extends ChainTypes<infer Primary, infer Secondary, infer Details>
    ? Reconciler<Primary, Secondary, Status, PrimaryPatch<Primary>, Details>
    : never;

/** Options of a workflow. */
export interface WorkflowOptions extends Omit<WorkflowDefinition, "primary" | "dependents" | "removed"> {
  /** Dependents that earlier versions of the operator had, by name. */
  readonly removed?: {
    readonly [name: string]: Omit<RemovedDependent, "resource"> & {
      readonly resource: Defined;
    };
  };
}

type StartedWorkflow<Primary, Sources extends object> = WorkflowBuilder<
  Primary,
  Record<never, never>,
  Record<never, never>,
  Sources
>;

/** Starts the workflow of a primary kind; add dependents with `dependent`. `Sources` are the resources of event sources that functions can read. */
export function defineWorkflow<Primary extends KubernetesObject, Sources extends object = Record<never, never>>(
  primary: Defined<Primary>,
  { removed = {}, ...options }: WorkflowOptions = {},
): StartedWorkflow<Primary, Sources> {
  const old = Object.entries(removed).map(([name, each]) => [name, { ...each, resource: each.resource.definition }]);
  const former = old.length > 0 && { removed: Object.fromEntries(old) };
  const definition = { ...options, primary: primary.definition, dependents: [], ...former };
  return builderOf(definition) as unknown as StartedWorkflow<Primary, Sources>;
}

interface UntypedOptions {
  readonly [option: string]: unknown;
  readonly resource: Defined;
}

function builderOf(definition: WorkflowDefinition): WorkflowDefinition {
  const withDependent = (dependent: object) =>
    builderOf({ ...definition, dependents: [...definition.dependents, dependent as DependentDefinition] });
  const dependent = (name: string, { resource, ...options }: UntypedOptions) =>
    withDependent({ dependsOn: [], ...options, name, resource: resource.definition });
  const reference = (name: string, options: UntypedOptions) => dependent(name, { ...options, mode: "readOnly" });
  const external = (name: string, { state, ...options }: { readonly state?: ExternalStateOption }) => {
    const kept = state?.kind === "resource" ? { ...state, resource: state.resource.definition } : state;
    return withDependent({ dependsOn: [], ...options, ...(kept && { state: kept }), name });
  };
  return Object.freeze({ ...definition, dependent, reference, external });
}

/** The items of a bulk dependent, by key. */
export type ItemsOf<Resource> = { readonly [key: string]: Resource };

/** The details that each condition of a dependent returns. */
export interface NodeDetails<Activation, Precondition, Ready, Delete> {
  readonly activationCondition: Activation;
  readonly reconcilePrecondition: Precondition;
  readonly readyPostcondition: Ready;
  readonly deletePostcondition: Delete;
}

/** Options of any dependent. `Details` are those of its conditions; `Known` are the dependents that may exist during a cleanup. */
export interface NodeOptions<
  Primary,
  Secondary,
  Known,
  Live,
  Bulk,
  Needed,
  ItemNames,
  Details extends ConditionDetails,
> extends Omit<NodeDefinition, "name" | "dependsOn" | "itemsDependOn" | "bulk" | keyof Conditions> {
  /** Dependencies, declared before this dependent. An optional dependency is waited for only while it is active. */
  readonly dependsOn?: readonly Needed[];
  /** Bulk dependents whose items this one depends on item by item: each item waits only for the item with the same key. */
  readonly itemsDependOn?: [Bulk] extends [undefined] ? OnlyOfBulkDependents : readonly ItemNames[];
  readonly bulk?: Bulk;
  readonly activationCondition?: Condition<Primary, Secondary, Details["activationCondition"], Live>;
  readonly reconcilePrecondition?: Condition<Primary, Secondary, Details["reconcilePrecondition"], Live>;
  readonly readyPostcondition?: Condition<Primary, Secondary, Details["readyPostcondition"], Live>;
  /**
   * During a cleanup, any dependency may already be deleted. Declared as a method, so that a function with a stricter parameter is accepted, such as
   * one that is also the readyPostcondition.
   */
  deletePostcondition?(
    args: ConditionArguments<Primary, Known, Live>,
  ): ReturnType<Condition<Primary, Known, Details["deletePostcondition"], Live>>;
}

/** The type of options that only bulk dependents have, on any other dependent. The compiler prints its text. */
export interface OnlyOfBulkDependents {
  readonly "only the items of a bulk dependent wait for other items": never;
}

/** The result of `desired`: one object, or for a bulk dependent its items by key. */
type WantedOf<Input, Bulk> = [Bulk] extends [undefined] ? NoInfer<Input> : ItemsOf<NoInfer<Input>>;

/** The type of options that a read-only dependent must not have. The compiler prints its text. */
export interface OnlyOfWrittenDependents {
  readonly "a read-only dependent has nothing to desire": never;
}

/** `desired` is required, except for a read-only dependent, which must not have it. */
type DesiredOption<Primary, Secondary, Wanted, Mode> = [Mode] extends ["readOnly"]
  ? { readonly desired?: OnlyOfWrittenDependents }
  : { readonly desired: Desired<Primary, Secondary, Wanted> };

/** Options of a Kubernetes dependent, named as in the workflow spec. */
export interface ObjectOptions<Resource extends KubernetesObject, Input, Mode> extends Omit<
  KubernetesDependent,
  | keyof NodeDefinition
  | "resource"
  | "mode"
  | "desired"
  | "existing"
  | "onImmutable"
  | "again"
  | "filters"
  | "matcher"
  | "operations"
> {
  /**
   * How to handle a write that the API server rejects because a field is immutable: `recreate` deletes the object and creates it again. Default:
   * `fail`
   *
   * @example onImmutable: "recreate"
   */
  readonly onImmutable?: "fail" | RecreateOption<NoInfer<Resource>>;
  readonly resource: ResourceClass<Resource, Input>;
  readonly mode?: Mode;
  readonly filters?: EventFilters<NoInfer<Resource>>;
  readonly matcher?: DependentMatcher<NoInfer<Resource>>;
}

/** Kinds whose deletion causes data loss. */
interface DataKind {
  readonly kind:
    | "CustomResourceDefinition"
    | "Namespace"
    | "PersistentVolume"
    | "PersistentVolumeClaim"
    | "VolumeSnapshot"
    | "VolumeSnapshotContent";
}

/** Objects whose deletion causes data loss are never recreated. */
type RecreateOption<Resource> = [Resource] extends [DataKind] ? never : "recreate";

/**
 * Returns a `desired` function unchanged, and asserts that the conditions of its dependent, which are evaluated before it, guarantee the type of the
 * primary. Generated code uses it for fields that a `when:` tests.
 *
 * @example desired: guarded(backup.desired), reconcilePrecondition: ({ primary }) => primary.spec.backup !== undefined
 */
export function guarded<Primary, Secondary, Input, Guarded extends Primary>(
  desired: Desired<Primary, Secondary, Input, Guarded>,
): Desired<Primary, Secondary, Input> {
  return desired as never;
}

/** Options of a dependent that another client creates. */
interface ReferenceOptions<Primary, Resource extends KubernetesObject> extends Pick<
  KubernetesDependent,
  "cluster" | "fieldSelector" | "heldForCleanup" | "labelSelector"
> {
  readonly resource: Defined<Resource>;
  readonly ref: ObjectReference<Primary>;
  readonly filters?: EventFilters<NoInfer<Resource>>;
}

/** The second argument of `fetch`. */
export interface FetchContext<Secondary = object, State extends KeptState = string> {
  /** Aborted when the operator stops. */
  readonly signal: AbortSignal;
  /** The live dependents and the resources of event sources, by name. Use them for an address or for credentials, for example. */
  readonly secondary: Secondary;
  /** The stored states of created resources, by the key of the item. The key is empty unless the dependent is a bulk dependent. */
  readonly state: ReadonlyMap<string, State>;
}

/** Where the states of created resources are stored. */
export type ExternalStateOption = Extract<ExternalState, { kind: "status" }> | ObjectState<Defined>;

/** The source of the live resources of an external dependent. */
export type ExternalSourceOption<Primary, Known, Resource, State extends KeptState = string> = ExternalOrigin<
  Primary,
  FetchContext<Known, State>,
  Resource
>;

/**
 * Options of an external dependent. An operation whose function is missing is not supported. `Wanted` is the type of a desired resource. It equals
 * `Resource` unless `create`, `update` or `matches` declare another parameter type, for example because the service assigns an id.
 */
export interface ExternalOptions<Primary, Secondary, Known, Resource, Wanted, Bulk, State extends KeptState = string> {
  readonly source: ExternalSourceOption<Primary, Known, Resource, State>;
  /**
   * Returns the identity of a resource among the resources of its primary; for a bulk dependent, the key of the item. Without `state`, it is also
   * called with desired resources.
   */
  readonly idOf: (resource: Resource) => string;
  /**
   * Returns whether a resource of the event source belongs to this dependent. Default: true for all; with `state`, for those whose ids are stored
   */
  readonly isOwn?: (resource: NoInfer<Resource>, primary: Primary) => boolean;
  /** Where the ids of created resources are stored, for services whose resources cannot be found by their primary. Default: not stored */
  readonly state?: ExternalStateOption;
  /**
   * Returns the state to store if the id alone is not enough: an object with the id as `id`. Called once, after `create`. Declare the type of its
   * parameter, so that the types of the other functions can be inferred. Default: the id, a string
   */
  readonly stateOf?: (resource: NoInfer<Resource>) => State & { readonly id: string };
  /**
   * How to handle the deletion of a primary if `delete` still fails after all attempts of its step: `release` removes the finalizer and leaves the
   * resource behind, with a log line and an Event; `block` keeps the finalizer until the deletion succeeds. Default: `block`
   */
  readonly onDeleteFailure?: "block" | "release";
  /**
   * How long lists of the service may lag behind writes of the operator, in milliseconds. During this time, a created resource counts as existing,
   * even in a cleanup, and after a restart nothing is created for existing primaries. Set 0 for a service whose lists are always up to date. Default:
   * 30,000. Example: `creationGraceMs: 120_000`
   */
  readonly creationGraceMs?: number;
  /** Returns the desired resource. Absent for a read-only dependent. */
  readonly desired?: Desired<Primary, Secondary, WantedOf<Wanted, Bulk>>;
  readonly create?: (desired: Wanted, args: ExternalArguments<Primary, Secondary, State>) => MaybePromise<Resource>;
  readonly update?: (
    desired: Wanted,
    live: Resource,
    args: ExternalArguments<Primary, Secondary, State>,
  ) => MaybePromise<NoInfer<Resource>>;
  /**
   * While the primary is being deleted, any dependency may be absent from `secondary`. Declared as a method, so that a function with a stricter
   * parameter is accepted.
   */
  delete?(live: Resource, args: ExternalArguments<Primary, Known, State>): MaybePromise<void>;
  /** Returns whether a live resource matches the desired one. Default: deep equality */
  readonly matches?: (desired: Wanted, live: Resource) => boolean;
}

/** How to write the items of a bulk dependent; `undefined` for any other dependent. */
export type BulkOption = BulkOptions | undefined;
