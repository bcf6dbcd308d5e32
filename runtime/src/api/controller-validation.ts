// Validates controller definitions when an operator is created: each definition, each pair of definitions, and their kinds against the CRDs of the
// clusters.
import { hasFormat } from "@gen-operator/schema";
import { type FieldManagers, type ResourceDefinition, kindNameOf, memberOf } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import { checkCounts, checkNamespaces, checkNumbers, describe, requireNumbers } from "../base/validation.js";
import type { ApiClient } from "../client/api-client.js";
import { type Connection, namespaceOf } from "../client/connection.js";
import { checkCrds } from "../operate/crd-check.js";
import type { RetryOptions } from "../queue/processor.js";
import {
  type ControllerDefinition,
  defaultFinalizerOf,
  dependentsOf,
  fieldManagersOf,
  finalizerNameOf,
  finalizerOf,
  keptConditionsOf,
  namesOf,
  takenManagersOf,
} from "../reconcile/controller-definition.js";
import { isInput } from "../reconcile/primary-reconciler.js";
import { hasSharedConditions } from "../reconcile/status-conditions.js";
import { seesRemoved } from "../workflow/prune.js";
import {
  type DependentDefinition,
  type ExternalDependent,
  type KubernetesDependent,
  type ObjectState,
  type WorkflowDefinition,
  deletionOf,
  isKubernetes,
  ownsData,
} from "../workflow/workflow-definition.js";

/** Throws if the definition of a controller is invalid. */
export function checkController(definition: ControllerDefinition): void {
  const { name, workflow, reconciler, filters } = definition;
  const fail = (problem: string) => new Error(`controller "${name}" ${problem}`);
  checkFinalizers(definition, fail);
  if (definition.onAllEvents === true) {
    if (reconciler?.cleanup !== undefined)
      throw fail(
        "sets onAllEvents and has cleanup(), which is never called then; remove cleanup(), and handle deletion in reconcile() (context.isPrimaryDeleted)",
      );
    if (dependentsOf(definition).some((each) => isKubernetes(each) && each.heldForCleanup === true))
      throw fail("sets onAllEvents and heldForCleanup, but has no cleanup in this mode; remove heldForCleanup");
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
    // For built-in kinds, the API server rejects a finalizer without a domain.
    if (!primary.isCustom)
      throw fail(`has the finalizer "${each}"; for built-in kinds it needs a domain, as "${example}" has`);
  }
  if (formerFinalizers.includes(finalizer ?? example))
    throw fail(
      `has its finalizer "${finalizer ?? example}" among its former finalizers (formerFinalizers); remove it there`,
    );
}

/** Returns warnings about settings that are valid but should be changed. */
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

// After a restart, a deleted primary is known only by its name, namespace and UID.
function needsPrimary(dependent: DependentDefinition): string | undefined {
  if (!isKubernetes(dependent)) return dependent.delete === undefined ? undefined : "delete()";
  if (typeof dependent.operations?.delete === "function") return "delete()";
  return dependent.heldForCleanup === true ? "heldForCleanup" : undefined;
}

// A condition type is a qualified name (Kubernetes 1.36, metav1.Condition).
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
  // The limits of the API server (Kubernetes 1.36, ValidateFieldManager).
  const wrong = fieldManagersOf(definition).find((each) => each === "" || Buffer.byteLength(each) > 128);
  if (wrong !== undefined)
    throw fail(
      `writes as the field manager "${wrong}"; it needs 1 to 128 bytes: state another name, or a fieldManager`,
    );
}

/** Returns the field managers of an operator, together with the former ones whose fields it takes over. */
export function keptManagersOf(controllers: readonly ControllerDefinition[]): FieldManagers & readonly string[] {
  const own = new Set(controllers.flatMap(fieldManagersOf));
  const former = new Set(controllers.flatMap(takenManagersOf).filter((each) => !own.has(each)));
  return Object.assign([...own], { former });
}

/** Throws if a controller is invalid or two controllers conflict. */
export function checkControllers(definitions: readonly ControllerDefinition[]): void {
  definitions.forEach(checkController);
  definitions.forEach((one, index) => definitions.slice(index + 1).forEach((other) => checkPair(one, other)));
}

// The former names, field managers and finalizers of a controller must not be in use by another controller.
function checkFormer(
  { name, formerNames = [], formerFieldManagers = [], formerFinalizers = [] }: ControllerDefinition,
  other: ControllerDefinition,
  isOfOneKind: boolean,
): void {
  const hasOrHad = `which controller "${other.name}" has or had; remove it from one of them`;
  const writes = `as which controller "${other.name}" writes; remove it from formerFieldManagers`;
  const rules = [
    { what: "name", mine: formerNames, theirs: namesOf(other), use: hasOrHad },
    { what: "field manager", mine: formerFieldManagers, theirs: fieldManagersOf(other), use: writes },
    {
      what: "finalizer",
      mine: isOfOneKind ? formerFinalizers : [],
      theirs: [finalizerNameOf(other), ...(other.formerFinalizers ?? [])],
      use: hasOrHad,
    },
  ];
  for (const { what, mine, theirs, use } of rules) {
    const shared = theirs.find((each) => mine.includes(each));
    if (shared !== undefined) throw new Error(`controller "${name}" has the former ${what} "${shared}", ${use}`);
  }
}

// The controllers would overwrite each other's conditions forever. Controllers with different selectors may have no primary in common.
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
  // Every version of an API group serves the same objects.
  const isOfOneKind = plural === other.workflow.primary.plural && group === other.workflow.primary.group;
  checkFormer(other, one, isOfOneKind);
  checkFormer(one, other, isOfOneKind);
  if (isOfOneKind) checkConditionPair(one, other);
  if (!isOfOneKind || finalizerNameOf(other) !== finalizer) return;
  if (one.onAllEvents === true || other.onAllEvents === true) return;
  // A controller without a finalizer still removes finalizers of this name that an earlier version left on primaries.
  if (finalizerOf(one) === undefined && finalizerOf(other) === undefined) return;
  const renamed = finalizerOf(one) === undefined ? one : other;
  const [domain] = (finalizer.includes("/") ? finalizer : defaultFinalizerOf(one.workflow.primary)).split("/");
  throw new Error(
    `controllers "${one.name}" and "${other.name}" share the finalizer "${finalizer}" of ${group === "" ? plural : `${plural}.${group}`}: ` +
      "the first to finish removes it before the other has cleaned up; " +
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

/** Returns the namespaces that a controller watches, or undefined for all. Throws for "current" if the connection has no namespace. */
export function namespacesOf(
  { name, namespaces }: Pick<ControllerDefinition, "name" | "namespaces">,
  connection: Pick<Connection, "namespace" | "origin">,
): readonly string[] | undefined {
  if (namespaces === "all") return undefined;
  return namespaces === "current" ? [namespaceOf(connection, `controller "${name}"`)] : namespaces;
}

const STANDARD_FINALIZERS: readonly string[] = ["foregroundDeletion", "orphan", "kubernetes"];

// A domain, a slash and a name (Kubernetes 1.36, ValidateFinalizerName: a qualified name; built-in kinds also require the domain, except for the
// finalizers of Kubernetes itself).
function isQualified(finalizer: string): boolean {
  const [domain = "", name = "", ...rest] = finalizer.split("/");
  return rest.length === 0 && isName(name) && hasFormat(domain, "k8s-long-name") === true;
}

function isName(text: string): boolean {
  return text.length <= 63 && /^[A-Za-z0-9]([-\w.]*[A-Za-z0-9])?$/.test(text);
}

type Fail = (problem: string) => Error;

/** Throws if a dependent of any workflow of the controller is invalid. */
function checkDependents({ workflow, workflows = {} }: ControllerDefinition, fail: Fail): void {
  const named = Object.entries(workflows).map(([name, each]) => ({ each, where: ` in its workflow "${name}"` }));
  for (const { each, where } of [{ each: workflow, where: "" }, ...named]) {
    checkWorkflow(each, fail);
    if (each !== workflow && each.removed !== undefined)
      throw fail(`sets removed${where}; move it to the workflow of the controller`);
    const present = each.dependents.find((dependent) => isRemoved(dependent, dependent.name, workflow));
    if (present !== undefined)
      throw fail(`lists dependent "${present.name}" in removed, but still has it${where}; remove it from one of them`);
  }
}

function checkWorkflow(workflow: WorkflowDefinition, fail: Fail): void {
  const { dependents, primary } = workflow;
  const owners = new Map(dependents.map(({ name }) => [name, name]));
  for (const dependent of dependents) {
    const { name, movedFrom = [] } = dependent;
    const problem = isKubernetes(dependent)
      ? problemOfObject(dependent, primary)
      : problemOfExternal(dependent, primary);
    if (problem !== undefined) throw fail(`has the dependent "${name}", which ${problem}`);
    for (const former of movedFrom) {
      if (isRemoved(dependent, former, workflow))
        throw fail(`lists dependent "${former}" both in removed and as moved to "${name}"; remove one of the two`);
      const other = owners.get(former);
      if (other !== undefined)
        throw fail(
          `lists dependent "${former}" as moved to "${name}", but it is already used by "${other}"; remove one of the two`,
        );
      owners.set(former, name);
    }
  }
  checkShared(workflow, fail);
}

// A dependent may have the name of a `removed` entry if the entry is about another scope: it then covers the objects that the dependent left there.
function isRemoved(dependent: DependentDefinition, name: string, { removed = {} }: WorkflowDefinition): boolean {
  const stated = memberOf(removed, name);
  return stated !== undefined && seesRemoved(dependent, stated);
}

// Both dependents would claim the same resources, and a bulk dependent would delete those of the other.
function checkShared({ dependents }: WorkflowDefinition, fail: Fail): void {
  const users = new Map<string, string>();
  for (const dependent of dependents) {
    if (isKubernetes(dependent) || dependent.source.kind !== "eventSource" || !isAmbiguous(dependent)) continue;
    const { source } = dependent;
    const other = users.get(source.name);
    users.set(source.name, dependent.name);
    if (other !== undefined)
      throw fail(
        `has the dependents "${other}" and "${dependent.name}", which share event source "${source.name}", and nothing assigns a resource to one of them; ` +
          "give each of them isOwn, or let the runtime keep the ids (state)",
      );
  }
}

function isAmbiguous({ isOwn, state, create, update, delete: remove }: ExternalDependent): boolean {
  const isWritten = create !== undefined || update !== undefined || remove !== undefined;
  return isWritten && isOwn === undefined && state === undefined;
}

/** Returns what is wrong with a dependent, or undefined if it is valid. */
type ObjectRule = (dependent: KubernetesDependent, primary: ResourceDefinition) => string | undefined;

/** Only the first problem, in this order, is reported. */
const OBJECT_RULES: readonly ObjectRule[] = [
  problemOfReference,
  problemOfMode,
  problemOfOperations,
  problemOfOnce,
  problemOfReleased,
  problemOfImmutable,
  problemOfLink,
  problemOfPlace,
];

function problemOfObject(dependent: KubernetesDependent, primary: ResourceDefinition): string | undefined {
  for (const rule of OBJECT_RULES) {
    const problem = rule(dependent, primary);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function firstSet<Settings extends object>(settings: Settings, names: readonly (keyof Settings)[]): string | undefined {
  const name = names.find((each) => settings[each] !== undefined);
  return name as string | undefined;
}

function problemOfExternal(dependent: ExternalDependent, primary: ResourceDefinition): string | undefined {
  const { desired, bulk, create, update, idOf, state, stateOf, source } = dependent;
  const isWritten = create !== undefined || update !== undefined;
  if (isWritten && desired === undefined) return "has no desired(); add it, or remove create and update";
  if (!isWritten && desired !== undefined)
    return "has a desired(), and neither create nor update; leave out desired, or add one of them";
  if (bulk !== undefined && idOf === undefined)
    return "is a bulk dependent without idOf; add idOf to identify its items";
  if ("intervalMs" in source && !(source.intervalMs > 0))
    return `has ${source.intervalMs} for source.intervalMs; it needs more than 0`;
  if (state === undefined)
    return stateOf === undefined
      ? undefined
      : "has stateOf but no state; set state to where the id is stored, or remove stateOf";
  if (idOf === undefined) return "stores an id (state) but has no idOf; add idOf";
  if (create === undefined) return "keeps the id of what it creates (state), and has no create; leave one of them out";
  if (state.kind !== "status") return problemOfState(state, primary, bulk !== undefined);
  if (state.path.length === 0) return "stores ids in the status but has no path; set state.path";
  if (!primary.hasStatusSubresource)
    return `keeps ids in the status of ${primary.plural}, which lack a status subresource; add it to the definition, or keep them in a ConfigMap`;
  return undefined;
}

// The objects are owned by the primary, so they are in its cluster.
function problemOfState(state: ObjectState, primary: ResourceDefinition, isBulk: boolean): string | undefined {
  const names = { configMap: "ConfigMaps", secret: "Secrets" };
  const [kinds, scope] =
    state.kind === "resource" ? [state.resource.plural, state.resource.scope] : [names[state.kind], "Namespaced"];
  if (state.kind === "resource" && state.path.length === 0) return `keeps ids in ${kinds}, and states no path there`;
  if (state.perItem === true && !isBulk) return "keeps an id for each item (perItem), and is no bulk dependent";
  if (scope === primary.scope) return undefined;
  const place = primary.scope === "Cluster" ? "is in no namespace" : "is in a namespace";
  return `keeps ids in ${kinds}, and ${kindNameOf(primary)} ${place}; keep them in its status`;
}

function problemOfOperations({ mode, deletion, operations = {} }: KubernetesDependent): string | undefined {
  if (mode === "createOnly" && operations.update !== undefined)
    return "is createOnly and has an own update; what exists is left as it is";
  if (deletion === "orphan" && operations.delete === false)
    return "is orphaned and never deleted; leave out one of them";
  const isIdle = operations.create === false && (operations.update === false || mode === "createOnly");
  return isIdle ? "is neither created nor updated; make it readOnly" : undefined;
}

function problemOfOnce(
  { mode, again, deletion, operations = {}, matcher, released }: KubernetesDependent,
  primary: ResourceDefinition,
): string | undefined {
  if (mode !== "once")
    return again === undefined ? undefined : 'has again without mode: "once"; add the mode, or remove again';
  if (primary.scope === "Cluster")
    return `has mode: "once", which is remembered in a ConfigMap beside the primary, and ${kindNameOf(primary)} is in no namespace; use "createOnly"`;
  if (operations.create === false)
    return 'has mode: "once", and is created by another client (operations.create); remove one of them';
  const ofUpdates = { matcher, released, "operations.update": operations.update };
  const unused = firstSet(ofUpdates, ["matcher", "released", "operations.update"]);
  if (unused !== undefined)
    return `has mode: "once", so that it is never updated, and sets ${unused}; remove one of them`;
  if (again !== undefined && (deletion === "orphan" || operations.delete !== undefined))
    return "is created again (again) when the object before is deleted, and the operator does not delete it; remove again, deletion: orphan or operations.delete";
  return undefined;
}

function problemOfReference(dependent: KubernetesDependent, primary: ResourceDefinition): string | undefined {
  const { ref, resource, mode, ...rest } = dependent;
  if (ref === undefined) return undefined;
  if (mode !== "readOnly") return "names its object (ref), and is not readOnly; such an object is only read";
  const needless = firstSet(rest, ["bulk", "itemsDependOn", "eventSource", "namespace"]);
  if (needless !== undefined)
    return `names its object (ref) and states ${needless}; leave it out${needless === "namespace" ? ", or state ref.namespace" : ""}`;
  if (resource.scope === "Cluster" && ref.namespace !== undefined)
    return `names its object in a namespace (ref.namespace), and ${kindNameOf(resource)} is cluster-scoped; leave the namespace out`;
  if (resource.scope === "Namespaced" && primary.scope === "Cluster" && ref.namespace === undefined)
    return `names its object without a namespace, and ${kindNameOf(primary)} is in none; state ref.namespace`;
  return undefined;
}

function problemOfMode({ mode = "managed", desired, ...rest }: KubernetesDependent): string | undefined {
  if (mode !== "readOnly")
    return desired === undefined
      ? "has no desired(); add it, or set mode: readOnly if another client creates the object"
      : undefined;
  if (desired !== undefined) return "is readOnly and has a desired(); leave one of them out";
  const needless = firstSet(rest, [
    "deletion",
    "existing",
    "onImmutable",
    "serverSideApply",
    "fieldManager",
    "released",
    "matcher",
    "operations",
  ]);
  return needless === undefined ? undefined : `is readOnly, so it is never written; remove ${needless}`;
}

function problemOfReleased({ released = [] }: KubernetesDependent): string | undefined {
  const invalid = released.find((path) => !/^(?!(apiVersion|kind|metadata|status)\b)[\w-]+(\.[\w-]+)*$/.test(path));
  if (invalid === undefined) return undefined;
  return `releases "${invalid}"; state the path of a field outside of metadata and status, such as spec.replicas`;
}

function problemOfImmutable({ onImmutable, ...rest }: KubernetesDependent): string | undefined {
  const { mode, resource, deletion, operations = {} } = rest;
  if (onImmutable === undefined || onImmutable === "fail") return undefined;
  if (onImmutable !== "recreate")
    return `has ${JSON.stringify(onImmutable)} for onImmutable; it must be "fail" or "recreate"`;
  if (ownsData(resource))
    return `sets onImmutable: recreate, and the deletion of a ${kindNameOf(resource)} loses data; remove onImmutable`;
  const reasons: readonly (readonly [boolean, string])[] = [
    [mode === "createOnly" || mode === "once", `is ${mode}, so that it is never updated`],
    [operations.update === false, "is never updated (operations.update)"],
    [operations.create === false, "is created by another client (operations.create)"],
    [deletion === "orphan", "is orphaned, so that it is never deleted"],
    [operations.delete === false, "is never deleted (operations.delete)"],
    [operations.delete !== undefined, "has its own delete"],
  ];
  const never = reasons.find(([holds]) => holds)?.[1];
  return never && `${never}, and sets onImmutable: recreate; remove one of them`;
}

// An owner must be in the namespace of its dependents or cluster-scoped (Kubernetes 1.36, garbage collection).
function problemOfLink(dependent: KubernetesDependent, primary: ResourceDefinition): string | undefined {
  const { mode, resource, cluster } = dependent;
  if (mode === "readOnly" || deletionOf(dependent) !== "garbageCollected") return undefined;
  const advice = "state deletion: ordered, so that the runtime deletes it";
  if (cluster !== undefined)
    return `lives in cluster "${cluster}", where the garbage collector cannot find its primary; ${advice}`;
  if (resource.scope === "Cluster" && primary.scope === "Namespaced")
    return `is cluster-scoped, so that no ${kindNameOf(primary)} in a namespace can own it; ${advice}`;
  return undefined;
}

function problemOfPlace({ namespace, resource, eventSource, ...rest }: KubernetesDependent): string | undefined {
  if (namespace !== undefined && resource.scope !== "Namespaced")
    return `states the namespace "${namespace}", and ${kindNameOf(resource)} is cluster-scoped; leave the namespace out`;
  if (eventSource === undefined) return undefined;
  const needless = firstSet(rest, ["filters", "labelSelector", "fieldSelector", "cluster"]);
  return needless === undefined
    ? undefined
    : `shares event source "${eventSource}" and states ${needless}, which is for that source to say`;
}

/** Throws if a dependent lives in a cluster for which the operator has no connection. */
export function checkClusters(controllers: readonly ControllerDefinition[], clusters: readonly string[]): void {
  for (const controller of controllers)
    for (const { name: dependent, cluster } of dependentsOf(controller).filter(isKubernetes))
      if (cluster !== undefined && !clusters.includes(cluster))
        throw new Error(
          `dependent "${dependent}" of controller "${controller.name}" lives in cluster "${cluster}", which is not configured; give it a ` +
            `connection in its option clusters, which has ${clusters.join(", ") || "none"}`,
        );
}

interface CrdCheckContext {
  readonly client: ApiClient;
  /** The clients of the other clusters, by name. */
  readonly clusters: ReadonlyMap<string, ApiClient>;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** Compares the kinds of the controllers with the CRDs of their clusters. Throws if one differs. */
export async function checkDefinitions(
  controllers: readonly ControllerDefinition[],
  { client, clusters, logger, signal }: CrdCheckContext,
): Promise<void> {
  const check = (cluster: ApiClient, name?: string) => {
    const definitions = controllers.flatMap((controller) => definitionsOf(controller, name));
    return checkCrds(cluster, definitions, { logger, signal });
  };
  await Promise.all([check(client), ...[...clusters].map(([name, cluster]) => check(cluster, name))]);
}

// A kind with an activation condition need not be installed, so it is not checked.
function definitionsOf(controller: ControllerDefinition, cluster: string | undefined): ResourceDefinition[] {
  const needed = dependentsOf(controller)
    .filter(isKubernetes)
    .filter((each) => each.activationCondition === undefined && each.cluster === cluster);
  return [...(cluster === undefined ? [controller.workflow.primary] : []), ...needed.map(({ resource }) => resource)];
}
