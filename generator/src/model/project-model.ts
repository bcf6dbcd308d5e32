import type { SourcePosition } from "../diagnostic.js";
import type { CrdVersion } from "../input/crd/crd.js";
import type { BuiltinConditionName, ExtraRuleSpec } from "../input/workflow-spec.js";
import type { DependentModel, RemovedModel, WorkflowSettings } from "./dependent-model.js";
import type { ProvenField } from "./expression/proven-fields.js";

export type { Diagnostic, SourcePosition } from "../diagnostic.js";
export type { ExtraRuleSpec } from "../input/workflow-spec.js";
export { isKubernetes, isReadOnly, kindsOf, ownOperationsOf, referenceText } from "./dependent-model.js";
export type {
  Capability,
  DependentModel,
  ExternalDependentModel,
  ExternalTypeModel,
  KeptTypeModel,
  KubernetesDependentModel,
  NamePartModel,
  NodeModel,
  ReferenceModel,
  RemovedModel,
  WorkflowSettings,
} from "./dependent-model.js";

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
export interface MappingKeys {
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
export interface PollingModel {
  readonly kind: "poll" | "perPrimaryPoll";
  readonly name: string;
  readonly intervalMs: number;
  readonly fetchTimeoutMs?: number;
}

/** An event source to which something outside of Kubernetes brings resources. */
export interface InboundModel {
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
