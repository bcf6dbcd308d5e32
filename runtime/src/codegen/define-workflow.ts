import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { Defined } from "../base/resource-definition.js";
import type { PrimaryPatch, Reconciler } from "../reconcile/reconciler.js";
import type {
  DependentDefinition,
  ExistingCondition,
  KeptState,
  Operations,
  OptionalDependency,
  RemovedDependent,
  WorkflowDefinition,
} from "../workflow/definition/workflow-definition.js";
import type { TypedWorkflow } from "../workflow/workflow-result.js";
import type {
  BulkOption,
  DesiredOption,
  ExternalOptions,
  ExternalStateOption,
  ItemsOf,
  NodeDetails,
  NodeOptions,
  ObjectOptions,
  ReferenceOptions,
  WantedOf,
} from "./dependent-options.js";

/** The dependents that a chain has declared, with the types of their live objects by name. */
export type DependentTypes = { readonly [name: string]: unknown };

/** For each dependent, the names of all dependents that it cannot exist without. */
export type WaitsFor = { readonly [name: string]: string };

/**
 * The live dependents as one of them sees them: what it waits for is there, anything else may be absent. `Always` is what is there in any
 * case: the items of bulk dependents, which may be none, and what event sources know.
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

/** A name that the chain has already; its text is what the compiler prints. */
export interface DuplicateDependent<Name extends string> {
  readonly "this name is already a dependent of the workflow": Name;
}

/** What a dependent may depend on: any dependent before it, required or optional. */
export type DependencyOf<Nodes> = (keyof Nodes & string) | OptionalDependency<keyof Nodes & string>;

/** The names of what is there whenever a dependent is, as it cannot exist without it. */
type NeededBy<Needed, Waits extends WaitsFor> = Extract<Needed, string> | Waits[Extract<Needed, string>];

type LiveOf<Resource, Bulk> = [Bulk] extends [undefined] ? Resource : ItemsOf<Resource>;

type BulkOf<Name extends string, Resource, Bulk> = [Bulk] extends [undefined]
  ? Record<never, never>
  : { readonly [N in Name]: ItemsOf<Resource> };

/** An object that is created once may be gone while others depend on it. */
type AbsentOf<Mode, Bulk> = [Mode, Bulk] extends ["once", undefined] ? undefined : never;

declare const workflowTypes: unique symbol;

/** What the functions of a chain are called with. Never set: it only carries the types. */
export interface ChainTypes<Primary = unknown, Secondary = unknown, Details = unknown> {
  readonly [workflowTypes]?: { readonly primary: Primary; readonly secondary: Secondary; readonly details: Details };
}

/**
 * A workflow under construction, and a complete definition at every step.
 *
 * `dependsOn` accepts the names declared before, so an unknown name does not compile and a cycle cannot be written. `Bulk` are the bulk
 * dependents among them, and `Details` what the conditions find besides whether they hold.
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
        /** What is done about an object of the name that is not of this primary. A condition adopts the object if it is met. Default: `refuse` */
        readonly existing?:
          | "refuse"
          | "adopt"
          | ExistingCondition<Primary, SecondaryOf<Nodes, NeededBy<Needed, Waits>, Sources & Bulks>, NoInfer<Resource>>;
        /**
         * With `mode: "once"`: the object is created again when this has another value, after the one before has ended.
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

  /** Adds an object that somebody else makes, by the name that the primary says: it is waited for, and never written. */
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

  /** Adds a dependent outside Kubernetes, with functions that find and change its resources. */
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

/** The reconciler of a workflow that is written by hand: what it is called with has the names and types of the chain. */
export type ReconcilerOf<Workflow extends ChainTypes, Status> =
  Workflow extends ChainTypes<infer Primary, infer Secondary, infer Details>
    ? Reconciler<Primary, Secondary, Status, PrimaryPatch<Primary>, Details>
    : never;

/** What a workflow states besides its dependents. */
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

/** Starts the workflow of a primary kind; `dependent` adds to it. `Sources` is what event sources add to what the functions see. */
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
