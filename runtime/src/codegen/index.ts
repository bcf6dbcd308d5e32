// The door of generated code. A breaking change gets a door of its own beside this one, so that committed output keeps compiling.

// Definitions
export { defineController } from "./define-controller.js";
export type { ControllerOptions } from "./define-controller.js";
export { createResource, defineResource, isResource, untypedResource } from "./define-resource.js";
export type { ResourceFacts, UntypedFacts, UntypedInput, UntypedResource } from "./define-resource.js";
export { defineWorkflow } from "./define-workflow.js";
export type {
  DependencyOf,
  DependentTypes,
  DuplicateDependent,
  ReconcilerOf,
  SecondaryOf,
  WaitsFor,
  WorkflowBuilder,
  WorkflowOptions,
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
} from "./dependent-options.js";
export type { Kept } from "./kept.js";
export type { MapperContext } from "./mapper-context.js";
export type { Explicit, ExplicitReconciler, Narrowed, NarrowedReconciler } from "./narrowed.js";
export { parseResource, SchemaError } from "./parse-resource.js";

// Types of resources
export type {
  IntOrString,
  JsonValue,
  KubernetesObject,
  ObjectMeta,
  OwnerReference,
  StatusCondition,
} from "../base/kubernetes-object.js";
export type { ResourceClass, ResourceDefinition, Schema } from "../base/resource-definition.js";

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
  ExternalArguments as ExternalFunctionArguments,
  Operations,
  OptionalDependency,
  UpdateArguments,
  WorkflowDefinition,
} from "../workflow/definition/workflow-definition.js";
export type { DetailOf, WorkflowInvocation } from "../workflow/workflow-result.js";
