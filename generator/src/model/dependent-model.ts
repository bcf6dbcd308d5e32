import type { DependencySpec, OperationSpec, UntypedKindSpec } from "../input/workflow-spec.js";
import type {
  ConditionModel,
  ConditionName,
  ExpressionModel,
  FiltersModel,
  RawSchema,
  ResourceModel,
} from "./project-model.js";

/** Retries of a dependent within one reconcile. */
export interface StepRetryModel {
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
export type Capability = (typeof CAPABILITIES)[number];

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
export type ExternalStateModel =
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
export interface RemovedModel {
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
