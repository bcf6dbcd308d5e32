// Defining controllers
export { defineController, type ControllerOptions } from "./api/define-controller.js";
export { defineWorkflow } from "./api/define-workflow.js";
export type { ReconcilerOf, SecondaryOf, WorkflowBuilder, WorkflowOptions } from "./api/define-workflow.js";
export { asStored, createResource, defineResource, isResource, untypedResource } from "./api/define-resource.js";
export type { ResourceFacts, UntypedFacts, UntypedInput, UntypedResource } from "./api/define-resource.js";

// Running an operator
export { createOperator } from "./api/operator.js";
export type { ConnectedOperator, Operator, RegisteredController } from "./api/operator.js";
export type { OperatorOptions } from "./api/operator.js";
export type { ProbeChecks, UserCheck } from "./operate/health.js";
export type { ControllerHealth, OperatorHealth } from "./operate/health.js";
export { runOperator, type RunOperatorOptions } from "./api/run-operator.js";

// Results and errors of reconcilers
export {
  keepFinalizer,
  noUpdate,
  patchResource,
  patchResourceAndStatus,
  updateStatus,
  withoutRetry,
} from "./reconcile/reconciler.js";
export type {
  DeleteControl,
  ErrorArguments,
  ErrorControl,
  PrimaryPatch,
  ReconcileArguments,
  Reconciler,
  RescheduleOptions,
  UpdateControl,
} from "./reconcile/reconciler.js";
export {
  ApiError,
  ConnectionError,
  isApiError,
  LeadershipError,
  RetryAfterError,
  TerminalError,
} from "./base/errors.js";
export type { ApiStatus, StatusCause } from "./base/errors.js";

// Event filters
export type {
  EventFilters,
  GenericFilter,
  OnAddFilter,
  OnDeleteFilter,
  OnUpdateFilter,
} from "./cache/resource-view.js";
export type { EventSource, EventSourceContext, SourceCondition } from "./sources/event-source.js";
export type { ReconcilePriority } from "./queue/processor.js";
export type { ReconcileReason, SecondaryCause } from "./base/activity.js";
export type { NamespaceHealth, SourceHealth, WaitingPrimaries, WaitingPrimary } from "./base/activity.js";

// Writing to the cluster
export type { MergePatchOf, MergePatchResource, OperationOptions } from "./apply/resource-operations.js";
export type {
  KindOperations,
  ResourceWrite,
  RetriedPatch,
  WholeResource,
  WriteMode,
} from "./apply/resource-operations.js";
export { genericMatcher, statusMatcher } from "./apply/generic-matcher.js";
export type { GenericMatcherOptions, Matcher, MatcherArguments } from "./apply/generic-matcher.js";
export type { JsonPatchChange } from "./apply/write.js";
export type { FinalizerOptions, ResourceOperations } from "./apply/resource-operations.js";
export type { JsonPatchOperation } from "./base/kubernetes-object.js";

// Built-in conditions
export { bound, conditionIs, crdPresent, deleted, fieldEquals, ready } from "./workflow/conditions.js";

// Event sources
export { informerSource, type InformerSource, type InformerSourceOptions } from "./sources/informer-source.js";
export { pollingSource, type PollingSourceOptions } from "./sources/polling-sources.js";
export { perPrimaryPollingSource } from "./sources/polling-sources.js";
export type { PerPrimaryPollingSourceOptions } from "./sources/polling-sources.js";
export { cachingInboundSource, createInbound } from "./sources/caching-inbound-source.js";
export type { CachingInboundSource, CachingInboundSourceOptions } from "./sources/caching-inbound-source.js";
export type { Inbound, InboundChannel } from "./sources/caching-inbound-source.js";
export { inboundSource, timerSource, type InboundSource, type TimerSource } from "./sources/trigger-sources.js";
export { kubernetesResource, singleResource, type IdOf } from "./sources/external-cache.js";
export type { ExternalSource, ExternalSourceOptions } from "./sources/external-source.js";
export {
  byAnnotation,
  byAnyLink,
  byDefaultAnnotations,
  byLabel,
  byOwnerReference,
  byOwnerType,
} from "./sources/mappers.js";
export type { MapperContext, PrimaryKeys } from "./sources/mappers.js";
export type { PrimaryToSecondaryMapper, SecondaryToPrimaryMapper } from "./sources/mappers.js";
export { allOf, anyOf, not } from "./sources/event-source.js";
export { keyOf, type ObjectKey } from "./base/kubernetes-object.js";

// Observability
export type { EventDraft, LoopEvent, LoopObserver, PostponedWrite, RequestObservation } from "./base/activity.js";
export type { Events } from "./workflow/context.js";
export type { LeadershipObserver, LeadershipState } from "./operate/leader-election.js";
export type { LeaderElectionSettings } from "./operate/lease-lock.js";
export type { GivenUp, GivenUpPrimary } from "./queue/controller-details.js";
export type { ReconcileEvent, ReconcileObserver } from "./queue/controller.js";
export type {
  ConditionOutcome,
  DependentOutcome,
  DetailOptions,
  DetailType,
  OtherWorkflows,
  TypedWorkflow,
  WorkflowInvocation,
  WorkflowResult,
} from "./workflow/run.js";
export { WorkflowError } from "./workflow/run.js";
export type { Fence, RequestObserver, RequesterOptions } from "./client/transport.js";
export {
  createLogger,
  messageOf,
  type CreateLoggerOptions,
  type Logger,
  type LogLevel,
  type LogLevels,
} from "./base/logger.js";

// Clients and connections
export { ApiClient, type ApiClientOptions } from "./client/api-client.js";
export type { DeleteOptions, Deletion, ListOptions, ReadOptions, WatchOptions } from "./client/api-client.js";
export type { EvictOptions, Scale, ScaleOptions } from "./client/api-client.js";
export type { WatchedEvent } from "./client/api-client.js";
export type { Applied, ApplyOptions, PatchTarget, WriteOptions, WriteRequest } from "./client/api-client.js";
export type { WriteVerb } from "./base/kubernetes-object.js";
export { createConnection } from "./client/connection.js";
export type { Connection, ConnectionOptions, Credentials, Impersonation } from "./client/connection.js";
export { loadConnection, type LoadConnectionOptions } from "./client/load-connection.js";

// Resource types
export type {
  Draft,
  IntOrString,
  JsonValue,
  KubernetesObject,
  ManagedFields,
  ObjectMeta,
  ObjectRef,
  OwnerReference,
  PartialResource,
  PartOf,
  ResourceReader,
  StatusCondition,
  StoredMeta,
} from "./base/kubernetes-object.js";
export type { Defined, ResourceClass, ResourceDefinition, Schema, Unstored } from "./base/kubernetes-object.js";
export type {
  ControllerDefinition,
  EventSourceFacts,
  PrimaryIndexFunction,
} from "./reconcile/controller-definition.js";
export type { PrimaryInput } from "./queue/schedule-settings.js";
export type { Retry, RetryState } from "./queue/processor.js";
export type { RetryOptions } from "./queue/processor.js";
export type { RateLimiter, RateLimiterFactory, RateLimitOptions } from "./queue/schedule-settings.js";
export type {
  Context,
  EventSources,
  Expectation,
  ExpectationArguments,
  ExpectationResult,
  Expectations,
  SecondariesOptions,
  SecondaryOptions,
} from "./workflow/context.js";
export type {
  Condition,
  ConditionArguments,
  ConditionResult,
  CreateArguments,
  DeleteArguments,
  DependentArguments,
  DependentMatcher,
  Desired,
  Operations,
  UpdateArguments,
} from "./workflow/workflow-definition.js";
