import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { Defined, ResourceClass } from "../base/resource-definition.js";
import type { ExternalOrigin } from "../sources/external/external-watch.js";
import type {
  BulkOptions,
  Condition,
  ConditionArguments,
  Conditions,
  DependentMatcher,
  Desired,
  ExternalArguments,
  ExternalState,
  KeptState,
  KubernetesDependent,
  NodeDefinition,
  ObjectReference,
  ObjectState,
} from "../workflow/definition/workflow-definition.js";
import type { MaybePromise } from "../sources/external/external-source.js";
import type { ConditionDetails } from "../workflow/workflow-result.js";
import type { EventFilters } from "../cache/resource-change.js";

/** The items of a bulk dependent by their keys. */
export type ItemsOf<Resource> = { readonly [key: string]: Resource };

/** What the conditions of a dependent find, by their names. */
export interface NodeDetails<Activation, Precondition, Ready, Delete> {
  readonly activationCondition: Activation;
  readonly reconcilePrecondition: Precondition;
  readonly readyPostcondition: Ready;
  readonly deletePostcondition: Delete;
}

/** What a chain states about any dependent; `Details` are what its conditions find, and `Known` is what may be there in a cleanup. */
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
  /** Dependents that were declared before; an optional dependency is waited for only if it is wanted. */
  readonly dependsOn?: readonly Needed[];
  /** Bulk dependents of which each item waits for the item of the same key only. */
  readonly itemsDependOn?: [Bulk] extends [undefined] ? OnlyOfBulkDependents : readonly ItemNames[];
  readonly bulk?: Bulk;
  readonly activationCondition?: Condition<Primary, Secondary, Details["activationCondition"], Live>;
  readonly reconcilePrecondition?: Condition<Primary, Secondary, Details["reconcilePrecondition"], Live>;
  readonly readyPostcondition?: Condition<Primary, Secondary, Details["readyPostcondition"], Live>;
  /**
   * Whatever the dependent waits for may be gone in a cleanup. A method, so that a function whose parameter says otherwise still fits, such as
   * one that serves as readyPostcondition, too.
   */
  deletePostcondition?(
    args: ConditionArguments<Primary, Known, Live>,
  ): ReturnType<Condition<Primary, Known, Details["deletePostcondition"], Live>>;
}

/** The type of the options that only a bulk dependent has, in all other dependents. The compiler prints its text. */
export interface OnlyOfBulkDependents {
  readonly "only the items of a bulk dependent wait for other items": never;
}

/** What `desired` returns: one input, or of a bulk dependent all of them by their keys. */
export type WantedOf<Input, Bulk> = [Bulk] extends [undefined] ? NoInfer<Input> : ItemsOf<NoInfer<Input>>;

/** The type of the options that a read-only dependent does not have. The compiler prints its text. */
export interface OnlyOfWrittenDependents {
  readonly "a read-only dependent has nothing to desire": never;
}

/** What a read-only dependent must not have, and any other must. */
export type DesiredOption<Primary, Secondary, Wanted, Mode> = [Mode] extends ["readOnly"]
  ? { readonly desired?: OnlyOfWrittenDependents }
  : { readonly desired: Desired<Primary, Secondary, Wanted> };

/** What a chain states about a dependent that is an object of Kubernetes, or several; the words are those of the workflow spec. */
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
   * What to do if the API server refuses a write because a field of the object is immutable: `recreate` deletes the object and creates it again.
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

/** Kinds whose deletion loses data are never deleted to create them again. */
export type RecreateOption<Resource> = [Resource] extends [DataKind] ? never : "recreate";

/**
 * Returns a `desired` as it is. States that the conditions of its dependent guarantee what its type says of the primary: they are evaluated
 * before it is called. Generated code uses it for what a `when:` tests.
 *
 * @example desired: guarded(backup.desired), reconcilePrecondition: ({ primary }) => primary.spec.backup !== undefined
 */
export function guarded<Primary, Secondary, Input, Guarded extends Primary>(
  desired: Desired<Primary, Secondary, Input, Guarded>,
): Desired<Primary, Secondary, Input> {
  return desired as never;
}

/** What a chain states about an object that somebody else makes. */
export interface ReferenceOptions<Primary, Resource extends KubernetesObject> extends Pick<
  KubernetesDependent,
  "cluster" | "fieldSelector" | "heldForCleanup" | "labelSelector"
> {
  readonly resource: Defined<Resource>;
  readonly ref: ObjectReference<Primary>;
  readonly filters?: EventFilters<NoInfer<Resource>>;
}

/** What the `fetch` of one primary is given besides the primary. */
export interface FetchContext<Secondary = object, State extends KeptState = string> {
  /** Aborted when the operator stops. */
  readonly signal: AbortSignal;
  /** The live dependents and the resources of event sources, by name: for an address, or for credentials. */
  readonly secondary: Secondary;
  /** What is kept of created resources, by the keys of items; the key is empty unless the dependent is a bulk one. */
  readonly state: ReadonlyMap<string, State>;
}

/** Where the states of created resources are kept. */
export type ExternalStateOption = Extract<ExternalState, { kind: "status" }> | ObjectState<Defined>;

/** Where the live resources of an external dependent are known. */
export type ExternalSourceOption<Primary, Known, Resource, State extends KeptState = string> = ExternalOrigin<
  Primary,
  FetchContext<Known, State>,
  Resource
>;

/**
 * What a chain states about an external dependent; a function that is absent cannot be done. `Wanted` is the type of a desired `Resource`: the
 * same, unless the parameters of `create`, `update` or `matches` say otherwise, for example if the service adds an id.
 */
export interface ExternalOptions<Primary, Secondary, Known, Resource, Wanted, Bulk, State extends KeptState = string> {
  readonly source: ExternalSourceOption<Primary, Known, Resource, State>;
  /** What tells a resource from others of its primary; of bulk dependents the item's key. Without `state` it gets what is desired as well. */
  readonly idOf: (resource: Resource) => string;
  /** Tells whether a resource that the event source has is of this dependent. Default: all are, or with `state` those whose ids are kept */
  readonly isOwn?: (resource: NoInfer<Resource>, primary: Primary) => boolean;
  /** Where the id of a created resource is kept, for services in which nothing else leads from a primary to its resources. Default: nowhere. */
  readonly state?: ExternalStateOption;
  /**
   * What is kept of a created resource where its id is not enough: an object that has the id as `id`. It is asked once, after `create`.
   * State the type of its parameter, so that the other functions know the type of the state. Default: the id alone, a text
   */
  readonly stateOf?: (resource: NoInfer<Resource>) => State & { readonly id: string };
  /**
   * What becomes of a deleted primary when `delete` fails in all attempts of its step: `release` lets it go and leaves the resource, with a
   * line in the log and an Event. Default: `block`, the finalizer stays until the deletion succeeds.
   */
  readonly onDeleteFailure?: "block" | "release";
  /**
   * How long what is fetched may lag behind what the operator created, updated or deleted, in milliseconds. So long a creation counts as there,
   * also in a cleanup, and after a restart nothing is created for a primary of before. 0: every fetch is believed at once, for a service whose
   * lists are never late. Default: 30,000. Example: `creationGraceMs: 120_000`
   */
  readonly creationGraceMs?: number;
  /** Absent if it is only read. */
  readonly desired?: Desired<Primary, Secondary, WantedOf<Wanted, Bulk>>;
  readonly create?: (desired: Wanted, args: ExternalArguments<Primary, Secondary, State>) => MaybePromise<Resource>;
  readonly update?: (
    desired: Wanted,
    live: Resource,
    args: ExternalArguments<Primary, Secondary, State>,
  ) => MaybePromise<NoInfer<Resource>>;
  /**
   * Whatever it waits for may be gone while the primary is being deleted, so any of it may be missing in `secondary`. A method, so that
   * a function whose parameter says otherwise still fits.
   */
  delete?(live: Resource, args: ExternalArguments<Primary, Known, State>): MaybePromise<void>;
  /** Tells whether a live resource is as desired. Default: deep equality */
  readonly matches?: (desired: Wanted, live: Resource) => boolean;
}

/** How the items of a bulk dependent are written; `undefined` for any other dependent. */
export type BulkOption = BulkOptions | undefined;
