import type { ControllerSpec, WorkflowSettingsSpec, WorkflowSpec } from "../../input/workflow-spec.js";
import { parseDuration } from "../duration.js";
import type { ControllerSettings, WorkflowSettings } from "../project-model.js";

/** Builds the settings of a controller: exactly what the spec states. */
export function buildSettings(
  spec: ControllerSpec,
  statusConditions?: WorkflowSpec["statusConditions"],
): ControllerSettings {
  const { namespaces, labelSelector, fieldSelector, maxReconciliationInterval, fieldManager, finalizer } = spec;
  const {
    formerNames = [],
    formerFieldManagers = [],
    retry,
    rateLimit,
    maxConcurrentReconciles,
    reconcileTimeout,
    cleanupTimeout,
  } = spec;
  const { initialInterval, maxInterval, maxRetries, multiplier } = retry ?? {};
  return Object.freeze({
    ...(formerNames.length === 0 ? {} : { formerNames }),
    // Default: all
    ...(namespaces === undefined || namespaces === "all" ? {} : { namespaces }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    // What is the default anyway is not stated.
    ...(spec.onAllEvents === true ? { onAllEvents: true } : {}),
    ...(spec.generationAware === false ? { generationAware: false } : {}),
    ...(spec.defaultFilters === false ? { defaultFilters: false } : {}),
    ...(spec.serverSideApply === false ? { serverSideApply: false } : {}),
    ...(statusConditions === "managed" ? { statusConditions } : {}),
    ...(spec.conditionPrefix === undefined ? {} : { conditionPrefix: spec.conditionPrefix }),
    ...(maxConcurrentReconciles === undefined ? {} : { maxConcurrentReconciles }),
    ...(retry === undefined
      ? {}
      : {
          retry: {
            ...(maxRetries === undefined ? {} : { maxRetries }),
            ...(initialInterval === undefined ? {} : { initialIntervalMs: parseDuration(initialInterval) }),
            ...(multiplier === undefined ? {} : { multiplier }),
            ...(maxInterval === undefined ? {} : { maxIntervalMs: parseDuration(maxInterval) }),
          },
        }),
    ...(rateLimit === undefined
      ? {}
      : { rateLimit: { maxReconciliations: rateLimit.maxReconciliations, withinMs: parseDuration(rateLimit.within) } }),
    ...(maxReconciliationInterval === undefined
      ? {}
      : { maxReconciliationIntervalMs: parseDuration(maxReconciliationInterval) }),
    ...(reconcileTimeout === undefined ? {} : { reconcileTimeoutMs: parseDuration(reconcileTimeout) }),
    ...(spec.cleanupPolicy === "sweep" ? { cleanupPolicy: "sweep" } : {}),
    ...(spec.cleanUpUnselected === true ? { cleanUpUnselected: true } : {}),
    ...(cleanupTimeout === undefined ? {} : { cleanupTimeoutMs: parseDuration(cleanupTimeout) }),
    ...(spec.stalledAfter === undefined ? {} : { stalledAfterMs: parseDuration(spec.stalledAfter) }),
    // Default: isolate
    ...(spec.watchFailurePolicy === "block" ? { watchFailurePolicy: "block" as const } : {}),
    ...(fieldManager === undefined ? {} : { fieldManager }),
    ...(formerFieldManagers.length === 0 ? {} : { formerFieldManagers }),
    ...(finalizer === undefined ? {} : { finalizer }),
    ...(spec.formerFinalizers === undefined || spec.formerFinalizers.length === 0
      ? {}
      : { formerFinalizers: spec.formerFinalizers }),
  });
}

/** Builds the settings of a workflow, without those that state the default. */
export function buildWorkflowSettings(spec: WorkflowSettingsSpec): WorkflowSettings {
  const { invocation, exceptions, maxConcurrency, pruning } = spec;
  return Object.freeze({
    ...(invocation === "explicit" ? { invocation } : {}),
    ...(exceptions === "result" ? { exceptions } : {}),
    ...(maxConcurrency === undefined ? {} : { maxConcurrency }),
    ...(pruning === false ? { pruning } : {}),
  });
}
