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

/** A dependent as a spec states it. */
export interface DependentSpec extends Partial<Record<(typeof CONDITION_NAMES)[number], ConditionSpec>> {
  readonly resource: string;
  readonly dependsOn?: readonly string[];
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly garbageCollected?: boolean;
}

/** The settings of a controller as a spec states them; durations are texts. */
export interface ControllerSpec {
  readonly namespaces?: readonly string[];
  readonly labelSelector?: string;
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
  readonly document: YamlDocument;
}
