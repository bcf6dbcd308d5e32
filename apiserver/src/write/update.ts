import type { AdmittedWrite } from "../admission/admission.js";
import { isUint64 } from "../read/resource-version.js";
import { invalidError, type FieldError } from "../errors/field-error.js";
import { quote } from "../errors/quote.js";
import {
  invalid,
  notFound,
  plainError,
  staleResourceVersion,
  storagePreconditionFailed,
} from "../errors/status-error.js";
import { deepEqual, stringAt, type JsonObject } from "../json.js";
import { holdersOf } from "../object/finalizers.js";
import { raiseGeneration } from "../object/generation.js";
import { checkPathName } from "../object/names.js";
import { keyOf, kindRefOf, resourceRefOf, storageKeyOf } from "../object/object-key.js";
import { checkUpdatedMeta, dropDuplicateOwners, isTerminating, metadataOf } from "../object/object-meta.js";
import { restoreReset } from "../object/reset-paths.js";
import { settled } from "../pending-conversion.js";
import { normalForm, type ServedResource } from "../registry/served-resource.js";
import type { StoredObject } from "../storage/stored-object.js";
import { attemptWrite, OutdatedWrite } from "./attempts.js";
import { settleNamespace } from "./check-place.js";
import { createObject, isCertificateRequest, isUnsettled } from "./create.js";
import { checkCustomKind } from "./decode-object.js";
import { removeObject } from "./delete.js";
import { restoreTimes, trackUpdate } from "./managed-fields.js";
import type { WriteContext, WriteResult } from "./write-context.js";

/** What a write to an existing object consists of. */
export interface Update {
  name: string;
  /** "" is the main endpoint. */
  subresource: string;
  /**
   * Makes the new state from the present one, which it must not change; both in the version of the request. `isTracked` says
   * that the managedFields are final already.
   */
  change(live: JsonObject): { object: JsonObject; isTracked: boolean };
  /** The new state when there is no object; absent where that is a failure. */
  create?(): { object: JsonObject; isTracked: boolean };
  /** A PUT answers another uid with a conflict, a PATCH with an immutable field. */
  isPut: boolean;
}

/** Changes an object, or creates it where that is possible. */
export function updateObject(context: WriteContext, update: Update): Promise<WriteResult> {
  return attemptWrite(context, update.name, () => attemptUpdate(context, update));
}

async function attemptUpdate(context: WriteContext, update: Update): Promise<WriteResult> {
  const { resource, namespace } = context;
  checkPathName(update.name);
  const key = keyOf({ namespace, name: update.name });
  const stored = resource.store.get(key);
  if (stored === undefined) {
    if (update.create === undefined) throw notFound(resourceRefOf(resource.type, update.name));
    const { object, isTracked } = update.create();
    const given = stringAt(metadataOf(object), "uid") ?? "";
    if (update.isPut && given !== "") {
      const storageKey = storageKeyOf(resource.type, key, context);
      const mismatch = { key: storageKey, field: "UID", given, live: "" } as const;
      throw storagePreconditionFailed(resourceRefOf(resource.type, update.name), mismatch);
    }
    delete metadataOf(object)["resourceVersion"];
    return createObject(context, object, { isTracked, isUpsert: true });
  }
  const live = resource.read(stored);
  const { object, isTracked } = update.change(live.object);
  const result = await replaceObject(context, { ...update, object, isTracked, stored, live: live.object });
  return { status: 200, object: result };
}

interface Replacement extends Update {
  object: JsonObject;
  isTracked: boolean;
  stored: StoredObject;
  live: JsonObject;
}

async function replaceObject(context: WriteContext, replacement: Replacement): Promise<StoredObject> {
  const { resource, namespace } = context;
  const { type, rules } = resource;
  const { live, subresource, stored, name } = replacement;
  settleNamespace(metadataOf(replacement.object), namespace);
  checkUid(context, replacement);
  checkResourceVersion(context, replacement);
  if (subresource !== "status") checkCustomKind(resource, replacement.object);
  // An apply has set the defaults of what it changes, and what is read through another version stays without those of this one.
  if (type.custom === undefined || !replacement.isTracked) rules.fillDefaults(replacement.object, live);
  const tracked = replacement.isTracked
    ? replacement.object
    : trackUpdate(context, { live, object: replacement.object, subresource });
  const admitted: Omit<AdmittedWrite, "object"> = { context, operation: "UPDATE", name, subresource, oldObject: live };
  const mutation = context.admission?.mutate({ ...admitted, object: tracked });
  const mutated = mutation === undefined ? tracked : await mutation;
  settleNamespace(metadataOf(mutated), namespace);
  carryOver(mutated, live, replacement);
  if (isCertificateRequest(type)) mutated["spec"] = live["spec"] as JsonObject;
  const object = restoreReset(type, mutated, { live, subresource });
  const count = () => subresource !== "status" && raiseGeneration(type, object, live);
  if (type.strategy.countsDropped) count();
  rules.finish(object, live, { subresource, isDryRun: context.isDryRun });
  if (!type.strategy.countsDropped) count();
  const warning = dropDuplicateOwners(metadataOf(object), { isPatch: !replacement.isPut });
  if (warning !== undefined) context.warnings.push(warning);
  const errors = checkReplacement(context, { object, live, subresource });
  if (errors.length > 0) {
    context.warnings.push(...(rules.forgiven?.(object) ?? []));
    throw invalid(kindRefOf(type, name), errors);
  }
  context.warnings.push(...rules.warnings(object, live, subresource));
  const next = normalForm(type, object);
  const validation = context.admission?.validate({ ...admitted, object: next });
  if (validation !== undefined) await validation;
  if (resource.store.get(stored.key) !== stored) throw new OutdatedWrite();
  if (isReadyToGo(resource, next, live)) return removeObject(context, { stored, last: next });
  const last = restoreTimes(live, next);
  rules.reread?.(last);
  metadataOf(last)["resourceVersion"] = metadataOf(live)["resourceVersion"] as string;
  if (resource.asksWebhook) return storeConverted(context, { stored, next: last });
  return store(context, { stored, storedForm: resource.storedForm(last) });
}

function checkReplacement(
  context: WriteContext,
  write: { object: JsonObject; live: JsonObject; subresource: string },
): FieldError[] {
  const { type, rules } = context.resource;
  const { object, live, subresource } = write;
  const ofPart = subresource === "" ? undefined : rules.validatePart?.(object, live, subresource);
  const ofMetadata = checkUpdatedMeta(type, write);
  const ofKind =
    subresource === "status"
      ? rules.validateStatus(object, live)
      : (ofPart ?? rules.validate(object, live, ofMetadata));
  return [...ofMetadata, ...ofKind];
}

function store(
  { resource, isDryRun }: WriteContext,
  { stored, storedForm }: { stored: StoredObject; storedForm: JsonObject },
): StoredObject {
  if (deepEqual(storedForm, stored.object) && !isUnsettled(stored)) return resource.read(stored);
  if (isDryRun) return resource.read(stored.as(storedForm));
  return resource.read(resource.store.put(stored.key, storedForm));
}

async function storeConverted(
  { resource, isDryRun }: WriteContext,
  { stored, next }: { stored: StoredObject; next: JsonObject },
): Promise<StoredObject> {
  const storedForm = await settled(() => resource.storedForm(next));
  if (resource.store.get(stored.key) !== stored) throw new OutdatedWrite();
  if (deepEqual(storedForm, stored.object) && !isUnsettled(stored)) return settled(() => resource.read(stored));
  const result = isDryRun ? stored.as(storedForm) : resource.store.put(stored.key, storedForm);
  return settled(() => resource.read(result));
}

function checkUid(context: WriteContext, { object, live, name, isPut }: Replacement): void {
  const given = stringAt(metadataOf(object), "uid") ?? "";
  const uid = stringAt(metadataOf(live), "uid") ?? "";
  if (!isPut || given === "" || given === uid) return;
  const { type } = context.resource;
  const key = storageKeyOf(type, keyOf({ namespace: context.namespace, name }), context);
  throw storagePreconditionFailed(resourceRefOf(type, name), { key, field: "UID", given, live: uid });
}

function checkResourceVersion(context: WriteContext, { object, live, name }: Replacement): void {
  const { type } = context.resource;
  const given = stringAt(metadataOf(object), "resourceVersion") ?? "";
  if (given === "" || given === "0") {
    if (type.strategy.allowsUnconditionalUpdate) return;
    const error = invalidError("metadata.resourceVersion", 0, "must be specified for an update");
    // The failure names the resource where the kind would stand.
    throw invalid({ kind: type.plural, group: type.group, name }, [error]);
  }
  if (!isUint64(given)) {
    const problem = /^\d+$/.test(given) ? "value out of range" : "invalid syntax";
    throw plainError(`strconv.ParseUint: parsing ${quote(given)}: ${problem}`);
  }
  if (given !== metadataOf(live)["resourceVersion"]) throw staleResourceVersion(resourceRefOf(type, name));
}

// What the server decides stays, whatever the request says, except that contradicting a deletion is a failure.
function carryOver(object: JsonObject, live: JsonObject, { isPut }: { isPut: boolean }): void {
  const metadata = metadataOf(object);
  const before = metadataOf(live);
  const ifMissing = ["deletionTimestamp", "deletionGracePeriodSeconds", ...(isPut ? [] : ["uid"])];
  const always = ["creationTimestamp", "selfLink", "generation", ...(isPut ? ["uid"] : [])];
  const missing = ifMissing.filter((field) => (metadata[field] ?? "") === "");
  for (const field of [...always, ...missing]) {
    if (before[field] === undefined) delete metadata[field];
    else metadata[field] = before[field];
  }
}

function isReadyToGo({ type }: ServedResource, object: JsonObject, live: JsonObject): boolean {
  if (!isTerminating(live) || holdersOf(type, object).length > 0 || holdersOf(type, live).length === 0) return false;
  return (metadataOf(object)["deletionGracePeriodSeconds"] ?? 0) === 0;
}
