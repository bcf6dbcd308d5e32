// The eviction subresource of Pods: deletes a Pod if its PodDisruptionBudget allows it, as in Kubernetes 1.36.
import { selectorMatches } from "../../validation/fields.js";
import { type DeleteOptions, parseDeleteOptions, parseWriteOptions } from "../../decode/options.js";
import { invalidError } from "../../errors/field-error.js";
import { type StatusError, forbidden, invalid, notFound, plainError, statusError } from "../../errors/status-error.js";
import {
  type JsonObject,
  type JsonValue,
  arrayAt,
  clone,
  deepEqual,
  isObject,
  objectAt,
  stringAt,
} from "../../json.js";
import { conditionOf, hasCondition, setCondition } from "../../object/conditions.js";
import { isTerminating, keyOf, metadataOf, now, resourceRefOf } from "../../object/object-meta.js";
import type { ServedResource } from "../../registry/registry.js";
import type { StoredObject } from "../../storage/store.js";
import { SUCCESS, admitPart, checkPartName, partResource } from "../../write/created-part.js";
import { checkPreconditions, deleteObject } from "../../write/delete.js";
import { putOwnStatus } from "../../write/managed-fields.js";
import type { WriteContext } from "../../write/write-context.js";
import { type ResourceRequest, decodeBody, renderContextOf, writeContextOf } from "../handlers.js";
import { renderValue } from "../representation.js";
import type { Answer } from "../request-info.js";

const EVICTION = {
  group: "policy",
  version: "v1",
  kind: "Eviction",
  schemaName: "io.k8s.api.policy.v1.Eviction",
};
const DRY_RUN = { dryRun: ["All"] };
const BUDGETS = { group: "policy", version: "v1", plural: "poddisruptionbudgets" };
const PROCESSING_RETRY_SECONDS = 10;
const MAX_DISRUPTED = 2000;

/** Handles an Eviction of a Pod. */
export async function evict(on: ResourceRequest): Promise<Answer> {
  const render = renderContextOf(on);
  const context = writeContextOf(on, parseWriteOptions(on.request.query, "CreateOptions"));
  const part = partResource(EVICTION, on.resource);
  const object = decodeBody(on, { ...context, resource: part }, asPresentEviction);
  await evictPod(context, on.name, { part, object });
  return renderValue(render, 201, SUCCESS);
}

// Kubernetes still accepts an Eviction in policy/v1beta1, which it no longer serves.
function asPresentEviction(body: JsonValue): void {
  if (isObject(body) && body["apiVersion"] === "policy/v1beta1") body["apiVersion"] = "policy/v1";
}

/** Deletes a Pod if its PodDisruptionBudget allows the disruption, and records it in the status of the budget. */
async function evictPod(
  context: WriteContext,
  name: string,
  { part, object }: { part: ServedResource; object: JsonObject },
): Promise<void> {
  const { resource, namespace } = context;
  const created = { name, subresource: "eviction", part, object };
  const eviction = await admitPart(context, created, {
    isTracked: false,
    check(asked) {
      checkPartName(asked, { kind: EVICTION.kind, name });
      const options = objectAt(asked, "deleteOptions");
      if (options === undefined) return asked;
      checkOptions(context, name, options);
      const isDryRun = context.isDryRun || deletionOf(asked).isDryRun;
      return { ...asked, deleteOptions: { ...options, ...(isDryRun ? DRY_RUN : {}) } };
    },
  });
  const deletion = deletionOf(eviction);
  const isDryRun = context.isDryRun || deletion.isDryRun;
  const stored = resource.store.get(keyOf({ namespace, name }));
  if (stored === undefined) throw notFound(resourceRefOf(resource.type, name));
  if (!goesAnyway(stored.object)) spendBudget({ ...context, isDryRun }, { name, pod: stored.object });
  // Admission has seen the Eviction, so it does not run again for the delete.
  const unasked = { ...context, isDryRun, admission: undefined };
  if (isDryRun) return void (await deleteObject(unasked, name, deletion));
  checkPreconditions(context, stored.object, deletion);
  const revision = String(markEvicted(resource, stored).revision);
  await deleteObject(
    unasked,
    name,
    deletion.resourceVersion === undefined ? deletion : { ...deletion, resourceVersion: revision },
  );
}

const IGNORE = "ignoreStoreReadErrorWithClusterBreakingPotential";

function checkOptions(context: WriteContext, name: string, options: JsonObject): void {
  if (options[IGNORE] === true) {
    const detail = "can not be set for pod eviction, try after removing the option";
    throw invalid({ ...EVICTION, name }, [invalidError(`deleteOptions.${IGNORE}`, true, detail)]);
  }
  const own = (arrayAt(options, "dryRun") ?? []).map(String);
  if (!context.isDryRun || own.length === 0 || own.join() === "All") return;
  const shown = `[All] and [${own.join(" ")}]`;
  throw plainError(`Non-matching dry-run options in request and content: ${shown}`);
}

// The kind and apiVersion of the deleteOptions are ignored.
function deletionOf(eviction: JsonObject): DeleteOptions {
  const { kind: _kind, apiVersion: _version, ...options } = objectAt(eviction, "deleteOptions") ?? {};
  return parseDeleteOptions(options, new URLSearchParams());
}

/** Reports whether a Pod is terminating, finished, or pending: evicting it causes no disruption. */
function goesAnyway(pod: JsonObject): boolean {
  const phase = stringAt(objectAt(pod, "status"), "phase") ?? "";
  return isTerminating(pod) || ["Succeeded", "Failed", "Pending"].includes(phase);
}

function spendBudget(context: WriteContext, { name, pod }: { name: string; pod: JsonObject }): void {
  const budgets = context.registry.find(BUDGETS);
  const matching = budgets === undefined ? [] : budgetsOf(budgets, pod);
  if (matching.length > 1) {
    const detail = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    throw plainError(detail);
  }
  const [budget] = matching;
  if (budgets === undefined || budget === undefined || ignoresBudget(budget.object, pod)) return;
  const next = spentBudget(budget.object, name);
  if (!context.isDryRun) putOwnStatus(context.registry, budgets, { stored: budget, next });
}

function budgetsOf(budgets: ServedResource, pod: JsonObject): StoredObject[] {
  const { namespace } = metadataOf(pod);
  const labels = objectAt(metadataOf(pod), "labels") ?? {};
  return budgets.store.list(`${String(namespace)}/`).filter(({ object }) => {
    const selector = objectAt(objectAt(object, "spec"), "selector");
    return selector !== undefined && selectorMatches(selector, labels);
  });
}

/**
 * Reports whether a budget does not apply to a Pod that is not ready: unhealthyPodEvictionPolicy is AlwaysAllow, or enough other Pods are healthy.
 */
function ignoresBudget(budget: JsonObject, pod: JsonObject): boolean {
  if (hasCondition(pod, "Ready")) return false;
  const status = objectAt(budget, "status");
  if (stringAt(objectAt(budget, "spec"), "unhealthyPodEvictionPolicy") === "AlwaysAllow") return true;
  const desired = countAt(status, "desiredHealthy");
  return desired > 0 && countAt(status, "currentHealthy") >= desired;
}

function spentBudget(budget: JsonObject, podName: string): JsonObject {
  const name = stringAt(metadataOf(budget), "name") ?? "";
  const status = objectAt(budget, "status");
  const generation = metadataOf(budget)["generation"];
  if (countAt(status, "observedGeneration") < Number(generation ?? 0)) {
    const detail = `The disruption budget ${name} is still being processed by the server.`;
    throw tooManyDisruptions(detail, PROCESSING_RETRY_SECONDS);
  }
  const allowed = countAt(status, "disruptionsAllowed");
  const refuse = (detail: string) => forbidden({ resource: BUDGETS.plural, group: BUDGETS.group, name }, detail);
  if (allowed < 0) throw refuse("pdb disruptions allowed is negative");
  if (Object.keys(objectAt(status, "disruptedPods") ?? {}).length > MAX_DISRUPTED)
    throw refuse("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
  if (allowed === 0) {
    throw tooManyDisruptions(`The disruption budget ${name} ${refusalOf(budget)}`);
  }
  const next = clone(budget);
  const disruptedPods = { ...objectAt(status, "disruptedPods"), [podName]: now() };
  next["status"] = { ...objectAt(next, "status"), disruptedPods, disruptionsAllowed: allowed - 1 };
  if (allowed === 1) {
    const observedGeneration = countAt(status, "observedGeneration");
    const condition = { type: "DisruptionAllowed", status: "False", reason: "InsufficientPods", message: "" } as const;
    setCondition(next, { ...condition, ...(observedGeneration === 0 ? {} : { observedGeneration }) });
  }
  return next;
}

/** Returns the reason why a budget allows no disruption: the last condition of its controller, or the number of healthy Pods that it needs. */
function refusalOf(budget: JsonObject): string {
  const status = objectAt(budget, "status");
  const condition = conditionOf(budget, "DisruptionAllowed") ?? {};
  const [desired, current] = [countAt(status, "desiredHealthy"), countAt(status, "currentHealthy")];
  const [reason, message] = ["reason", "message"].map((key) => stringAt(condition, key) ?? "") as [string, string];
  const isTold = condition["status"] === "False" && message !== "";
  const denial = "does not allow evicting pods currently";
  if (isTold && reason === "SyncFailed") return `${denial} because it failed sync: ${message}`;
  if (current <= desired) return `needs ${desired} healthy pods and has ${current} currently`;
  return isTold ? `${denial} (${reason}): ${message}` : denial;
}

function countAt(status: JsonObject | undefined, field: string): number {
  const value = status?.[field];
  return typeof value === "number" ? value : 0;
}

function markEvicted({ store }: ServedResource, stored: StoredObject): StoredObject {
  const next = clone(stored.object);
  setCondition(next, {
    lastProbeTime: null,
    type: "DisruptionTarget",
    status: "True",
    reason: "EvictionByEvictionAPI",
    message: "Eviction API: evicting",
  });
  return deepEqual(next, stored.object) ? stored : store.put(stored.key, next);
}

/** 429: a PodDisruptionBudget currently does not allow the eviction. */
function tooManyDisruptions(detail: string, retryAfterSeconds?: number): StatusError {
  const causes = [{ reason: "DisruptionBudget", message: detail }];
  return statusError({
    code: 429,
    reason: "TooManyRequests",
    message: "Cannot evict pod as it would violate the pod's disruption budget.",
    details: retryAfterSeconds === undefined ? { causes } : { causes, retryAfterSeconds },
  });
}
