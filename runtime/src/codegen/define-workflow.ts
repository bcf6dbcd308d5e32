import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { ResourceClass } from "../base/resource-definition.js";
import type { EventFilters } from "../cluster/event-filters.js";
import type { Condition, Desired, KubernetesDependent, WorkflowDefinition } from "../workflow/workflow-definition.js";

/** The dependents that a chain has declared: their resource types by name. */
export type DependentTypes = { readonly [name: string]: KubernetesObject };

/** For each dependent, the names of all those that it waits for. */
export type WaitsFor = { readonly [name: string]: string };

/** The live dependents as one of them sees them: what it waits for is there, anything else may be absent; and what event sources know. */
export type SecondaryOf<
  Nodes extends DependentTypes,
  Present extends string,
  Sources extends object = Record<never, never>,
> = {
  readonly [Name in keyof Nodes & string as Name extends Present ? Name : never]: Nodes[Name];
} & {
  readonly [Name in keyof Nodes & string as Name extends Present ? never : Name]?: Nodes[Name] | undefined;
} & Sources;

/** A name that the chain has already; its text is what the compiler prints. */
export interface DuplicateDependent<Name extends string> {
  readonly "this name is already a dependent of the workflow": Name;
}

/** What a chain states about one dependent; the words are those of the workflow spec. */
export interface DependentOptions<
  Primary,
  Nodes extends DependentTypes,
  Waits extends WaitsFor,
  Resource extends KubernetesObject,
  Input,
  Names extends keyof Nodes & string,
  Sources extends object = Record<never, never>,
> {
  readonly resource: ResourceClass<Resource, Input>;
  readonly desired: Desired<Primary, SecondaryOf<Nodes, Names | Waits[Names], Sources>, NoInfer<Input>>;
  readonly dependsOn?: readonly Names[];
  readonly activationCondition?: Condition<Primary, SecondaryOf<Nodes, Names | Waits[Names], Sources>>;
  readonly reconcilePrecondition?: Condition<Primary, SecondaryOf<Nodes, Names | Waits[Names], Sources>>;
  readonly readyPostcondition?: Condition<Primary, SecondaryOf<Nodes, Names | Waits[Names], Sources>>;
  readonly deletePostcondition?: Condition<Primary, SecondaryOf<Nodes, Names | Waits[Names], Sources>>;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly filters?: EventFilters<NoInfer<Resource>>;
  readonly isGarbageCollected?: boolean;
}

/**
 * A workflow under construction, and a complete definition at every step.
 *
 * `dependsOn` accepts the names declared before, so an unknown name does not compile and a cycle cannot be written.
 */
export interface WorkflowBuilder<
  Primary,
  Nodes extends DependentTypes,
  Waits extends WaitsFor,
  Sources extends object = Record<never, never>,
> extends WorkflowDefinition {
  /** Adds a dependent that is created after those it depends on. */
  dependent<
    const Name extends string,
    Resource extends KubernetesObject,
    Input,
    const Names extends keyof Nodes & string = never,
  >(
    name: Name extends keyof Nodes ? DuplicateDependent<Name> : Name,
    options: DependentOptions<Primary, Nodes, Waits, Resource, Input, Names, Sources>,
  ): WorkflowBuilder<
    Primary,
    Nodes & { readonly [N in Name]: Resource },
    Waits & { readonly [N in Name]: Names | Waits[Names] },
    Sources
  >;
}

/** Starts the workflow of a primary kind; `dependent` adds to it. `Sources` is what event sources add to what the functions see. */
export function defineWorkflow<Primary extends KubernetesObject, Sources extends object = Record<never, never>>(
  primary: Pick<ResourceClass<Primary>, "definition">,
): WorkflowBuilder<Primary, Record<never, never>, Record<never, never>, Sources> {
  return builderOf({ primary: primary.definition, dependents: [] }) as unknown as WorkflowBuilder<
    Primary,
    Record<never, never>,
    Record<never, never>,
    Sources
  >;
}

interface UntypedOptions extends Partial<Omit<KubernetesDependent, "resource" | "name">> {
  readonly resource: ResourceClass;
}

function builderOf(definition: WorkflowDefinition): WorkflowDefinition {
  const dependent = (name: string, { resource, ...options }: UntypedOptions) =>
    builderOf({
      primary: definition.primary,
      dependents: [
        ...definition.dependents,
        { dependsOn: [], isGarbageCollected: true, ...options, name, resource: resource.definition },
      ],
    });
  return Object.freeze({ ...definition, dependent });
}
