import type { AdmittedWrite } from "../admission/admission.js";
import type { ServedType } from "../builtin/served-type.js";
import { serverTime, setImmediate, timestampOf } from "../clock.js";
import type { DeleteOptions, ListOptions } from "../decode/options.js";
import {
  type PreconditionMismatch,
  StatusError,
  conflict,
  forbidden,
  mismatchText,
  notFound,
  preconditionFailed,
} from "../errors/status-error.js";
import { type JsonObject, clone, deepEqual, objectAt, stringAt } from "../json.js";
import { holdDefinition, isDefinition } from "../object/conditions.js";
import {
  checkPathName,
  finalizersForDeletion,
  holdersOf,
  isNamespace,
  isTerminating,
  keyOf,
  kindRefOf,
  metadataOf,
  normalForm,
  now,
  resourceRefOf,
} from "../object/object-meta.js";
import { settled } from "../pending-conversion.js";
import { type ListResult, prepareList } from "../read/list.js";
import type { StoredObject } from "../storage/store.js";
import { OutdatedWrite, type WriteContext, attemptWrite } from "./write-context.js";

const IMMORTAL_NAMESPACES = new Set(["default", "kube-system", "kube-public"]);
const SYSTEM_CLASSES = new Set(["system-node-critical", "system-cluster-critical"]);
const DEFAULT_GRACE_SECONDS = 30;

/** Result of a DELETE: the object was removed, or deletionTimestamp was set. */
export interface DeleteResult {
  isGone: boolean;
  object: StoredObject;
}

/** Deletes an object, or sets deletionTimestamp if finalizers or a grace period delay its removal. */
export function deleteObject(
  context: WriteContext,
  name: string,
  options: DeleteOptions & { isOfCollection?: boolean },
): Promise<DeleteResult> {
  return attemptWrite(context, name, () => attemptDelete(context, name, options));
}

async function attemptDelete(
  context: WriteContext,
  name: string,
  options: DeleteOptions & { isOfCollection?: boolean },
): Promise<DeleteResult> {
  const { resource, namespace } = context;
  const { type } = resource;
  if (options.isOfCollection !== true) warnOfOrphans(context, options);
  // A deletecollection request may delete system priority classes.
  if (isPriorityClass(type) && SYSTEM_CLASSES.has(name) && options.isOfCollection !== true)
    throw forbidden(resourceRefOf(type, name), "this is a system priority class and cannot be deleted");
  checkPathName(name);
  const stored = resource.store.get(keyOf({ namespace, name }));
  if (stored === undefined) throw notFound(resourceRefOf(type, name));
  if (isNamespace(type) && IMMORTAL_NAMESPACES.has(name)) {
    throw forbidden(resourceRefOf(type, name), "this namespace may not be deleted");
  }
  const refreshed = resource.refresh(stored);
  if (refreshed !== undefined) await refreshed;
  const live = resource.read(stored).object;
  checkPreconditions(context, live, options);
  // In a deletecollection request, admission gets no name.
  const named = options.isOfCollection === true ? "" : name;
  const admitted: AdmittedWrite = { context, operation: "DELETE", name: named, subresource: "", oldObject: live };
  const mutation = context.admission?.mutate(admitted);
  if (mutation !== undefined) await mutation;
  const validation = context.admission?.validate(admitted);
  if (validation !== undefined) await validation;
  if (resource.store.get(stored.key) !== stored) throw new OutdatedWrite();
  const marked = markDeleted(context, live, options);
  if (marked === "gone") return { isGone: true, object: removeAtOnce(context, stored) };
  if (deepEqual(marked, live)) return { isGone: false, object: resource.read(stored) };
  const next = normalForm(type, marked);
  if (context.isDryRun) return { isGone: false, object: stored.as(next) };
  if (resource.asksWebhook) {
    const storedForm = await settled(() => resource.storedForm(next));
    if (resource.store.get(stored.key) !== stored) throw new OutdatedWrite();
    const put = resource.store.put(stored.key, storedForm);
    return { isGone: false, object: await settled(() => resource.read(put)) };
  }
  return { isGone: false, object: resource.read(resource.store.put(stored.key, resource.storedForm(next))) };
}

function isPriorityClass({ group, plural }: ServedType): boolean {
  return group === "scheduling.k8s.io" && plural === "priorityclasses";
}

function removeAtOnce(context: WriteContext, stored: StoredObject): StoredObject {
  const { resource, isDryRun } = context;
  const live = resource.read(stored).object;
  if (!resource.type.strategy.graceful) {
    const removed = removeObject(context, { stored, last: live });
    return isDryRun ? removed : atPresent(context, removed, live);
  }
  const last = normalForm(resource.type, withoutGrace(live));
  // The expired grace period is stored before the object is removed, so watches see it.
  const shown = isDryRun ? stored : resource.store.put(stored.key, resource.storedForm(last));
  const removed = removeObject(context, { stored: shown, last });
  return isDryRun ? removed : atPresent(context, removed, last);
}

// The response of a DELETE contains the revision of the deletion.
function atPresent({ registry }: WriteContext, stored: StoredObject, object: JsonObject): StoredObject {
  return stored.as({
    ...object,
    metadata: { ...metadataOf(object), resourceVersion: String(registry.store.revision) },
  });
}

/** Removes an object from the store; returns the state for the response. */
export function removeObject(context: WriteContext, removal: { stored: StoredObject; last: JsonObject }): StoredObject {
  const { resource, isDryRun } = context;
  const { stored, last } = removal;
  if (!isDryRun) resource.store.remove(stored.key);
  // The response of an update that removes the last finalizer contains the previous revision.
  return stored.as({ ...last, metadata: { ...metadataOf(last), resourceVersion: String(stored.revision) } });
}

/** Checks the UID and resourceVersion preconditions of a deletion. */
export function checkPreconditions({ resource }: WriteContext, live: JsonObject, options: DeleteOptions): void {
  const metadata = metadataOf(live);
  const name = stringAt(metadata, "name") ?? "";
  const uid = stringAt(metadata, "uid") ?? "";
  const resourceVersion = stringAt(metadata, "resourceVersion") ?? "";
  // Namespaces and CRDs check preconditions before the storage does, which yields another error.
  const failed = (mismatch: PreconditionMismatch): StatusError =>
    isNamespace(resource.type) || isDefinition(resource.type)
      ? conflict(resourceRefOf(resource.type, name), mismatchText(mismatch))
      : preconditionFailed(kindRefOf(resource.type, name), mismatch);
  if (options.uid !== undefined && options.uid !== uid) {
    throw failed({ field: "UID", given: options.uid, live: uid });
  }
  if (options.resourceVersion !== undefined && options.resourceVersion !== resourceVersion) {
    throw failed({ field: "ResourceVersion", given: options.resourceVersion, live: resourceVersion });
  }
}

/** Warns about the deletion of Jobs without propagationPolicy; once for a collection. */
function warnOfOrphans({ resource, warnings }: WriteContext, options: DeleteOptions): void {
  const isUndecided = options.propagation === undefined;
  if (isUndecided && resource.type.group === "batch" && resource.type.plural === "jobs") {
    warnings.push(
      "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set " +
        "propagationPolicy=Orphan to suppress this warning",
    );
  }
}

/** Returns the object with deletionTimestamp set, or "gone" if it can be removed immediately. */
function markDeleted(context: WriteContext, live: JsonObject, options: DeleteOptions): JsonObject | "gone" {
  const { type } = context.resource;
  const object = clone(live);
  const metadata = metadataOf(object);
  setFinalizers(metadata, finalizersForDeletion(type, live, options.propagation));
  if (isDefinition(type) && !isTerminating(live)) holdDefinition(object);
  const grace = type.strategy.graceful ? graceOf(live, options) : 0;
  const isHeld = holdersOf(type, object).length > 0;
  if (grace === 0 && !isHeld) return "gone";
  if (isNamespace(type)) return markNamespace(object, live);
  if (isTerminating(live)) {
    shortenGrace(metadata, grace);
    return object;
  }
  metadata["deletionTimestamp"] = secondsFromNow(grace);
  if (isDefinition(type)) return object;
  metadata["deletionGracePeriodSeconds"] = grace;
  raise(metadata);
  return object;
}

function markNamespace(object: JsonObject, live: JsonObject): JsonObject {
  if (isTerminating(live)) return object;
  metadataOf(object)["deletionTimestamp"] = now();
  object["status"] = { ...objectAt(object, "status"), phase: "Terminating" };
  return object;
}

function setFinalizers(metadata: JsonObject, finalizers: string[]): void {
  if (finalizers.length > 0) metadata["finalizers"] = finalizers;
  else delete metadata["finalizers"];
}

// Objects of kinds without a generation keep none.
function raise(metadata: JsonObject): void {
  const generation = metadata["generation"];
  if (typeof generation === "number" && generation > 0) metadata["generation"] = generation + 1;
}

function graceOf(live: JsonObject, options: DeleteOptions): number {
  const spec = objectAt(live, "spec");
  const phase = stringAt(objectAt(live, "status"), "phase") ?? "";
  const isScheduled = (stringAt(spec, "nodeName") ?? "") !== "";
  if (!isScheduled || phase === "Succeeded" || phase === "Failed") return 0;
  const own = spec?.["terminationGracePeriodSeconds"];
  return options.gracePeriodSeconds ?? (typeof own === "number" ? own : DEFAULT_GRACE_SECONDS);
}

// The last state of a Pod that is removed immediately.
function withoutGrace(live: JsonObject): JsonObject {
  const metadata = { ...metadataOf(live), deletionTimestamp: now(), deletionGracePeriodSeconds: 0 };
  if (!isTerminating(live)) raise(metadata);
  return { ...live, metadata };
}

function shortenGrace(metadata: JsonObject, grace: number): void {
  const present = metadata["deletionGracePeriodSeconds"];
  if (typeof present !== "number" || grace >= present) return;
  metadata["deletionGracePeriodSeconds"] = grace;
  metadata["deletionTimestamp"] = secondsFromNow(grace);
}

function secondsFromNow(seconds: number): string {
  return timestampOf(new Date(serverTime().getTime() + seconds * 1000));
}

const SLICE = 100;

/** Deletes the objects of a list; returns the list as it was before. */
export async function deleteCollection(
  context: WriteContext,
  options: { deletion: DeleteOptions; list: ListOptions },
): Promise<ListResult> {
  const { resource, namespace } = context;
  const list = await settled(prepareList(resource, { ...options.list, namespace }));
  warnOfOrphans(context, options.deletion);
  for (const [index, { object }] of list.items.entries()) {
    // Yield to the event loop, so that other requests are served.
    if (index > 0 && index % SLICE === 0) await new Promise((resolve) => setImmediate(resolve));
    const metadata = metadataOf(object);
    const of = { ...context, namespace: stringAt(metadata, "namespace") };
    await deleteUnlessGone(of, stringAt(metadata, "name") ?? "", options.deletion);
  }
  return list;
}

async function deleteUnlessGone(context: WriteContext, name: string, options: DeleteOptions): Promise<void> {
  try {
    await deleteObject(context, name, { ...options, isOfCollection: true });
  } catch (error) {
    if (!(error instanceof StatusError) || error.status.code !== 404) throw error;
  }
}
