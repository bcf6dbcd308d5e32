import type { SourcePosition } from "../diagnostic.js";
import type { CrdVersion } from "../read/crd/read-crds.js";
import type {
  BuiltinConditionName,
  DependencySpec,
  ExtraRuleSpec,
  OperationSpec,
  UntypedKindSpec,
} from "../read/workflow-spec.js";
import type { ProvenField } from "./expression.js";

export type { Diagnostic, SourcePosition } from "../diagnostic.js";
export type { ExtraRuleSpec } from "../read/workflow-spec.js";

/** A schema as written, with the keywords of OpenAPI v3. */
export type RawSchema = { readonly [keyword: string]: unknown };

/** One version of a kind: of a CRD of the project, or of a built-in kind that a workflow uses. */
export interface ResourceModel {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly listKind: string;
  readonly scope: "Namespaced" | "Cluster";
  readonly hasStatusSubresource: boolean;
  /** Paths of the scale subresource of a CRD. */
  readonly scale?: NonNullable<CrdVersion["scale"]>;
  readonly isCustom: boolean;
  /** True if the project describes the kind without a CRD. Its class is generated, because no package contains it. */
  readonly isDescribed?: boolean;
  readonly isStorage: boolean;
  readonly isServed: boolean;
  /** True for an untyped kind, which the spec describes only by its names. It has no class. */
  readonly isUntyped?: boolean;
  readonly deprecationWarning?: string;
  /** Fields that the API server supports in field selectors. */
  readonly selectableFields: readonly string[];
  /** For a custom kind, the structural schema as written. For a built-in kind, OpenAPI v3 with references into `definitions`. */
  readonly schema: RawSchema;
  readonly definitions: ReadonlyMap<string, RawSchema>;
  readonly crdFile?: string;
  /** Digest of the whole CRD. Absent if results are not cached. */
  readonly digest?: string;
  readonly crd?: object;
}

/** The settings of a controller that the spec sets. Flags and enums that equal their default are absent. */
export interface ControllerSettings {
  readonly formerNames?: readonly string[];
  readonly namespaces?: readonly string[] | "current";
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly onAllEvents?: true;
  readonly generationAware?: false;
  readonly defaultFilters?: false;
  readonly serverSideApply?: false;
  readonly statusConditions?: "managed";
  readonly conditionPrefix?: string;
  readonly maxConcurrentReconciles?: number;
  readonly retry?: {
    readonly maxRetries?: number;
    readonly initialIntervalMs?: number;
    readonly multiplier?: number;
    readonly maxIntervalMs?: number;
  };
  readonly rateLimit?: { readonly maxReconciliations: number; readonly withinMs: number };
  readonly maxReconciliationIntervalMs?: number;
  readonly reconcileTimeoutMs?: number;
  readonly cleanupPolicy?: "sweep";
  readonly cleanUpUnselected?: true;
  readonly cleanupTimeoutMs?: number;
  readonly stalledAfterMs?: number;
  readonly watchFailurePolicy?: "block";
  readonly fieldManager?: string;
  readonly formerFieldManagers?: readonly string[];
  readonly finalizer?: string;
  readonly formerFinalizers?: readonly string[];
}

/** The conditions of a dependent. `existing` decides whether an existing object is adopted. */
export type ConditionName =
  "activationCondition" | "reconcilePrecondition" | "readyPostcondition" | "deletePostcondition" | "existing";

/** A name that an expression of a spec may use. */
export type ExpressionName =
  "primary" | "secondary" | "context" | "live" | "item" | "object" | "old" | "isFinalStateUnknown";

/** An expression of a spec. */
export interface ExpressionModel {
  readonly kind: "when";
  readonly expression: string;
  /** Names that the expression uses. */
  readonly names: readonly ExpressionName[];
  /** Properties of the primary that follow if the expression is true. Absent if there are none. */
  readonly proves?: readonly ProvenField[];
  readonly position: SourcePosition;
}

/** Returns the position of a character of an expression. */
export type LocateExpression = (expression: ExpressionModel, offset: number) => SourcePosition | undefined;

/** A user function. */
export interface FunctionModel {
  readonly kind: "function";
  readonly name: string;
}

/** A built-in condition of the runtime, with its arguments. */
export interface BuiltinModel {
  readonly kind: "builtin";
  readonly name: BuiltinConditionName;
  /** Arguments of the factory function. Absent if the condition takes none. */
  readonly arguments?: readonly unknown[];
  /** The kind of a `crdPresent` condition. Default: the kind of the dependent or event source */
  readonly of?: ResourceModel;
  readonly isNegated?: true;
}

/** A condition of any form. */
export type ConditionModel = ExpressionModel | FunctionModel | BuiltinModel;

/** Events that a filter applies to; `generic` applies to all. */
export type FilterName = "onAdd" | "onUpdate" | "onDelete" | "generic";

/** The filters of a watched resource: which events trigger a reconcile. */
export type FiltersModel = { readonly [K in FilterName]?: ExpressionModel | FunctionModel };

/** Keys of the labels or annotations that identify a primary. */
interface MappingKeys {
  readonly name: string;
  readonly namespace?: string;
  readonly type?: string;
}

/** How an object is mapped to primaries. `primaryToSecondary` uses the references of primaries. */
export type MappingModel =
  | { readonly kind: "ownerReference" }
  | { readonly kind: "primaryToSecondary" }
  | { readonly kind: "label" | "annotation"; readonly keys: MappingKeys }
  | FunctionModel;

/** Which parts of the objects of an event source are cached; `paths` are cached in addition to the metadata. */
export type CacheModel =
  | { readonly kind: "full" }
  | { readonly kind: "metadata" }
  | { readonly kind: "paths"; readonly paths: readonly string[] };

/** An event source that watches a kind. */
export interface InformerModel {
  readonly kind: "informer";
  readonly name: string;
  readonly resource: ResourceModel;
  readonly mapping: MappingModel;
  readonly primaryToSecondary?: FunctionModel;
  /** Default: the namespaces of the controller */
  readonly namespaces?: "all" | "current" | readonly string[];
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly filters: FiltersModel;
  readonly cache: CacheModel;
  readonly maxCachedObjects?: number;
  readonly activationCondition?: BuiltinModel;
}

/** An event source that polls an external system. */
interface PollingModel {
  readonly kind: "poll" | "perPrimaryPoll";
  readonly name: string;
  readonly intervalMs: number;
  readonly fetchTimeoutMs?: number;
}

/** An event source to which user code pushes external resources. */
interface InboundModel {
  readonly kind: "inbound";
  readonly name: string;
}

/** A source of events about resources that the controller reads but does not write. */
export type EventSourceModel = InformerModel | PollingModel | InboundModel;

/** A controller, with its dependents in creation order. */
export interface ControllerModel {
  readonly name: string;
  readonly primary: ResourceModel;
  readonly dependents: readonly DependentModel[];
  readonly eventSources: readonly EventSourceModel[];
  readonly workflow?: WorkflowSettings;
  readonly removed?: readonly RemovedModel[];
  /** Filters of the primary, which cannot filter deletions. */
  readonly filters: Omit<FiltersModel, "onDelete">;
  readonly settings: ControllerSettings;
  /** Functions that index primaries, by name of the index. Default: none */
  readonly indexes?: { readonly [name: string]: FunctionModel };
  /** Permissions in addition to those that the graph requires. */
  readonly extraRules?: readonly ExtraRuleSpec[];
  readonly specFile: string;
}

/** A complete project. */
export interface ProjectModel {
  /** Name of the package, from which the name of the operator is derived. */
  readonly packageName: string;
  readonly resources: readonly ResourceModel[];
  readonly controllers: readonly ControllerModel[];
}

/** Retries of a dependent within one reconcile. */
interface StepRetryModel {
  readonly maxRetries: number;
  readonly initialIntervalMs?: number;
  readonly multiplier?: number;
  readonly maxIntervalMs?: number;
}

/** Options that all dependents have in common. */
export interface NodeModel {
  readonly name: string;
  /** Former names. */
  readonly movedFrom?: readonly string[];
  readonly dependsOn: readonly DependencySpec[];
  readonly itemsDependOn?: readonly string[];
  /** Required dependencies, including transitive ones. */
  readonly waitsFor: readonly string[];
  /** All dependencies that are reconciled before it: also optional dependencies, and those of its items. */
  readonly follows: readonly string[];
  /** Set for a bulk dependent. */
  readonly bulk?: { readonly maxConcurrency?: number };
  /** User function that replaces the matcher of the runtime. */
  readonly matcher?: string;
  readonly timeoutMs?: number;
  readonly retry?: StepRetryModel;
  readonly conditions: { readonly [K in ConditionName]?: ConditionModel };
}

/**
 * How objects are removed with their primary: by the garbage collector, by the operator before the primary, or not at all because the operator
 * orphans them.
 */
export type Deletion = "garbageCollected" | "ordered" | "orphan";

/** A name or namespace: an expression over the primary, or its constant value. */
export type NamePartModel = ExpressionModel | { readonly kind: "constant"; readonly text: string };

/** The name of an object that another client creates. */
export interface ReferenceModel {
  readonly name: NamePartModel;
  readonly namespace?: NamePartModel;
}

/** A dependent with one or more Kubernetes objects. */
export interface KubernetesDependentModel extends NodeModel {
  readonly resource: ResourceModel;
  readonly mode?: "createOnly" | "readOnly" | "once";
  /** With `once`: the object is created again when the value of this expression changes. */
  readonly again?: ExpressionModel;
  /** Set for a single object that the primary references. The dependent is then read-only. */
  readonly ref?: ReferenceModel;
  readonly namespace?: string;
  readonly cluster?: string;
  readonly eventSource?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly filters: FiltersModel;
  readonly deletion: Deletion;
  readonly existing?: "adopt";
  readonly heldForCleanup?: true;
  readonly onImmutable?: "recreate";
  readonly serverSideApply?: false;
  readonly fieldManager?: string;
  /** Paths of fields that are released to another controller. */
  readonly released?: readonly string[];
  readonly operations?: { readonly [K in Capability]?: OperationSpec };
}

/** Returns the operations of a dependent that a user function performs instead of the runtime. */
export function ownOperationsOf({ operations = {} }: KubernetesDependentModel): Capability[] {
  return CAPABILITIES.filter((each) => operations[each] === "own");
}

/** All operations on an external resource. */
export const CAPABILITIES = ["create", "update", "delete"] as const;

/** An operation on an external resource. */
type Capability = (typeof CAPABILITIES)[number];

/** A type that a user file exports. */
export interface ImportedTypeModel {
  readonly kind: "imported";
  readonly file: string;
  readonly name: string;
}

/** Origin of the type of an external resource: the stub, another user file, or a schema. */
export type ExternalTypeModel =
  { readonly kind: "declared" } | ImportedTypeModel | { readonly kind: "schema"; readonly schema: RawSchema };

/** Type of the stored state of an external resource, if it is more than an id: a user type, or the type of a field of a kind. */
export type KeptTypeModel =
  | ImportedTypeModel
  | {
      readonly kind: "field";
      readonly resource: ResourceModel;
      readonly path: readonly string[];
      /** True if the field contains the state of all items, by key. */
      readonly isMap: boolean;
    };

/** Where the ids of external resources are stored. */
type ExternalStateModel =
  | { readonly kind: "status"; readonly path: readonly string[] }
  | ({ readonly perItem?: true } & (
      | { readonly kind: "configMap" | "secret" }
      | { readonly kind: "resource"; readonly resource: ResourceModel; readonly path: readonly string[] }
    ));

/** A dependent with resources outside of Kubernetes. */
export interface ExternalDependentModel extends NodeModel {
  readonly external: {
    readonly source:
      | { readonly kind: "poll" | "perPrimaryPoll"; readonly intervalMs: number; readonly fetchTimeoutMs?: number }
      | { readonly kind: "inbound"; readonly isFetched?: true; readonly fetchTimeoutMs?: number }
      | { readonly kind: "eventSource"; readonly name: string };
    readonly type: ExternalTypeModel;
    /** Type of the desired resource. Default: the type of the resource */
    readonly desiredType?: ImportedTypeModel;
    /** True if the event source is shared with other dependents, and a user function identifies the resources of this one. */
    readonly isSelected?: true;
    readonly state?: ExternalStateModel;
    /** Absent if only the id is stored. */
    readonly keptType?: KeptTypeModel;
    readonly capabilities: readonly Capability[];
    readonly onDeleteFailure?: "release";
    readonly creationGraceMs?: number;
  };
}

/** A dependent of a controller. */
export type DependentModel = KubernetesDependentModel | ExternalDependentModel;

/** Returns whether a dependent has Kubernetes objects. */
export function isKubernetes(dependent: DependentModel): dependent is KubernetesDependentModel {
  return "resource" in dependent;
}

/** Returns the kinds of the objects that a dependent writes, including those that store its ids. */
export function kindsOf(dependent: DependentModel): ResourceModel[] {
  if (isKubernetes(dependent)) return [dependent.resource];
  const { state } = dependent.external;
  return state?.kind === "resource" ? [state.resource] : [];
}

/** Returns whether a dependent is read-only: it is created by another client and has no `desired`. */
export function isReadOnly(dependent: DependentModel): boolean {
  if (isKubernetes(dependent)) return dependent.mode === "readOnly";
  const { capabilities } = dependent.external;
  return !capabilities.includes("create") && !capabilities.includes("update");
}

/** Formats a reference as in the spec. */
export function referenceText({ name, namespace }: ReferenceModel): string {
  const textOf = (part: NamePartModel) =>
    part.kind === "constant" ? JSON.stringify(part.text) : part.expression.replaceAll(/\s+/g, " ").trim();
  return namespace === undefined ? textOf(name) : `${textOf(name)} in ${textOf(namespace)}`;
}

/** A removed dependent. */
interface RemovedModel {
  readonly name: string;
  readonly resource: ResourceModel;
  readonly deletion: Deletion;
  readonly namespace?: string;
  readonly cluster?: string;
}

/** The settings of a workflow that the spec sets. Flags and enums that equal their default are absent. */
export interface WorkflowSettings {
  readonly invocation?: "explicit";
  readonly exceptions?: "result";
  readonly maxConcurrency?: number;
  readonly pruning?: false;
}

/** Returns the model of an untyped kind. */
export function untypedResource({ apiVersion, kind, plural, scope }: UntypedKindSpec): ResourceModel {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  return Object.freeze({
    ...{ group, version, kind, plural, scope },
    ...{ singular: kind.toLowerCase(), listKind: `${kind}List`, hasStatusSubresource: true },
    ...{ isCustom: true, isStorage: true, isServed: true, isUntyped: true },
    selectableFields: ["metadata.name", ...(scope === "Namespaced" ? ["metadata.namespace"] : [])],
    schema: {},
    definitions: new Map(),
  });
}

/** Returns the distinct kinds that the spec of a controller names, the primary's first. */
export function usedKindsOf({
  primary,
  dependents,
  eventSources,
  removed = [],
}: Pick<ControllerModel, "primary" | "dependents" | "eventSources" | "removed">): ResourceModel[] {
  const written = [...dependents.flatMap(kindsOf), ...removed.map(({ resource }) => resource)];
  const watched = eventSources.flatMap((source) => (source.kind === "informer" ? [source.resource] : []));
  const asked = presenceChecksOf({ dependents, eventSources }).map(({ resource }) => resource);
  return [...new Set([primary, ...written, ...watched, ...asked])];
}

/** A `crdPresent` condition of a controller. */
interface PresenceCheck {
  readonly resource: ResourceModel;
  /** The member with the condition, for example `dependent ingress`. */
  readonly about: string;
  /** True if the kind is checked in another cluster. */
  readonly isElsewhere: boolean;
}

/** Returns the `crdPresent` conditions of a controller. */
export function presenceChecksOf({
  dependents,
  eventSources,
}: Pick<ControllerModel, "dependents" | "eventSources">): PresenceCheck[] {
  const check = (
    condition: ConditionModel | undefined,
    about: string,
    own: ResourceModel | undefined,
    isElsewhere = false,
  ): PresenceCheck[] => {
    if (condition?.kind !== "builtin" || condition.name !== "crdPresent") return [];
    const resource = condition.of ?? own;
    return resource === undefined ? [] : [{ resource, about, isElsewhere }];
  };
  return [
    ...dependents.flatMap((dependent) => {
      const own = isKubernetes(dependent) ? dependent.resource : undefined;
      const isElsewhere = isKubernetes(dependent) && dependent.cluster !== undefined;
      const about = `dependent ${dependent.name}`;
      return Object.values(dependent.conditions).flatMap((each) => check(each, about, own, isElsewhere));
    }),
    ...eventSources.flatMap((source) =>
      source.kind === "informer"
        ? check(source.activationCondition, `event source ${source.name}`, source.resource)
        : [],
    ),
  ];
}
