// Defining controllers
export { defineController, type ControllerOptions } from "./codegen/define-controller.js";
export { defineWorkflow } from "./codegen/define-workflow.js";
export type { ReconcilerOf, SecondaryOf, WorkflowBuilder, WorkflowOptions } from "./codegen/define-workflow.js";
export { asStored, createResource, defineResource, isResource, untypedResource } from "./codegen/define-resource.js";
export type { ResourceFacts, UntypedFacts, UntypedInput, UntypedResource } from "./codegen/define-resource.js";

// Running an operator
export { createOperator } from "./operator.js";
export type { ConnectedOperator, Operator, RegisteredController } from "./operator.js";
export type { OperatorOptions } from "./assemble/operator/operator-options.js";
export type { ProbeChecks, UserCheck } from "./operate/http/probes.js";
export type { ControllerHealth, OperatorHealth } from "./operate/health.js";
export { runOperator, type RunOperatorOptions } from "./run-operator.js";

// What reconcilers return and throw
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

// Which events count
export type {
  EventFilters,
  GenericFilter,
  OnAddFilter,
  OnDeleteFilter,
  OnUpdateFilter,
} from "./cache/resource-change.js";
export type { EventSource, EventSourceContext, SourceCondition } from "./sources/event-source.js";
export type { ReconcilePriority, ReconcileReason, SecondaryCause } from "./base/reconcile-reason.js";
export type { NamespaceHealth, SourceHealth, WaitingPrimaries, WaitingPrimary } from "./base/activity.js";

// Writing
export type { MergePatchOf, MergePatchResource, OperationOptions } from "./write/kind-operations.js";
export type { KindOperations, ResourceWrite, RetriedPatch, WholeResource, WriteMode } from "./write/kind-operations.js";
export { genericMatcher, statusMatcher } from "./match/matchers.js";
export type { GenericMatcherOptions, Matcher, MatcherArguments } from "./match/matchers.js";
export type { JsonPatchChange } from "./write/send/plan.js";
export type { FinalizerOptions, ResourceOperations } from "./write/resource-operations.js";
export type { JsonPatchOperation } from "./base/kubernetes-object.js";

// Conditions
export {
  bound,
  conditionIs,
  crdPresent,
  deleted,
  fieldEquals,
  ready,
} from "./workflow/conditions/builtin-conditions.js";

// Event sources
export { informerSource, type InformerSource, type InformerSourceOptions } from "./sources/kind/informer-source.js";
export { pollingSource, type PollingSourceOptions } from "./sources/external/polling-source.js";
export { perPrimaryPollingSource } from "./sources/external/per-primary-polling-source.js";
export type { PerPrimaryPollingSourceOptions } from "./sources/external/per-primary-polling-source.js";
export { cachingInboundSource, createInbound } from "./sources/external/caching-inbound-source.js";
export type { CachingInboundSource, CachingInboundSourceOptions } from "./sources/external/caching-inbound-source.js";
export type { Inbound, InboundChannel } from "./sources/external/caching-inbound-source.js";
export { inboundSource, timerSource, type InboundSource, type TimerSource } from "./sources/trigger-sources.js";
export { kubernetesResource, singleResource, type IdOf } from "./sources/external/external-cache.js";
export type { ExternalSource, ExternalSourceOptions } from "./sources/external/external-source.js";
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
export { allOf, anyOf, not } from "./sources/filters.js";
export { keyOf, type ObjectKey } from "./base/kubernetes-object.js";

// Observing
export type { EventDraft, PostponedWrite, RequestObservation } from "./base/activity.js";
export type { Events } from "./workflow/definition/context.js";
export type { LeadershipObserver, LeadershipState } from "./operate/lease/leadership.js";
export type { LeaderElectionSettings } from "./operate/lease/lease-settings.js";
export type { LoopEvent, LoopObserver } from "./operate/loop-reporter.js";
export type { GivenUp, GivenUpPrimary, ReconcileEvent, ReconcileObserver } from "./schedule/reconcile-scope.js";
export type {
  ConditionOutcome,
  DependentOutcome,
  DetailOptions,
  DetailType,
  OtherWorkflows,
  TypedWorkflow,
  WorkflowInvocation,
  WorkflowResult,
} from "./workflow/workflow-result.js";
export { WorkflowError } from "./workflow/workflow-result.js";
export type { Fence, RequesterOptions, RequestObserver } from "./client/requester.js";
export { createLogger, messageOf, type CreateLoggerOptions, type Logger, type LogLevel } from "./base/logger.js";
export type { LogLevels } from "./operate/settings/log-levels.js";

// Talking to a cluster
export { ApiClient, type ApiClientOptions } from "./client/api-client.js";
export type { DeleteOptions, Deletion, ListOptions, ReadOptions, WatchOptions } from "./client/call-options.js";
export type { EvictOptions, Scale, ScaleOptions } from "./client/call-options.js";
export type { WatchedEvent } from "./client/watch-events.js";
export type { Applied, ApplyOptions, PatchTarget, WriteOptions, WriteRequest } from "./client/write-request.js";
export type { WriteVerb } from "./base/kubernetes-object.js";
export { createConnection } from "./client/connect/connection.js";
export type { Connection, ConnectionOptions, Credentials, Impersonation } from "./client/connect/connection.js";
export { loadConnection, type LoadConnectionOptions } from "./client/connect/load-connection.js";

// Types of resources
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
export type { Defined, ResourceClass, ResourceDefinition, Schema, Unstored } from "./base/resource-definition.js";
export type {
  ControllerDefinition,
  EventSourceFacts,
  PrimaryIndexFunction,
} from "./reconcile/controller-definition.js";
export type { PrimaryInput } from "./schedule/schedule-settings.js";
export type { Retry, RetryOptions, RetryState } from "./schedule/retry.js";
export type { RateLimiter, RateLimiterFactory, RateLimitOptions } from "./schedule/rate-limiter.js";
export type {
  EventSources,
  Expectation,
  ExpectationArguments,
  ExpectationResult,
  Expectations,
  SecondariesOptions,
  SecondaryOptions,
} from "./workflow/definition/context.js";
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
  Operations,
  UpdateArguments,
} from "./workflow/definition/workflow-definition.js";
