// The door of generated code. A breaking change gets a door of its own beside this one, so that committed output keeps compiling.

// Definitions
export * from "./define-controller.js";
export * from "./define-resource.js";
export * from "./define-workflow.js";
export type {
  BulkOption,
  ExternalOptions,
  ExternalSourceOption,
  ExternalStateOption,
  FetchContext,
  ItemsOf,
  NodeDetails,
  NodeOptions,
  ObjectOptions,
  OnlyOfBulkDependents,
  OnlyOfWrittenDependents,
} from "./dependent-options.js";
export { guarded } from "./dependent-options.js";
export type * from "./explicit.js";
export type * from "./kept.js";
export type { MapperContext } from "../sources/mappers.js";
export * from "./parse-resource.js";

// Types of resources
export type {
  ClusterMeta,
  IntOrString,
  JsonValue,
  KubernetesObject,
  ManagedFields,
  NamespacedMeta,
  ObjectMeta,
  OwnerReference,
  StatusCondition,
  StoredCustomMeta,
  StoredMeta,
} from "../base/kubernetes-object.js";
export type { NewMeta, NewResource, Unstored } from "../base/resource-definition.js";
export type { ResourceClass, ResourceDefinition, Schema, ValidationRule } from "../base/resource-definition.js";

// Types of what the user writes
export type { ControllerDefinition, EventSourceFacts } from "../reconcile/controller-definition.js";
export type {
  DeleteControl,
  ErrorArguments,
  ErrorControl,
  PrimaryPatch,
  ReconcileArguments,
  Reconciler,
  UpdateControl,
} from "../reconcile/reconciler.js";
export type {
  Condition,
  ConditionArguments,
  ConditionResult,
  Context,
  CreateArguments,
  DeleteArguments,
  DependentArguments,
  DependentMatcher,
  Desired,
  ExistingArguments,
  ExistingCondition,
  ExternalArguments as ExternalFunctionArguments,
  KeepsLess,
  ObjectReference,
  Operations,
  OptionalDependency,
  UpdateArguments,
  WorkflowDefinition,
} from "../workflow/definition/workflow-definition.js";
export type { DetailOf, WorkflowInvocation } from "../workflow/workflow-result.js";
