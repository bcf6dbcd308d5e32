import type { SourcePosition } from "../diagnostic.js";

export type { Diagnostic, SourcePosition } from "../diagnostic.js";

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
  readonly isCustom: boolean;
  readonly isStorage: boolean;
  readonly isServed: boolean;
  readonly deprecationWarning?: string;
  /** Custom: the structural schema as written. Built-in: OpenAPI v3 with references into `definitions`. */
  readonly schema: RawSchema;
  readonly definitions: ReadonlyMap<string, RawSchema>;
  readonly crdFile?: string;
  readonly crd?: object;
}

/** The settings of a controller: exactly what the spec states. */
export interface ControllerSettings {
  readonly namespaces?: readonly string[];
  readonly labelSelector?: string;
  readonly retry?: {
    readonly maxAttempts?: number;
    readonly initialIntervalMs?: number;
    readonly multiplier?: number;
    readonly maxIntervalMs?: number;
  };
  readonly rateLimit?: { readonly maxReconciliations: number; readonly withinMs: number };
  readonly maxReconciliationIntervalMs?: number;
  readonly fieldManager?: string;
  readonly finalizer?: string;
}

/** The four conditions of a dependent. */
export type ConditionName =
  "activationCondition" | "reconcilePrecondition" | "readyPostcondition" | "deletePostcondition";

/** What decides a condition. */
export type ConditionModel =
  | {
      readonly kind: "when";
      readonly expression: string;
      readonly names: readonly ("primary" | "secondary" | "context")[];
      readonly position: SourcePosition;
    }
  | { readonly kind: "builtin"; readonly name: "ready" | "deleted" | "crdPresent" }
  | { readonly kind: "function"; readonly name: string };

/** A dependent of a controller. */
export interface DependentModel {
  readonly name: string;
  readonly resource: ResourceModel;
  readonly dependsOn: readonly string[];
  /** All that it waits for, directly or through others. */
  readonly waitsFor: readonly string[];
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly isGarbageCollected: boolean;
  readonly conditions: { readonly [K in ConditionName]?: ConditionModel };
}

/** A controller with its dependents in an order in which they can be created. */
export interface ControllerModel {
  readonly name: string;
  readonly primary: ResourceModel;
  readonly dependents: readonly DependentModel[];
  readonly settings: ControllerSettings;
  readonly specFile: string;
}

/** A whole project. */
export interface ProjectModel {
  readonly resources: readonly ResourceModel[];
  readonly controllers: readonly ControllerModel[];
}
