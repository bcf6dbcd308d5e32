import type { YamlDocument } from "./yaml/yaml-document.js";

/** The names that a spec has for the four conditions. */
export const CONDITION_NAMES = [
  "activationCondition",
  "reconcilePrecondition",
  "readyPostcondition",
  "deletePostcondition",
] as const;

/** The conditions that the runtime ships. */
export type BuiltinConditionName = ConditionWord | "condition" | "fieldEquals";

/** The conditions that need no arguments. */
export type ConditionWord = "ready" | "bound" | "deleted" | "crdPresent";

/** A condition as a spec states it: a word, or one key with its arguments. */
export type ConditionSpec =
  | ConditionWord
  | PresenceSpec
  | { readonly not: PresenceSpec }
  | { readonly when: string }
  | { readonly function: string }
  | { readonly condition: StatusConditionSpec }
  | { readonly fieldEquals: FieldEqualsSpec };

/** Whether the API server serves the kind of the dependent or the event source, or the kind `of`. */
export type PresenceSpec = "crdPresent" | { readonly crdPresent: { readonly of: string | UntypedKindSpec } };

/** What `condition` is about: a condition in the status of an object. */
export interface StatusConditionSpec {
  readonly type: string;
  readonly status?: "True" | "False" | "Unknown";
}

/** What `fieldEquals` is about: a field of an object. */
export interface FieldEqualsSpec {
  readonly path: string;
  readonly value: string | number | boolean;
}

/** The names that a spec has for filters. */
export const FILTER_NAMES = ["onAdd", "onUpdate", "onDelete", "generic"] as const;

/** A filter as a spec states it: one of the two is there. */
export interface FilterSpec {
  readonly when?: string;
  readonly function?: string;
}

/** The filters of one kind of resource by the kind of change. */
export type FiltersSpec = Partial<Record<(typeof FILTER_NAMES)[number], FilterSpec>>;

/** The keys of labels or annotations that name a primary. */
export interface MappingKeysSpec {
  readonly name: string;
  readonly namespace?: string;
  readonly type?: string;
}

/** How a spec states which primaries an object concerns; of the fields of an object one is there. */
export type MappingSpec =
  | "ownerReference"
  | { readonly label?: MappingKeysSpec; readonly annotation?: MappingKeysSpec; readonly function?: string };

/** What is to be kept of the objects of an event source. */
export type CacheSpec = "full" | "metadata" | { readonly paths: readonly string[] };

/** How often something is polled as a spec states it. */
export interface ScheduleSpec {
  readonly every: string;
  readonly fetchTimeout?: string;
}

/** The namespaces to watch: all, the one that the operator runs in, or a list. */
export type NamespacesSpec = "all" | "current" | readonly string[];

/** A kind of which a spec states all that has to be known. */
export interface UntypedKindSpec {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly scope: "Namespaced" | "Cluster";
}

/** An event source as a spec states it: `resource`, `poll`, `perPrimaryPoll` or `inbound` is there; all else needs `resource`. */
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

/** Where ids are kept as a spec states it: `in`, `status` or `resource` is there. */
export interface ExternalStateSpec {
  readonly in?: "configMap" | "secret";
  readonly status?: string;
  /** A kind; `path` leads to the id in its objects. */
  readonly resource?: string;
  readonly path?: string;
  /** A file and the type that it exports, of what is kept in a ConfigMap or a Secret. Default: an id, a text. */
  readonly type?: string;
  readonly perItem?: true;
}

/** An external resource as a spec states it: `poll`, `perPrimaryPoll`, `inbound` or `eventSource` is there. */
export interface ExternalSpec {
  readonly poll?: ScheduleSpec;
  readonly perPrimaryPoll?: ScheduleSpec;
  readonly inbound?: { readonly fetch?: true; readonly fetchTimeout?: string };
  readonly eventSource?: string;
  /** A file and the type that it exports: `src/database.ts#Database`. */
  readonly type?: string;
  /** A file with a JSON Schema. */
  readonly schema?: string;
  /** A file and the type that it exports, of the desired state. Default: the type of a resource. */
  readonly desiredType?: string;
  readonly state?: ExternalStateSpec;
  readonly capabilities?: readonly ("create" | "update" | "delete")[];
  readonly onDeleteFailure?: "block" | "release";
  readonly creationGrace?: string;
}

/** Retries within a reconcile as a spec states them. */
export interface RetrySpec {
  readonly maxRetries: number;
  readonly initialInterval?: string;
  readonly multiplier?: number;
  readonly maxInterval?: string;
}

/** What a dependent waits for: what it cannot exist without, or what it waits for only if that is wanted. */
export type DependencySpec = string | { readonly name: string; readonly optional: true };

/** What a spec says of an operation: a function of the user's stands in its place, or it is never done. */
export type OperationSpec = "own" | false;

/** A warning that the user accepts: about the controller or its CRDs, a dependent, an event source or a rule of `rbac.extra`. */
export interface AcceptanceSpec {
  readonly rule: string;
  readonly reason: string;
}

/** The name of an object of somebody else as a spec states it: expressions over `primary`. */
export interface ReferenceSpec {
  readonly name: string;
  readonly namespace?: string;
}

/** A dependent as a spec states it: `resource` or `external` is there. */
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

/** What becomes of the objects of a dependent: the garbage collector deletes them, the operator does, or their link to the primary goes. */
export type DeletionSpec = "garbageCollected" | "ordered" | "orphan";

/** A dependent of an earlier version as a spec states it. */
export interface RemovedSpec {
  /** `external`: its resources are outside of Kubernetes. */
  readonly resource: string | UntypedKindSpec;
  readonly deletion: DeletionSpec;
  readonly namespace?: string;
  readonly cluster?: string;
}

/** A dependent that has another name now. */
export interface MovedSpec {
  readonly from: string;
  readonly to: string;
}

/** The settings of a workflow as a spec states them. */
export interface WorkflowSettingsSpec {
  readonly invocation?: "implicit" | "explicit";
  readonly exceptions?: "throw" | "result";
  readonly maxConcurrency?: number;
  readonly pruning?: boolean;
}

/** The settings of a controller as a spec states them; durations are texts. */
export interface ControllerSpec {
  /** The names of the controller in earlier versions of the operator. */
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
  /** The field managers of the operator that this one replaces. */
  readonly formerFieldManagers?: readonly string[];
  readonly finalizer?: string;
  readonly formerFinalizers?: readonly string[];
  readonly indexes?: { readonly [name: string]: { readonly function: string } };
}

/** A rule of Kubernetes' RBAC as a spec states it: what the code of the user does beside the graph, and where. */
export interface ExtraRuleSpec {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  /** In place of groups and resources. */
  readonly nonResourceURLs?: readonly string[];
  readonly verbs: readonly string[];
  readonly namespaces?: NamespacesSpec | "sameAsController";
  readonly accept?: readonly AcceptanceSpec[];
}

/** A workflow spec that its schema accepts, with the document that tells where everything is. */
export interface WorkflowSpec {
  readonly name: string;
  /** The kind of the primary: `example.com/v1/WebPage`. */
  readonly primary: string;
  readonly controller: ControllerSpec;
  readonly workflow: WorkflowSettingsSpec;
  readonly statusConditions?: "managed";
  readonly dependents: ReadonlyMap<string, DependentSpec>;
  readonly removed: ReadonlyMap<string, RemovedSpec>;
  readonly moved: readonly MovedSpec[];
  readonly eventSources: ReadonlyMap<string, EventSourceSpec>;
  /** What the operator may do beside what the graph needs. */
  readonly extraRules: readonly ExtraRuleSpec[];
  /** Accepted warnings about the controller, and about the CRDs of the kinds that it names. */
  readonly accept?: readonly AcceptanceSpec[];
  readonly document: YamlDocument;
}
