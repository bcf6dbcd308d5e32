import type { YamlDocument } from "./yaml-document.js";

/** The names that a spec has for the four conditions. */
export const CONDITION_NAMES = [
  "activationCondition",
  "reconcilePrecondition",
  "readyPostcondition",
  "deletePostcondition",
] as const;

/** A condition as a spec states it: one of the three is there. */
export interface ConditionSpec {
  readonly when?: string;
  readonly builtin?: "ready" | "deleted" | "crdPresent";
  readonly function?: string;
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

/** An event source as a spec states it: `resource`, `poll`, `perPrimaryPoll` or `inbound` is there; all else needs `resource`. */
export interface EventSourceSpec {
  readonly resource?: string;
  readonly poll?: { readonly every: string };
  readonly perPrimaryPoll?: { readonly every: string };
  readonly inbound?: object;
  readonly mapping?: MappingSpec;
  readonly primaryToSecondary?: { readonly function: string };
  readonly namespaces?: "sameAsController" | "all" | readonly string[];
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly filters?: FiltersSpec;
  readonly selector?: "derive" | "all";
  readonly cache?: CacheSpec;
  readonly maxCachedObjects?: number;
}

/** A dependent as a spec states it. */
export interface DependentSpec extends Partial<Record<(typeof CONDITION_NAMES)[number], ConditionSpec>> {
  readonly resource: string;
  readonly dependsOn?: readonly string[];
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly filters?: FiltersSpec;
  readonly garbageCollected?: boolean;
}

/** The settings of a controller as a spec states them; durations are texts. */
export interface ControllerSpec {
  readonly namespaces?: readonly string[] | "current";
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly filters?: Omit<FiltersSpec, "onDelete">;
  readonly defaultFilters?: boolean;
  readonly generationAware?: boolean;
  readonly onAllEvents?: boolean;
  readonly serverSideApply?: boolean;
  readonly maxConcurrentReconciles?: number;
  readonly retry?: {
    readonly maxAttempts?: number;
    readonly initialInterval?: string;
    readonly multiplier?: number;
    readonly maxInterval?: string;
  };
  readonly rateLimit?: { readonly maxReconciliations: number; readonly within: string };
  readonly maxReconciliationInterval?: string;
  readonly fieldManager?: string;
  readonly finalizer?: string;
}

/** The primary of a controller: a CRD file, or a kind. */
export interface PrimarySpec {
  readonly crd?: string;
  readonly version?: string;
  readonly resource?: string;
}

/** A workflow spec that its schema accepts, with the document that tells where everything is. */
export interface WorkflowSpec {
  readonly name: string;
  readonly primary: PrimarySpec;
  readonly controller: ControllerSpec;
  readonly dependents: ReadonlyMap<string, DependentSpec>;
  readonly eventSources: ReadonlyMap<string, EventSourceSpec>;
  readonly document: YamlDocument;
}
