import { hasFormat } from "@gen-operator/schema";
import { checkCounts, checkNamespaces, checkNumbers, describe, requireNumbers } from "../base/checks.js";
import { namespaceOf, type Connection } from "../client/connect/connection.js";
import type { FieldManagers } from "../base/decoded-resource.js";
import { checkDependents, type Fail } from "./check-dependents.js";
import {
  defaultFinalizerOf,
  dependentsOf,
  formerManagersOf,
  keptConditionsOf,
  takenManagersOf,
  finalizerNameOf,
  finalizerOf,
} from "../reconcile/controller-definition.js";
import type { ControllerDefinition } from "../reconcile/controller-definition.js";
import { isInput } from "../reconcile/primary-inputs.js";
import { conditionsManagerOf, hasSharedConditions } from "../reconcile/status/status-conditions.js";
import type { RetryOptions } from "../schedule/retry.js";
import { isKubernetes, type DependentDefinition } from "../workflow/definition/workflow-definition.js";

/** Throws if the settings of a controller cannot work, saying which and what to do. */
export function checkController(definition: ControllerDefinition): void {
  const { name, workflow, reconciler, filters } = definition;
  const fail = (problem: string) => new Error(`controller "${name}" ${problem}`);
  checkFinalizers(definition, fail);
  if (definition.onAllEvents === true) {
    if (reconciler?.cleanup !== undefined)
      throw fail(
        "reconciles on all events, and there is no cleanup then; reconcile() is called for deleted primaries, with context.isPrimaryDeleted",
      );
    if (dependentsOf(definition).some((each) => isKubernetes(each) && each.heldForCleanup === true))
      throw fail("reconciles on all events, and holds objects for a cleanup, which it has not; remove heldForCleanup");
    if (workflow.dependents.length > 0)
      throw fail(
        `reconciles on all events, and has dependents (${workflow.dependents.map((each) => each.name).join(", ")}); a workflow needs the ` +
          "finalizers that this mode is without: leave either out",
      );
  }
  if (workflow.invocation === "explicit" && reconciler === undefined)
    throw fail("has a workflow with invocation: explicit, and no reconciler that invokes it by context.workflow");
  if (definition.formerNames?.includes(name) === true)
    throw fail("has its own name among its former names (formerNames); remove it there");
  const onDelete = (filters as { onDelete?: unknown } | undefined)?.onDelete;
  if (onDelete !== undefined)
    throw fail("has a filter onDelete; deletions of primaries are always taken, but for what filters.generic rejects");
  if (typeof definition.namespaces !== "string") checkNamespaces(`controller "${name}"`, definition.namespaces);
  const { watchFailurePolicy: policy = "isolate" } = definition;
  if (policy !== "isolate" && policy !== "block")
    throw fail(`has ${describe(policy)} for watchFailurePolicy; it must be "isolate" or "block"`);
  checkInputs(definition, fail);
  checkCleanupPolicy(definition, fail);
  checkStatusConditions(definition, fail);
  checkFieldManagers(definition, fail);
  checkLimits(definition);
  checkDependents(definition, fail);
}

function checkFinalizers({ workflow, finalizer, formerFinalizers = [] }: ControllerDefinition, fail: Fail): void {
  const { primary } = workflow;
  const example = defaultFinalizerOf(primary);
  for (const each of [...(finalizer === undefined ? [] : [finalizer]), ...formerFinalizers]) {
    if (STANDARD_FINALIZERS.includes(each))
      throw fail(`has the finalizer "${each}", which is Kubernetes' own; use another name`);
    if (isQualified(each)) continue;
    if (!isName(each))
      throw fail(`has the finalizer "${each}"; it must be a domain, a slash and a name, such as "${example}"`);
    // The API server refuses it.
    if (!primary.isCustom)
      throw fail(`has the finalizer "${each}"; for built-in kinds it needs a domain, as "${example}" has`);
  }
  if (formerFinalizers.includes(finalizer ?? example))
    throw fail(
      `has its finalizer "${finalizer ?? example}" among its former finalizers (formerFinalizers); remove it there`,
    );
}

/** Returns what is not wrong with a controller, and should be mended all the same. */
export function warningsOf({ workflow, finalizer }: ControllerDefinition): readonly string[] {
  if (finalizer === undefined || finalizer.includes("/")) return [];
  const example = `${defaultFinalizerOf(workflow.primary)}`;
  return [
    `finalizer "${finalizer}" has no domain, so another operator may use and remove the same one; use a name such as "${example}", and list this one in formerFinalizers`,
  ];
}

function checkInputs({ inputs }: ControllerDefinition, fail: Fail): void {
  const wrong = inputs?.find((each) => !isInput(each));
  if (wrong !== undefined)
    throw fail(
      `has the input ${describe(wrong)}; it must be "metadata.labels", "metadata.annotations", "metadata.ownerReferences", or one key, such as ` +
        `"metadata.labels['app']"`,
    );
}

function checkCleanupPolicy(definition: ControllerDefinition, fail: Fail): void {
  const { cleanUpUnselected = false, labelSelector, fieldSelector } = definition;
  if (cleanUpUnselected && labelSelector === undefined && fieldSelector === undefined)
    throw fail("has cleanUpUnselected and no labelSelector or fieldSelector, so all primaries are selected; remove it");
  const { cleanupPolicy: policy = "finalizer", reconciler, onAllEvents } = definition;
  if (policy !== "finalizer" && policy !== "sweep")
    throw fail(`has ${describe(policy)} for cleanupPolicy; it must be "finalizer" or "sweep"`);
  if (policy === "finalizer") return;
  const advice = "remove it, or remove cleanupPolicy";
  if (onAllEvents === true) throw fail(`has cleanupPolicy "sweep" and reconciles on all events; ${advice}`);
  if (reconciler?.cleanup !== undefined)
    throw fail(`has cleanupPolicy "sweep" and a reconciler with cleanup(), which needs the finalizer; ${advice}`);
  for (const each of dependentsOf(definition)) {
    const what = needsPrimary(each);
    if (what !== undefined)
      throw fail(`has cleanupPolicy "sweep", and ${what} of dependent "${each.name}" needs the finalizer; ${advice}`);
  }
}

// After a restart, nothing is known of a primary that is gone but its name, namespace and uid.
function needsPrimary(dependent: DependentDefinition): string | undefined {
  if (!isKubernetes(dependent)) return dependent.delete === undefined ? undefined : "delete()";
  if (typeof dependent.operations?.delete === "function") return "delete()";
  return dependent.heldForCleanup === true ? "heldForCleanup" : undefined;
}

// The type of a condition is a qualified name (1.36, metav1.Condition).
const CONDITION_PREFIX = /^[A-Za-z][A-Za-z0-9]{0,62}$/;

function checkStatusConditions(definition: ControllerDefinition, fail: Fail): void {
  const { statusConditions, conditionPrefix, workflow } = definition;
  const { primary } = workflow;
  if (conditionPrefix !== undefined && statusConditions !== "managed")
    throw fail(
      "sets conditionPrefix, but keeps no conditions; set statusConditions: managed, or remove conditionPrefix",
    );
  if (conditionPrefix !== undefined && !CONDITION_PREFIX.test(conditionPrefix))
    throw fail(
      `has the conditionPrefix ${JSON.stringify(conditionPrefix)}; it must be letters and digits, such as "Backup"`,
    );
  if (statusConditions !== "managed" || (primary.hasStatusSubresource && hasSharedConditions(primary.schema))) return;
  const what = primary.hasStatusSubresource
    ? "a list status.conditions that several can write (x-kubernetes-list-type: map, with the key type)"
    : "a status subresource";
  throw fail(
    `keeps conditions in the status of ${primary.plural}, which lack ${what}; add it to the definition, or set no statusConditions`,
  );
}

function checkFieldManagers(definition: ControllerDefinition, fail: Fail): void {
  const own = fieldManagersOf(definition).find((each) => definition.formerFieldManagers?.includes(each));
  if (own !== undefined)
    throw fail(`has its field manager "${own}" among its former field managers (formerFieldManagers); remove it there`);
  // The API server takes no others (1.36, ValidateFieldManager).
  const wrong = fieldManagersOf(definition).find((each) => each === "" || Buffer.byteLength(each) > 128);
  if (wrong !== undefined)
    throw fail(
      `writes as the field manager "${wrong}"; it needs 1 to 128 bytes: state another name, or a fieldManager`,
    );
}

/** Returns all names under which a controller writes. */
export function fieldManagersOf(definition: ControllerDefinition): readonly string[] {
  const { name, fieldManager = name, statusConditions } = definition;
  const managers = [fieldManager, ...formerManagersOf(definition)];
  const ofConditions = statusConditions === "managed" ? managers.map(conditionsManagerOf) : [];
  const dependents = dependentsOf(definition).filter(isKubernetes);
  return [...new Set([fieldManager, ...ofConditions, ...dependents.flatMap((each) => each.fieldManager ?? [])])];
}

/** Returns the field managers of an operator, and those whose fields it takes over. */
export function keptManagersOf(controllers: readonly ControllerDefinition[]): FieldManagers & readonly string[] {
  const own = new Set(controllers.flatMap(fieldManagersOf));
  const former = new Set(controllers.flatMap(takenManagersOf).filter((each) => !own.has(each)));
  return Object.assign([...own], { former });
}

/** Throws if one of the controllers of an operator cannot work, or two of them not beside each other, saying why and what to do. */
export function checkControllers(definitions: readonly ControllerDefinition[]): void {
  definitions.forEach(checkController);
  definitions.forEach((one, index) => definitions.slice(index + 1).forEach((other) => checkPair(one, other)));
}

// What a controller has taken over from an earlier operator, another one must not use.
function checkFormer(
  { name, formerNames = [], formerFieldManagers = [], formerFinalizers = [] }: ControllerDefinition,
  other: ControllerDefinition,
  isOfOneKind: boolean,
): void {
  const refuse = (what: string, use: string) => {
    throw new Error(`controller "${name}" has the former ${what}, ${use}`);
  };
  const hasOrHad = `which controller "${other.name}" has or had; remove it from one of them`;
  const takenName = [other.name, ...(other.formerNames ?? [])].find((each) => formerNames.includes(each));
  if (takenName !== undefined) refuse(`name "${takenName}"`, hasOrHad);
  const manager = fieldManagersOf(other).find((each) => formerFieldManagers.includes(each));
  if (manager !== undefined)
    refuse(
      `field manager "${manager}"`,
      `as which controller "${other.name}" writes; remove it from formerFieldManagers`,
    );
  const finalizer = [finalizerNameOf(other), ...(other.formerFinalizers ?? [])].find((each) =>
    formerFinalizers.includes(each),
  );
  if (isOfOneKind && finalizer !== undefined) refuse(`finalizer "${finalizer}"`, hasOrHad);
}

// Each would overwrite what the other one has found, for ever. Different selectors may have no primary in common.
function checkConditionPair(one: ControllerDefinition, other: ControllerDefinition): void {
  if (one.statusConditions !== "managed" || other.statusConditions !== "managed" || mayBeDisjoint(one, other)) return;
  const types = keptConditionsOf(other).all;
  const shared = [...keptConditionsOf(one).all].find((type) => types.has(type));
  if (shared === undefined) return;
  throw new Error(
    `controllers "${one.name}" and "${other.name}" both keep the condition ${shared} in the status of ${one.workflow.primary.plural}; ` +
      `give "${other.name}" a conditionPrefix`,
  );
}

function mayBeDisjoint(one: ControllerDefinition, other: ControllerDefinition): boolean {
  return (["labelSelector", "fieldSelector", "namespaces"] as const).some((by) => {
    const [mine, theirs] = [one[by], other[by]];
    return mine !== undefined && theirs !== undefined && JSON.stringify(mine) !== JSON.stringify(theirs);
  });
}

function checkPair(one: ControllerDefinition, other: ControllerDefinition): void {
  if (one.name === other.name) throw new Error(`two controllers are named "${one.name}"`);
  const finalizer = finalizerNameOf(one);
  const { plural, group } = one.workflow.primary;
  // The objects are the same in every version.
  const isOfOneKind = plural === other.workflow.primary.plural && group === other.workflow.primary.group;
  checkFormer(other, one, isOfOneKind);
  checkFormer(one, other, isOfOneKind);
  if (isOfOneKind) checkConditionPair(one, other);
  if (!isOfOneKind || finalizerNameOf(other) !== finalizer) return;
  if (one.onAllEvents === true || other.onAllEvents === true) return;
  // One that needs none still removes what is left over of its name.
  if (finalizerOf(one) === undefined && finalizerOf(other) === undefined) return;
  const renamed = finalizerOf(one) === undefined ? one : other;
  const [domain] = (finalizer.includes("/") ? finalizer : defaultFinalizerOf(one.workflow.primary)).split("/");
  throw new Error(
    `controllers "${one.name}" and "${other.name}" share the finalizer "${finalizer}" of ${group === "" ? plural : `${plural}.${group}`}: ` +
      "either would let a primary go before the other has cleaned up; " +
      `give "${renamed.name}" one of its own, such as "${domain}/${renamed.name}"`,
  );
}

function checkLimits({ name, retry = {}, rateLimit, ...definition }: ControllerDefinition): void {
  const owner = `controller "${name}"`;
  const quick: RetryOptions = "next" in retry ? {} : retry;
  checkNumbers(owner, {
    maxConcurrentReconciles: [definition.maxConcurrentReconciles, 1],
    maxReconciliationIntervalMs: [definition.maxReconciliationIntervalMs],
    reconcileTimeoutMs: [definition.reconcileTimeoutMs, 0],
    cleanupTimeoutMs: [definition.cleanupTimeoutMs, 1],
    stalledAfterMs: [definition.stalledAfterMs, 0],
    "retry.maxRetries": [quick.maxRetries, -1],
    "retry.initialIntervalMs": [quick.initialIntervalMs, 0],
    "retry.multiplier": [quick.multiplier, 1],
    "retry.maxIntervalMs": [quick.maxIntervalMs, -1],
    "retry.jitter": [quick.jitter, 0, 1],
  });
  checkCounts(owner, { "workflow.maxConcurrency": [definition.workflow.maxConcurrency, 1] });
  for (const [key, { maxConcurrency }] of Object.entries(definition.workflows ?? {}))
    checkCounts(owner, { [`workflows.${key}.maxConcurrency`]: [maxConcurrency, 1] });
  if (rateLimit === undefined || typeof rateLimit === "function") return;
  const { maxReconciliations, withinMs } = rateLimit;
  requireNumbers(owner, { "rateLimit.maxReconciliations": [maxReconciliations], "rateLimit.withinMs": [withinMs, 0] });
}

/** Returns the namespaces that a controller watches, all of them if undefined. Throws if it asks for one that the connection lacks. */
export function namespacesOf(
  { name, namespaces }: Pick<ControllerDefinition, "name" | "namespaces">,
  connection: Pick<Connection, "namespace" | "origin">,
): readonly string[] | undefined {
  if (namespaces === "all") return undefined;
  return namespaces === "current" ? [namespaceOf(connection, `controller "${name}"`)] : namespaces;
}

const STANDARD_FINALIZERS: readonly string[] = ["foregroundDeletion", "orphan", "kubernetes"];

// A domain, a slash, and a name (1.36, ValidateFinalizerName: a qualified name, for built-in kinds with a domain unless it is Kubernetes' own).
function isQualified(finalizer: string): boolean {
  const [domain = "", name = "", ...rest] = finalizer.split("/");
  return rest.length === 0 && isName(name) && hasFormat(domain, "k8s-long-name") === true;
}

function isName(text: string): boolean {
  return text.length <= 63 && /^[A-Za-z0-9]([-\w.]*[A-Za-z0-9])?$/.test(text);
}
