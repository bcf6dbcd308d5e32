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

/** A schema as it is written, in the words of OpenAPI v3. */
export type RawSchema = { readonly [keyword: string]: unknown };

/** One version of a kind: of a CRD of the project, or a built-in one that a workflow uses. */
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
  /** The paths of the subresource `scale` of a CRD. */
  readonly scale?: NonNullable<CrdVersion["scale"]>;
  readonly isCustom: boolean;
  /** Whether the project describes it without a CRD: its class is generated, as no package has it. */
  readonly isDescribed?: boolean;
  readonly isStorage: boolean;
  readonly isServed: boolean;
  /** Whether a spec describes it by its name alone: there is no class then. */
  readonly isUntyped?: boolean;
  readonly deprecationWarning?: string;
  /** The fields by which the API server selects objects. */
  readonly selectableFields: readonly string[];
  /** Custom: the structural schema as written. Built-in: OpenAPI v3 with references into `definitions`. */
  readonly schema: RawSchema;
  readonly definitions: ReadonlyMap<string, RawSchema>;
  readonly crdFile?: string;
  /** Stands for the whole CRD; absent if nobody remembers what it comes to. */
  readonly digest?: string;
  readonly crd?: object;
}

/** The settings of a controller: exactly what the spec states. */
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

/** The conditions of a dependent; `existing` decides whether it adopts an object. */
export type ConditionName =
  "activationCondition" | "reconcilePrecondition" | "readyPostcondition" | "deletePostcondition" | "existing";

/** A name that an expression of a spec may refer to. */
export type ExpressionName =
  "primary" | "secondary" | "context" | "live" | "item" | "object" | "old" | "isFinalStateUnknown";

/** An expression of a spec. */
export interface ExpressionModel {
  readonly kind: "when";
  readonly expression: string;
  /** Those of the names around it that it uses. */
  readonly names: readonly ExpressionName[];
  /** What it proves of the primary when it is true; absent if that is nothing. */
  readonly proves?: readonly ProvenField[];
  readonly position: SourcePosition;
}

/** Returns where a character of an expression is written. */
export type LocateExpression = (expression: ExpressionModel, offset: number) => SourcePosition | undefined;

/** A function of the user's. */
export interface FunctionModel {
  readonly kind: "function";
  readonly name: string;
}

/** A condition that the runtime ships, with what it is about. */
export interface BuiltinModel {
  readonly kind: "builtin";
  readonly name: BuiltinConditionName;
  /** What the function that makes it is called with; absent if it needs nothing. */
  readonly arguments?: readonly unknown[];
  /** The kind that `crdPresent` is about. Default: that of the dependent or the event source. */
  readonly of?: ResourceModel;
  readonly isNegated?: true;
}

/** What decides a condition. */
export type ConditionModel = ExpressionModel | FunctionModel | BuiltinModel;

/** The kinds of changes that are filtered; `generic` is for all of them. */
export type FilterName = "onAdd" | "onUpdate" | "onDelete" | "generic";

/** What decides which changes of a kind of resource are reconciled. */
export type FiltersModel = { readonly [K in FilterName]?: ExpressionModel | FunctionModel };

/** The keys of labels or annotations that name a primary. */
interface MappingKeys {
  readonly name: string;
  readonly namespace?: string;
  readonly type?: string;
}

/** How the primaries of an object are found. `primaryToSecondary`: by the references of the primaries. */
export type MappingModel =
  | { readonly kind: "ownerReference" }
  | { readonly kind: "primaryToSecondary" }
  | { readonly kind: "label" | "annotation"; readonly keys: MappingKeys }
  | FunctionModel;

/** What is kept of the objects of an event source; `paths` are those beside the metadata. */
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
  /** Default: those of the controller. */
  readonly namespaces?: "all" | "current" | readonly string[];
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly filters: FiltersModel;
  readonly cache: CacheModel;
  readonly maxCachedObjects?: number;
  readonly activationCondition?: BuiltinModel;
}

/** An event source that asks something outside of Kubernetes again and again. */
interface PollingModel {
  readonly kind: "poll" | "perPrimaryPoll";
  readonly name: string;
  readonly intervalMs: number;
  readonly fetchTimeoutMs?: number;
}

/** An event source to which something outside of Kubernetes brings resources. */
interface InboundModel {
  readonly kind: "inbound";
  readonly name: string;
}

/** What a controller reads and does not write. */
export type EventSourceModel = InformerModel | PollingModel | InboundModel;

/** A controller with its dependents in an order in which they can be created. */
export interface ControllerModel {
  readonly name: string;
  readonly primary: ResourceModel;
  readonly dependents: readonly DependentModel[];
  readonly eventSources: readonly EventSourceModel[];
  readonly workflow?: WorkflowSettings;
  readonly removed?: readonly RemovedModel[];
  /** The filters of the primary, which has none for deletions. */
  readonly filters: Omit<FiltersModel, "onDelete">;
  readonly settings: ControllerSettings;
  /** What finds primaries by a value, by the names of the indexes; none if absent. */
  readonly indexes?: { readonly [name: string]: FunctionModel };
  /** Rights beside those that all this needs. */
  readonly extraRules?: readonly ExtraRuleSpec[];
  readonly specFile: string;
}

/** A whole project. */
export interface ProjectModel {
  /** The name of the package, which that of the operator is made from. */
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

/** What every dependent has, whatever it consists of. */
export interface NodeModel {
  readonly name: string;
  /** The names that it had before. */
  readonly movedFrom?: readonly string[];
  readonly dependsOn: readonly DependencySpec[];
  readonly itemsDependOn?: readonly string[];
  /** All that it cannot exist without, directly or through others. */
  readonly waitsFor: readonly string[];
  /** All that it comes after: also what it waits for only if that is wanted, and what its items wait for. */
  readonly follows: readonly string[];
  /** There if it is a bulk dependent. */
  readonly bulk?: { readonly maxConcurrency?: number };
  /** The function that compares, in place of the runtime. */
  readonly matcher?: string;
  readonly timeoutMs?: number;
  readonly retry?: StepRetryModel;
  readonly conditions: { readonly [K in ConditionName]?: ConditionModel };
}

/** What becomes of objects with their primary: the garbage collector deletes them, the operator does before, or it unties them before. */
export type Deletion = "garbageCollected" | "ordered" | "orphan";

/** A part of a name: an expression over the primary, or what that always comes to. */
export type NamePartModel = ExpressionModel | { readonly kind: "constant"; readonly text: string };

/** The name of an object that somebody else makes. */
export interface ReferenceModel {
  readonly name: NamePartModel;
  readonly namespace?: NamePartModel;
}

/** A dependent that is an object of Kubernetes, or several. */
export interface KubernetesDependentModel extends NodeModel {
  readonly resource: ResourceModel;
  readonly mode?: "createOnly" | "readOnly" | "once";
  /** With `once`: another value asks for another object. */
  readonly again?: ExpressionModel;
  /** There if it is one object, which the primary names; it is read-only then. */
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
  /** Paths of fields that belong to another controller. */
  readonly released?: readonly string[];
  readonly operations?: { readonly [K in Capability]?: OperationSpec };
}

/** Returns what a function of the user's does with the object of a dependent, in the place of the runtime. */
export function ownOperationsOf({ operations = {} }: KubernetesDependentModel): Capability[] {
  return CAPABILITIES.filter((each) => operations[each] === "own");
}

/** All that can be done with an external resource. */
export const CAPABILITIES = ["create", "update", "delete"] as const;

/** What can be done with an external resource. */
type Capability = (typeof CAPABILITIES)[number];

/** A type that a file of the user's exports. */
export interface ImportedTypeModel {
  readonly kind: "imported";
  readonly file: string;
  readonly name: string;
}

/** Where the type of an external resource comes from: the stub, another file of the user's, or a schema. */
export type ExternalTypeModel =
  { readonly kind: "declared" } | ImportedTypeModel | { readonly kind: "schema"; readonly schema: RawSchema };

/** The type of what is kept of an external resource where that is more than an id: one of the user's, or that of a field of a kind. */
export type KeptTypeModel =
  | ImportedTypeModel
  | {
      readonly kind: "field";
      readonly resource: ResourceModel;
      readonly path: readonly string[];
      /** Whether the field has those of all items by their keys. */
      readonly isMap: boolean;
    };

/** Where that is kept. */
type ExternalStateModel =
  | { readonly kind: "status"; readonly path: readonly string[] }
  | ({ readonly perItem?: true } & (
      | { readonly kind: "configMap" | "secret" }
      | { readonly kind: "resource"; readonly resource: ResourceModel; readonly path: readonly string[] }
    ));

/** A dependent that Kubernetes does not have. */
export interface ExternalDependentModel extends NodeModel {
  readonly external: {
    readonly source:
      | { readonly kind: "poll" | "perPrimaryPoll"; readonly intervalMs: number; readonly fetchTimeoutMs?: number }
      | { readonly kind: "inbound"; readonly isFetched?: true; readonly fetchTimeoutMs?: number }
      | { readonly kind: "eventSource"; readonly name: string };
    readonly type: ExternalTypeModel;
    /** The type of the desired state. Default: the type of a resource. */
    readonly desiredType?: ImportedTypeModel;
    /** Whether its event source has resources of other dependents, and a function of the user's says which are its own. */
    readonly isSelected?: true;
    readonly state?: ExternalStateModel;
    /** Absent if nothing but an id is kept. */
    readonly keptType?: KeptTypeModel;
    readonly capabilities: readonly Capability[];
    readonly onDeleteFailure?: "release";
    readonly creationGraceMs?: number;
  };
}

/** A dependent of a controller. */
export type DependentModel = KubernetesDependentModel | ExternalDependentModel;

/** Tells whether a dependent is an object of Kubernetes. */
export function isKubernetes(dependent: DependentModel): dependent is KubernetesDependentModel {
  return "resource" in dependent;
}

/** Returns the kinds of the objects that a dependent writes, for ids that are kept as well. */
export function kindsOf(dependent: DependentModel): ResourceModel[] {
  if (isKubernetes(dependent)) return [dependent.resource];
  const { state } = dependent.external;
  return state?.kind === "resource" ? [state.resource] : [];
}

/** Tells whether a dependent is read-only: somebody else makes it, and it has no `desired`. */
export function isReadOnly(dependent: DependentModel): boolean {
  if (isKubernetes(dependent)) return dependent.mode === "readOnly";
  const { capabilities } = dependent.external;
  return !capabilities.includes("create") && !capabilities.includes("update");
}

/** Formats the name of an object that somebody else makes, as the spec states it. */
export function referenceText({ name, namespace }: ReferenceModel): string {
  const textOf = (part: NamePartModel) =>
    part.kind === "constant" ? JSON.stringify(part.text) : part.expression.replaceAll(/\s+/g, " ").trim();
  return namespace === undefined ? textOf(name) : `${textOf(name)} in ${textOf(namespace)}`;
}

/** A dependent of an earlier version. */
interface RemovedModel {
  readonly name: string;
  readonly resource: ResourceModel;
  readonly deletion: Deletion;
  readonly namespace?: string;
  readonly cluster?: string;
}

/** The settings of a workflow: exactly what the spec states. */
export interface WorkflowSettings {
  readonly invocation?: "explicit";
  readonly exceptions?: "result";
  readonly maxConcurrency?: number;
  readonly pruning?: false;
}

/** Returns the kind that a spec describes by its name alone. */
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

/** Returns every kind that the spec of a controller names, each once, that of the primary first. */
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

/** A condition of a controller that asks whether a kind is served. */
interface PresenceCheck {
  readonly resource: ResourceModel;
  /** What the condition decides about: `dependent ingress`. */
  readonly about: string;
  /** Whether it asks another cluster. */
  readonly isElsewhere: boolean;
}

/** Returns what the conditions of a controller ask by `crdPresent`. */
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
