// What is created below an object, or to be done or answered and not stored: an Eviction, a Binding, a TokenRequest, a review.
import type { AdmittedWrite } from "../admission/admission.js";
import { selectorMatches } from "../builtin/rules/field-rules.js";
import type { ServedType } from "../builtin/served-type.js";
import { builtinStrategy } from "../builtin/strategy.js";
import { type DeleteOptions, parseConnectOptions, parseDeleteOptions } from "../decode/options.js";
import {
  type FieldError,
  fieldErrorText,
  invalidError,
  requiredError,
  textNotSupportedError,
} from "../errors/field-error.js";
import { quote } from "../errors/go-format.js";
import {
  type StatusError,
  badRequest,
  conflict,
  forbidden,
  invalid,
  notFound,
  plainError,
  statusError,
  storagePreconditionFailed,
} from "../errors/status-error.js";
import { type JsonObject, arrayAt, clone, deepEqual, isObject, objectAt, stringAt } from "../json.js";
import { conditionOf, hasCondition, setCondition } from "../object/conditions.js";
import { keyOf, resourceRefOf, storageKeyOf } from "../object/names.js";
import { isTerminating, metadataOf, now } from "../object/object-meta.js";
import { builtinRules } from "../registry/builtin-rules.js";
import { ServedResource, normalForm } from "../registry/served-resource.js";
import type { StoredObject } from "../storage/stored-object.js";
import { settleNamespace } from "./decode-object.js";
import { checkPreconditions, deleteObject } from "./delete.js";
import { putOwnStatus, trackUpdate } from "./managed-fields.js";
import type { WriteContext } from "./write-context.js";

/** A creation that is not stored. */
interface CreatedPart {
  /** "" for what has no name. */
  readonly name: string;
  /** "" on the main endpoint. */
  readonly subresource: string;
  /** What the object is of, if that is not the resource of the path. */
  readonly part?: ServedResource;
  /** A decoded object. */
  readonly object: JsonObject;
}

/** How what is asked for is admitted. */
interface PartAdmission {
  /** Whether its members have managers. */
  readonly isTracked: boolean;
  /** Checks what admission has changed, before somebody may refuse it, and returns it with what it leaves out. */
  readonly check: (object: JsonObject) => JsonObject;
}

/** Returns what is asked for after admission has changed it, once it is found right and nobody refuses it. */
export async function admitPart(
  context: WriteContext,
  created: CreatedPart,
  { isTracked, check }: PartAdmission,
): Promise<JsonObject> {
  const { object: given, subresource, part = context.resource } = created;
  settleNamespace(metadataOf(given), context.namespace);
  part.rules.fillDefaults(given);
  const object = isTracked
    ? trackUpdate({ ...context, resource: part }, { live: undefined, object: given, subresource })
    : given;
  const write = writeOf(context, { ...created, object: normalForm(part.type, object) });
  const mutated = (await context.admission?.mutate(write)) ?? (write.object as JsonObject);
  const checked = check(mutated);
  await context.admission?.validate({ ...write, object: checked });
  return checked;
}

/** Fails if an object is for another name than the URL. */
function checkPartName(object: JsonObject, { kind, name }: { kind: string; name: string }): void {
  if ((stringAt(objectAt(object, "metadata"), "name") ?? "") === name) return;
  throw badRequest(`name in URL does not match name in ${kind} object`);
}

function writeOf(context: WriteContext, { name, subresource, part, object }: CreatedPart): AdmittedWrite {
  return { context, operation: "CREATE", name, subresource, part, object };
}

/** A kind that is only written below objects of another kind. */
interface PartKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly schemaName: string;
}

/** Gives what decodes and completes objects of such a kind. It has no path of its own, so its plural is "", and what it stores is the object that it is below. */
export function partResource(part: PartKind, { store }: ServedResource): ServedResource {
  const type: ServedType = {
    ...part,
    ...{ plural: "", singular: "", listKind: "", shortNames: [], categories: [], namespaced: true, verbs: [] },
    subresources: [],
    strategy: builtinStrategy({ group: part.group, plural: "", hasStatus: false }),
  };
  const noAddresses = (): never => {
    throw new Error(`a ${part.kind} has no addresses`);
  };
  return new ServedResource({ type, store, rules: () => builtinRules(type, noAddresses) });
}

/** The resource of Bindings. */
export const BINDINGS = { group: "", version: "v1", plural: "bindings" };
const PODS = { group: "", version: "v1", plural: "pods" };

/**
 * Assigns a Pod to the Node that a Binding names. Fields keep their managers, and the generation stays. The resource is that of Pods, or of Bindings, which are
 * not stored.
 */
export async function bindPod(context: WriteContext, name: string, given: JsonObject): Promise<void> {
  const { registry, namespace, isDryRun } = context;
  const subresource = context.resource.type.plural === "pods" ? "binding" : "";
  const created = { name, subresource, part: registry.find(BINDINGS) as ServedResource, object: given };
  const binding = await admitPart(context, created, {
    isTracked: true,
    check(object) {
      checkPartName(object, { kind: "Binding", name });
      const errors = checkTarget(objectAt(object, "target"));
      const texts = errors.map(fieldErrorText);
      if (texts.length > 0) throw plainError(texts.length === 1 ? String(texts[0]) : `[${texts.join(", ")}]`);
      return object;
    },
  });
  if (name === "") throw badRequest("Name parameter required.");
  const resource = registry.find(PODS) as ServedResource;
  const key = keyOf({ namespace, name });
  const stored = resource.store.get(key);
  if (stored === undefined) throw notFound(resourceRefOf(resource.type, name));
  checkMeant({ ...context, resource }, stored, metadataOf(binding));
  const problem = problemOf(name, stored.object);
  if (problem !== undefined) throw conflict({ resource: "pods/binding", group: "", name }, problem);
  if (!isDryRun) resource.store.put(key, boundPod(stored.object, binding));
}

function checkTarget(target: JsonObject | undefined): FieldError[] {
  const kind = stringAt(target, "kind") ?? "";
  const isKnown = kind === "" || kind === "Node";
  return [
    ...(isKnown ? [] : [textNotSupportedError("target.kind", kind, ["Node", "<empty>"])]),
    ...((stringAt(target, "name") ?? "") === "" ? [requiredError("target.name")] : []),
  ];
}

// A Binding may say which Pod it means, and which state of it.
function checkMeant(context: WriteContext, { key, object }: StoredObject, meant: JsonObject): void {
  const { type } = context.resource;
  const live = metadataOf(object);
  const fields = { UID: "uid", ResourceVersion: "resourceVersion" } as const;
  for (const [field, member] of Object.entries(fields) as [keyof typeof fields, string][]) {
    const given = stringAt(meant, member) ?? "";
    if (given === "" || given === live[member]) continue;
    const mismatch = { key: storageKeyOf(type, key, context), field, given, live: String(live[member]) };
    throw storagePreconditionFailed(resourceRefOf(type, stringAt(live, "name") ?? ""), mismatch);
  }
}

function problemOf(name: string, pod: JsonObject): string | undefined {
  const spec = objectAt(pod, "spec");
  const nodeName = stringAt(spec, "nodeName") ?? "";
  if (isTerminating(pod)) return `pod ${name} is being deleted, cannot be assigned to a host`;
  if (nodeName !== "") return `pod ${name} is already assigned to node ${quote(nodeName)}`;
  const isGated = (arrayAt(spec, "schedulingGates") ?? []).length > 0;
  return isGated ? `pod ${name} has non-empty .spec.schedulingGates` : undefined;
}

function boundPod(live: JsonObject, binding: JsonObject): JsonObject {
  const pod = clone(live);
  const metadata = metadataOf(pod);
  const { annotations, labels } = objectAt(binding, "metadata") ?? {};
  if (isObject(annotations)) metadata["annotations"] = { ...objectAt(metadata, "annotations"), ...annotations };
  if (isObject(labels)) metadata["labels"] = { ...objectAt(metadata, "labels"), ...labels };
  pod["spec"] = { ...objectAt(pod, "spec"), nodeName: stringAt(objectAt(binding, "target"), "name") ?? "" };
  // It is not to be put anywhere else any more.
  const { nominatedNodeName: _nominated, ...status } = objectAt(pod, "status") ?? {};
  pod["status"] = status;
  setCondition(pod, { type: "PodScheduled", status: "True", lastProbeTime: null });
  return pod;
}

// Evicts Pods as far as PodDisruptionBudgets let them go, as the eviction subresource of Kubernetes 1.36 does.

/** The kind that asks for an eviction. */
export const EVICTION = {
  group: "policy",
  version: "v1",
  kind: "Eviction",
  schemaName: "io.k8s.api.policy.v1.Eviction",
};
const DRY_RUN = { dryRun: ["All"] };
const BUDGETS = { group: "policy", version: "v1", plural: "poddisruptionbudgets" };
const PROCESSING_RETRY_SECONDS = 10;
const MAX_DISRUPTED = 2000;

/** Deletes a Pod if its PodDisruptionBudget allows that, and counts it there. */
export async function evictPod(
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
  // Who is asked about evictions is not asked about the deletion.
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

// What the options call themselves is not looked at.
function deletionOf(eviction: JsonObject): DeleteOptions {
  const { kind: _kind, apiVersion: _version, ...options } = objectAt(eviction, "deleteOptions") ?? {};
  return parseDeleteOptions(options, new URLSearchParams());
}

/** What has ended, or has not begun, or goes already disturbs nobody. */
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

/** A Pod that is not ready costs nothing where the policy says so, and where enough others are. */
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

/** Why a budget allows nothing: what its controller said last, or how many Pods it needs. */
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

/** 429: a PodDisruptionBudget does not let a Pod go now. */
function tooManyDisruptions(detail: string, retryAfterSeconds?: number): StatusError {
  const causes = [{ reason: "DisruptionBudget", message: detail }];
  return statusError({
    code: 429,
    reason: "TooManyRequests",
    message: "Cannot evict pod as it would violate the pod's disruption budget.",
    details: retryAfterSeconds === undefined ? { causes } : { causes, retryAfterSeconds },
  });
}

/** The kinds of options of connections to Pods by subresource. */
const KINDS: Record<string, string> = {
  exec: "PodExecOptions",
  attach: "PodAttachOptions",
  portforward: "PodPortForwardOptions",
};

/** True for the subresources of Pods that are connections. */
export function isConnection(subresource: string): boolean {
  return Object.hasOwn(KINDS, subresource);
}

/** Returns the options of a connection as admission changes them, once nobody refuses it. */
export async function admitConnection(
  context: WriteContext,
  { name, subresource, query }: { name: string; subresource: string; query: URLSearchParams },
): Promise<JsonObject> {
  const kind = KINDS[subresource] as string;
  const of = { group: "", version: "v1", kind, schemaName: `io.k8s.api.core.v1.${kind}` };
  const part = partResource(of, context.resource);
  const object = parseConnectOptions(of, query);
  part.rules.fillDefaults(object);
  const write: AdmittedWrite = { context, operation: "CONNECT", name, subresource, part, object };
  const mutated = (await context.admission?.mutate(write)) ?? object;
  await context.admission?.validate({ ...write, object: mutated });
  return mutated;
}
