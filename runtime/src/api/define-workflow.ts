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

/** The dependents that a chain has declared, with the types of their live objects by name. */
export type DependentTypes = { readonly [name: string]: unknown };

/** For each dependent, the names of all dependents that it cannot exist without. */
export type WaitsFor = { readonly [name: string]: string };

/**
 * The live dependents as one of them sees them: those that it waits for exist, others may be absent. `Always` are present in any case: the items of
 * bulk dependents, which may be empty, and the objects of event sources.
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

/** A duplicate name; the compiler prints this text. */
export interface DuplicateDependent<Name extends string> {
  readonly "this name is already a dependent of the workflow": Name;
}

/** The dependents that a dependent may depend on: any before it, required or optional. */
export type DependencyOf<Nodes> = (keyof Nodes & string) | OptionalDependency<keyof Nodes & string>;

/** The names of the dependents that exist whenever this one does. */
type NeededBy<Needed, Waits extends WaitsFor> = Extract<Needed, string> | Waits[Extract<Needed, string>];

type LiveOf<Resource, Bulk> = [Bulk] extends [undefined] ? Resource : ItemsOf<Resource>;

type BulkOf<Name extends string, Resource, Bulk> = [Bulk] extends [undefined]
  ? Record<never, never>
  : { readonly [N in Name]: ItemsOf<Resource> };

/** An object with `mode: once` may have been deleted while others depend on it. */
type AbsentOf<Mode, Bulk> = [Mode, Bulk] extends ["once", undefined] ? undefined : never;

declare const workflowTypes: unique symbol;

/** The types of the arguments of the functions of a chain. Never set. */
export interface ChainTypes<Primary = unknown, Secondary = unknown, Details = unknown> {
  readonly [workflowTypes]?: { readonly primary: Primary; readonly secondary: Secondary; readonly details: Details };
}

/**
 * A workflow under construction, and a complete definition at every step.
 *
 * `dependsOn` accepts names that were declared before, so an unknown name does not compile and a cycle cannot be written. `Bulk` are the bulk
 * dependents among them, and `Details` the details of the conditions.
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
  /** Adds a dependent that is created after those it depends on. */
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
        /** How to handle an existing object that does not belong to this primary. A condition adopts the object if it is met. Default: `refuse` */
        readonly existing?:
          | "refuse"
          | "adopt"
          | ExistingCondition<Primary, SecondaryOf<Nodes, NeededBy<Needed, Waits>, Sources & Bulks>, NoInfer<Resource>>;
        /**
         * With `mode: "once"`: the object is recreated when this value changes, after the previous object has finished.
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

  /** Adds an object of another client, by the name that the primary refers to: the workflow waits for it, and never writes it. */
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

  /** Adds a dependent outside Kubernetes, with functions that read and write its resources. */
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

/** The type of a hand-written reconciler of a workflow: its arguments have the names and types of the chain. */
export type ReconcilerOf<Workflow extends ChainTypes, Status> =
  Workflow extends ChainTypes<infer Primary, infer Secondary, infer Details>
    ? Reconciler<Primary, Secondary, Status, PrimaryPatch<Primary>, Details>
    : never;

/** Options of a workflow. */
export interface WorkflowOptions extends Omit<WorkflowDefinition, "primary" | "dependents" | "removed"> {
  /** Dependents of earlier versions of the operator, by name. */
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

/** Starts the workflow of a primary kind; add dependents with `dependent`. `Sources` are the objects of event sources that functions can read. */
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

/** The items of a bulk dependent by their keys. */
export type ItemsOf<Resource> = { readonly [key: string]: Resource };

/** The details of the conditions of a dependent, by their names. */
export interface NodeDetails<Activation, Precondition, Ready, Delete> {
  readonly activationCondition: Activation;
  readonly reconcilePrecondition: Precondition;
  readonly readyPostcondition: Ready;
  readonly deletePostcondition: Delete;
}

/** Options of any dependent; `Details` are those of its conditions, and `Known` are the dependents that may exist during a cleanup. */
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
  /** Dependents that were declared before. The dependent waits for an optional dependency only while that is active. */
  readonly dependsOn?: readonly Needed[];
  /** Bulk dependents of which each item waits for the item of the same key only. */
  readonly itemsDependOn?: [Bulk] extends [undefined] ? OnlyOfBulkDependents : readonly ItemNames[];
  readonly bulk?: Bulk;
  readonly activationCondition?: Condition<Primary, Secondary, Details["activationCondition"], Live>;
  readonly reconcilePrecondition?: Condition<Primary, Secondary, Details["reconcilePrecondition"], Live>;
  readonly readyPostcondition?: Condition<Primary, Secondary, Details["readyPostcondition"], Live>;
  /**
   * During a cleanup, any dependency may have been deleted. A method, so that a function with a stricter parameter still fits, such as one that is also
   * the readyPostcondition.
   */
  deletePostcondition?(
    args: ConditionArguments<Primary, Known, Live>,
  ): ReturnType<Condition<Primary, Known, Details["deletePostcondition"], Live>>;
}

/** The type of the options that only a bulk dependent has, in all other dependents. The compiler prints its text. */
export interface OnlyOfBulkDependents {
  readonly "only the items of a bulk dependent wait for other items": never;
}

/** The result of `desired`: one object, or the items of a bulk dependent by their keys. */
type WantedOf<Input, Bulk> = [Bulk] extends [undefined] ? NoInfer<Input> : ItemsOf<NoInfer<Input>>;

/** The type of the options that a read-only dependent does not have. The compiler prints its text. */
export interface OnlyOfWrittenDependents {
  readonly "a read-only dependent has nothing to desire": never;
}

/** Options that a read-only dependent must not have, and any other must. */
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
   * What to do if the API server rejects a write because a field of the object is immutable: `recreate` deletes the object and creates it again.
   * Default: `fail`
   *
   * @example onImmutable: "recreate"
   */
  readonly onImmutable?: "fail" | RecreateOption<NoInfer<Resource>>;
  readonly resource: ResourceClass<Resource, Input>;
  readonly mode?: Mode;
  readonly filters?: EventFilters<NoInfer<Resource>>;
  readonly matcher?: DependentMatcher<NoInfer<Resource>>;
}

/** Kinds whose deletion loses data. */
interface DataKind {
  readonly kind:
    | "CustomResourceDefinition"
    | "Namespace"
    | "PersistentVolume"
    | "PersistentVolumeClaim"
    | "VolumeSnapshot"
    | "VolumeSnapshotContent";
}

/** Kinds whose deletion loses data are never recreated. */
type RecreateOption<Resource> = [Resource] extends [DataKind] ? never : "recreate";

/**
 * Returns a `desired` unchanged, and asserts that the conditions of its dependent, which are evaluated first, guarantee the type of its primary.
 * Generated code uses it for fields that a `when:` tests.
 *
 * @example desired: guarded(backup.desired), reconcilePrecondition: ({ primary }) => primary.spec.backup !== undefined
 */
export function guarded<Primary, Secondary, Input, Guarded extends Primary>(
  desired: Desired<Primary, Secondary, Input, Guarded>,
): Desired<Primary, Secondary, Input> {
  return desired as never;
}

/** Options of an object that another client creates. */
interface ReferenceOptions<Primary, Resource extends KubernetesObject> extends Pick<
  KubernetesDependent,
  "cluster" | "fieldSelector" | "heldForCleanup" | "labelSelector"
> {
  readonly resource: Defined<Resource>;
  readonly ref: ObjectReference<Primary>;
  readonly filters?: EventFilters<NoInfer<Resource>>;
}

/** The context of `fetch`. */
export interface FetchContext<Secondary = object, State extends KeptState = string> {
  /** Aborted when the operator stops. */
  readonly signal: AbortSignal;
  /** The live dependents and the resources of event sources, by name: for an address, or for credentials. */
  readonly secondary: Secondary;
  /** The stored states of created resources, by the keys of items; the key is empty unless the dependent is a bulk dependent. */
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
 * Options of an external dependent; without a function, its operation is not supported. `Wanted` is the type of a desired `Resource`: the same, unless
 * the parameters of `create`, `update` or `matches` have another type, for example if the service adds an id.
 */
export interface ExternalOptions<Primary, Secondary, Known, Resource, Wanted, Bulk, State extends KeptState = string> {
  readonly source: ExternalSourceOption<Primary, Known, Resource, State>;
  /**
   * Returns the identity of a resource among those of its primary; for bulk dependents, the key of the item. Without `state`, it is also called with
   * desired resources.
   */
  readonly idOf: (resource: Resource) => string;
  /** Tells whether a resource of the event source belongs to this dependent. Default: all do, or with `state` those whose ids are stored */
  readonly isOwn?: (resource: NoInfer<Resource>, primary: Primary) => boolean;
  /** Where the id of a created resource is stored, for services in which resources cannot be found by their primary. Default: nowhere. */
  readonly state?: ExternalStateOption;
  /**
   * Returns the state to store if the id is not enough: an object with the id as `id`. Called once, after `create`. Declare the type of its parameter,
   * so that the other functions know the type of the state. Default: the id alone, a string
   */
  readonly stateOf?: (resource: NoInfer<Resource>) => State & { readonly id: string };
  /**
   * What happens to a primary that is being deleted when `delete` fails in all attempts of its step: `release` removes the finalizer and leaves the
   * resource, with a log line and an Event. Default: `block`, the finalizer stays until the deletion succeeds.
   */
  readonly onDeleteFailure?: "block" | "release";
  /**
   * How long lists of the service may lag behind the writes of the operator, in milliseconds. For this time a created resource counts as existing, also
   * in a cleanup, and after a restart nothing is created for existing primaries. Set 0 for a service whose lists are always
   * up to date. Default: 30,000. Example: `creationGraceMs: 120_000`
   */
  readonly creationGraceMs?: number;
  /** Absent for a read-only dependent. */
  readonly desired?: Desired<Primary, Secondary, WantedOf<Wanted, Bulk>>;
  readonly create?: (desired: Wanted, args: ExternalArguments<Primary, Secondary, State>) => MaybePromise<Resource>;
  readonly update?: (
    desired: Wanted,
    live: Resource,
    args: ExternalArguments<Primary, Secondary, State>,
  ) => MaybePromise<NoInfer<Resource>>;
  /**
   * While the primary is being deleted, any dependency may be missing in `secondary`. A method, so that a function with a stricter parameter still
   * fits.
   */
  delete?(live: Resource, args: ExternalArguments<Primary, Known, State>): MaybePromise<void>;
  /** Tells whether a live resource is as desired. Default: deep equality */
  readonly matches?: (desired: Wanted, live: Resource) => boolean;
}

/** How the items of a bulk dependent are written; `undefined` for any other dependent. */
export type BulkOption = BulkOptions | undefined;
