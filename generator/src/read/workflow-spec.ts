import type { YamlDocument } from "./yaml/yaml-document.js";

/** Names of the four conditions in a spec. */
export const CONDITION_NAMES = [
  "activationCondition",
  "reconcilePrecondition",
  "readyPostcondition",
  "deletePostcondition",
] as const;

/** Names of the built-in conditions. */
export type BuiltinConditionName = ConditionWord | "condition" | "fieldEquals";

/** Built-in conditions without arguments. */
export type ConditionWord = "ready" | "bound" | "deleted" | "crdPresent";

/** A condition in a spec: a name, or a single key with its arguments. */
export type ConditionSpec =
  | ConditionWord
  | PresenceSpec
  | { readonly not: PresenceSpec }
  | { readonly when: string }
  | { readonly function: string }
  | { readonly condition: StatusConditionSpec }
  | { readonly fieldEquals: FieldEqualsSpec };

/** Whether the API server serves the kind of the dependent or event source, or the kind `of`. */
export type PresenceSpec = "crdPresent" | { readonly crdPresent: { readonly of: string | UntypedKindSpec } };

/** Argument of `condition`: a condition in the status of the live object. */
export interface StatusConditionSpec {
  readonly type: string;
  readonly status?: "True" | "False" | "Unknown";
}

/** Argument of `fieldEquals`: a field of the live object. */
export interface FieldEqualsSpec {
  readonly path: string;
  readonly value: string | number | boolean;
}

/** Names of the filters in a spec. */
export const FILTER_NAMES = ["onAdd", "onUpdate", "onDelete", "generic"] as const;

/** A filter in a spec. Exactly one of the fields is set. */
export interface FilterSpec {
  readonly when?: string;
  readonly function?: string;
}

/** The filters of a watched resource, by event. */
export type FiltersSpec = Partial<Record<(typeof FILTER_NAMES)[number], FilterSpec>>;

/** Keys of the labels or annotations that identify a primary. */
export interface MappingKeysSpec {
  readonly name: string;
  readonly namespace?: string;
  readonly type?: string;
}

/** How an object is mapped to primaries. In the object form, exactly one field is set. */
export type MappingSpec =
  | "ownerReference"
  | { readonly label?: MappingKeysSpec; readonly annotation?: MappingKeysSpec; readonly function?: string };

/** Which parts of the objects of an event source are cached. */
export type CacheSpec = "full" | "metadata" | { readonly paths: readonly string[] };

/** A polling schedule in a spec. */
export interface ScheduleSpec {
  readonly every: string;
  readonly fetchTimeout?: string;
}

/** Namespaces to watch: all, the namespace of the operator, or a list. */
export type NamespacesSpec = "all" | "current" | readonly string[];

/** An untyped kind, which a spec describes completely. */
export interface UntypedKindSpec {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly scope: "Namespaced" | "Cluster";
}

/** An event source in a spec. Exactly one of `resource`, `poll`, `perPrimaryPoll`, and `inbound` is set; most other fields require `resource`. */
export interface EventSourceSpec {
  readonly resource?: string | UntypedKindSpec;
  readonly poll?: ScheduleSpec;
  readonly perPrimaryPoll?: ScheduleSpec;
  readonly inbound?: object;
  readonly mapping?: MappingSpec;
  readonly primaryToSecondary?: { readonly function: string };
  readonly namespaces?: NamespacesSpec | "sameAsController";
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly filters?: FiltersSpec;
  readonly cache?: CacheSpec;
  readonly maxCachedObjects?: number;
  readonly activationCondition?: PresenceSpec | { readonly not: PresenceSpec };
  readonly accept?: readonly AcceptanceSpec[];
}

/** Where ids are stored. One of `in`, `status`, and `resource` is set. */
export interface ExternalStateSpec {
  readonly in?: "configMap" | "secret";
  readonly status?: string;
  /** A kind. `path` is the field of its objects that stores the id. */
  readonly resource?: string;
  readonly path?: string;
  /** File and exported type of the state in a ConfigMap or Secret. Default: a string, the id */
  readonly type?: string;
  readonly perItem?: true;
}

/** An external dependent in a spec. Exactly one of `poll`, `perPrimaryPoll`, `inbound`, and `eventSource` is set. */
export interface ExternalSpec {
  readonly poll?: ScheduleSpec;
  readonly perPrimaryPoll?: ScheduleSpec;
  readonly inbound?: { readonly fetch?: true; readonly fetchTimeout?: string };
  readonly eventSource?: string;
  /** File and exported type, for example `src/database.ts#Database`. */
  readonly type?: string;
  /** File with a JSON Schema. */
  readonly schema?: string;
  /** File and exported type of the desired resource. Default: the type of the resource */
  readonly desiredType?: string;
  readonly state?: ExternalStateSpec;
  readonly capabilities?: readonly ("create" | "update" | "delete")[];
  readonly onDeleteFailure?: "block" | "release";
  readonly creationGrace?: string;
}

/** Retries within a reconcile in a spec. */
export interface RetrySpec {
  readonly maxRetries: number;
  readonly initialInterval?: string;
  readonly multiplier?: number;
  readonly maxInterval?: string;
}

/** A dependency: a required one, or an optional one that is only waited for while it is active. */
export type DependencySpec = string | { readonly name: string; readonly optional: true };

/** An operation in a spec: performed by a user function, or never. */
export type OperationSpec = "own" | false;

/** An accepted warning about the controller or its CRDs, a dependent, an event source, or a rule of `rbac.extra`. */
export interface AcceptanceSpec {
  readonly rule: string;
  readonly reason: string;
}

/** The name of an object of another client, as expressions over `primary`. */
export interface ReferenceSpec {
  readonly name: string;
  readonly namespace?: string;
}

/** A dependent in a spec. Exactly one of `resource` and `external` is set. */
export interface DependentSpec extends Partial<Record<(typeof CONDITION_NAMES)[number], ConditionSpec>> {
  readonly resource?: string | UntypedKindSpec;
  readonly external?: ExternalSpec;
  readonly ref?: ReferenceSpec;
  readonly dependsOn?: readonly DependencySpec[];
  readonly itemsDependOn?: readonly string[];
  readonly bulk?: true | { readonly maxConcurrency?: number };
  readonly mode?: "managed" | "createOnly" | "readOnly" | "once";
  readonly again?: string;
  readonly namespace?: string;
  readonly cluster?: string;
  readonly eventSource?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly filters?: FiltersSpec;
  readonly deletion?: DeletionSpec;
  readonly existing?: "refuse" | "adopt" | Exclude<ConditionSpec, ConditionWord>;
  readonly heldForCleanup?: boolean;
  readonly onImmutable?: "fail" | "recreate";
  readonly serverSideApply?: boolean;
  readonly fieldManager?: string;
  readonly released?: readonly string[];
  readonly matcher?: { readonly function: string };
  readonly operations?: { readonly [K in "create" | "update" | "delete"]?: OperationSpec };
  readonly timeout?: string;
  readonly retry?: RetrySpec;
  readonly accept?: readonly AcceptanceSpec[];
}

/**
 * How the objects of a dependent are removed: by the garbage collector, by the operator, or not at all, because their link to the primary is removed.
 */
export type DeletionSpec = "garbageCollected" | "ordered" | "orphan";

/** A removed dependent in a spec. */
export interface RemovedSpec {
  /** `external` for external resources. */
  readonly resource: string | UntypedKindSpec;
  readonly deletion: DeletionSpec;
  readonly namespace?: string;
  readonly cluster?: string;
}

/** A renamed dependent. */
export interface MovedSpec {
  readonly from: string;
  readonly to: string;
}

/** The settings of a workflow in a spec. */
export interface WorkflowSettingsSpec {
  readonly invocation?: "implicit" | "explicit";
  readonly exceptions?: "throw" | "result";
  readonly maxConcurrency?: number;
  readonly pruning?: boolean;
}

/** The settings of a controller in a spec. Durations are strings. */
export interface ControllerSpec {
  /** Names of the controller in earlier versions of the operator. */
  readonly formerNames?: readonly string[];
  readonly namespaces?: NamespacesSpec;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly filters?: Omit<FiltersSpec, "onDelete">;
  readonly defaultFilters?: boolean;
  readonly generationAware?: boolean;
  readonly onAllEvents?: boolean;
  readonly serverSideApply?: boolean;
  readonly maxConcurrentReconciles?: number;
  readonly retry?: {
    readonly maxRetries?: number;
    readonly initialInterval?: string;
    readonly multiplier?: number;
    readonly maxInterval?: string;
  };
  readonly rateLimit?: { readonly maxReconciliations: number; readonly within: string };
  readonly maxReconciliationInterval?: string;
  readonly reconcileTimeout?: string;
  readonly cleanupPolicy?: "finalizer" | "sweep";
  readonly cleanUpUnselected?: boolean;
  readonly cleanupTimeout?: string;
  readonly stalledAfter?: string;
  readonly conditionPrefix?: string;
  readonly watchFailurePolicy?: "isolate" | "block";
  readonly fieldManager?: string;
  /** Former field managers that the operator replaces. */
  readonly formerFieldManagers?: readonly string[];
  readonly finalizer?: string;
  readonly formerFinalizers?: readonly string[];
  readonly indexes?: { readonly [name: string]: { readonly function: string } };
}

/** An RBAC rule in a spec, with its namespaces: permissions that user code requires in addition to those of the graph. */
export interface ExtraRuleSpec {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  /** Set instead of groups and resources. */
  readonly nonResourceURLs?: readonly string[];
  readonly verbs: readonly string[];
  readonly namespaces?: NamespacesSpec | "sameAsController";
  readonly accept?: readonly AcceptanceSpec[];
}

/** A workflow spec that its schema accepts, with its document for positions. */
export interface WorkflowSpec {
  readonly name: string;
  /** Kind of the primary, for example `example.com/v1/WebPage`. */
  readonly primary: string;
  readonly controller: ControllerSpec;
  readonly workflow: WorkflowSettingsSpec;
  readonly statusConditions?: "managed";
  readonly dependents: ReadonlyMap<string, DependentSpec>;
  readonly removed: ReadonlyMap<string, RemovedSpec>;
  readonly moved: readonly MovedSpec[];
  readonly eventSources: ReadonlyMap<string, EventSourceSpec>;
  /** Permissions of the operator in addition to those that the graph requires. */
  readonly extraRules: readonly ExtraRuleSpec[];
  /** Accepted warnings about the controller, and about the CRDs of the kinds that it names. */
  readonly accept?: readonly AcceptanceSpec[];
  readonly document: YamlDocument;
}
