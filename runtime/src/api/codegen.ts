// Entry point of generated code. A breaking change is released under a new entry point beside this one, so that committed generated code keeps
// compiling.

// Definitions
export { defineController, type ControllerOptions } from "./define-controller.js";
export {
  asStored,
  createResource,
  defineResource,
  isResource,
  untypedResource,
  type ResourceFacts,
  type UntypedFacts,
  type UntypedInput,
  type UntypedResource,
} from "./define-resource.js";
export {
  defineWorkflow,
  type ChainTypes,
  type DependencyOf,
  type DependentTypes,
  type DuplicateDependent,
  type ReconcilerOf,
  type SecondaryOf,
  type WaitsFor,
  type WorkflowBuilder,
  type WorkflowOptions,
} from "./define-workflow.js";
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
} from "./define-workflow.js";
export { guarded } from "./define-workflow.js";
export type { Explicit, ExplicitReconciler } from "./define-controller.js";
export type { Kept } from "./define-resource.js";
export type { MapperContext } from "../sources/mappers.js";
export {
  parseResource,
  SchemaError,
  type CheckedParseOptions,
  type ParseOptions,
  type SchemaProblem,
} from "./define-resource.js";

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
export type { NewMeta, NewResource, Unstored } from "../base/kubernetes-object.js";
export type { ResourceClass, ResourceDefinition, Schema, ValidationRule } from "../base/kubernetes-object.js";

// Types that user code refers to
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
export type { Context, KeepsLess } from "../workflow/context.js";
export type {
  Condition,
  ConditionArguments,
  ConditionResult,
  CreateArguments,
  DeleteArguments,
  DependentArguments,
  DependentMatcher,
  Desired,
  ExistingArguments,
  ExistingCondition,
  ExternalArguments as ExternalFunctionArguments,
  ObjectReference,
  Operations,
  OptionalDependency,
  UpdateArguments,
  WorkflowDefinition,
} from "../workflow/workflow-definition.js";
export type { DetailOf, WorkflowInvocation } from "../workflow/run.js";
