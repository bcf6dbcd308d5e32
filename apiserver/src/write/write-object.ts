import { randomUUID } from "node:crypto";
import { generateName } from "@gen-operator/schema";
import type { AdmittedWrite } from "../admission/admission.js";
import type { ServedType } from "../builtin/served-type.js";
import { isUint64 } from "../decode/options.js";
import { type FieldError, invalidError } from "../errors/field-error.js";
import { quote } from "../errors/go-format.js";
import {
  alreadyExists,
  forbidden,
  generatedNamesTaken,
  invalid,
  namespaceTerminating,
  notFound,
  plainError,
  staleResourceVersion,
  storagePreconditionFailed,
} from "../errors/status-error.js";
import type { LongIntegers } from "../exact-numbers.js";
import type { UserInfo } from "../identity/user.js";
import { type JsonObject, arrayAt, deepEqual, isObject, objectAt, stringAt } from "../json.js";
import { checkPathName, keyOf, kindRefOf, resourceRefOf, storageKeyOf } from "../object/names.js";
import {
  checkObjectMeta,
  checkUpdatedMeta,
  dropDuplicateOwners,
  holdersOf,
  isTerminating,
  metadataOf,
  now,
} from "../object/object-meta.js";
import { raiseGeneration, restoreReset, setFirstGeneration, wipeReset } from "../object/prepare.js";
import { settled } from "../pending-conversion.js";
import type { Registry } from "../registry/registry.js";
import { type ServedResource, normalForm } from "../registry/served-resource.js";
import { StoredObject, withResourceVersion } from "../storage/stored-object.js";
import { removeObject } from "./delete.js";
import { restoreTimes, trackUpdate } from "./managed-fields.js";
import {
  OutdatedWrite,
  type WriteContext,
  type WriteResult,
  attemptWrite,
  settleNamespace,
  sourcesOf,
} from "./write-context.js";

const GENERATE_ATTEMPTS = 8;
const SERVER_OWNED = ["creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "selfLink", "uid"];

/**
 * Creates a decoded object.
 *
 * `isTracked` says that the managedFields are final already, as those of an apply are; `isUpsert` that an update was asked for.
 */
export async function createObject(
  context: WriteContext,
  body: JsonObject,
  { isTracked = false, isUpsert = false } = {},
): Promise<WriteResult> {
  const { registry, resource, namespace } = context;
  const { type, rules } = resource;
  settleNamespace(metadataOf(body), namespace);
  const resourceVersion = stringAt(metadataOf(body), "resourceVersion") ?? "";
  if (!isTracked && resourceVersion !== "" && !context.isDryRun) {
    throw plainError("resourceVersion should not be set on objects to be created");
  }
  checkCreationAllowed(registry, resource, { name: stringAt(metadataOf(body), "name") ?? "", namespace });
  checkCustomKind(resource, body);
  for (const field of SERVER_OWNED) delete metadataOf(body)[field];
  rules.fillDefaults(body);
  const tracked = isTracked ? body : trackUpdate(context, { live: undefined, object: body, subresource: "" });
  const given = stringAt(metadataOf(tracked), "name") ?? "";
  const mutation = context.admission?.mutate({
    context,
    operation: "CREATE",
    name: given,
    subresource: "",
    object: tracked,
  });
  const object = mutation === undefined ? tracked : await mutation;
  settleNamespace(metadataOf(object), namespace);
  wipeReset(type, object);
  setServerOwned(object);
  const base = stringAt(metadataOf(object), "generateName") ?? "";
  if ((stringAt(metadataOf(object), "name") ?? "") === "" && base !== "") chooseName(context, object, base);
  if (isCertificateRequest(type)) setRequester(object, context.user);
  setFirstGeneration(type, object);
  const { settlesOnUpdate } = type.strategy;
  const settles =
    settlesOnUpdate === "all" ||
    (settlesOnUpdate === "without-labels" && objectAt(metadataOf(object), "labels") === undefined);
  context.warnings.push(...(rules.finish(object, undefined, { subresource: "", isDryRun: context.isDryRun }) ?? []));
  const warning = dropDuplicateOwners(metadataOf(object));
  if (warning !== undefined) context.warnings.push(warning);
  const name = stringAt(metadataOf(object), "name") ?? "";
  const ofMetadata = checkObjectMeta(type, object);
  const ofKind = rules.validate(object, undefined, ofMetadata);
  const hearsOfKindAlone = type.strategy.checksMetadata.length === 0 && ofKind.length > 0;
  const errors = hearsOfKindAlone ? ofKind : [...ofMetadata, ...ofKind];
  if (errors.length > 0) throw invalid(kindRefOf(type, name), errors);
  context.warnings.push(...rules.warnings(object));
  const key = keyOf({ namespace, name });
  const existing = resource.store.get(key);
  const next = normalForm(type, object);
  const created = { context, operation: "CREATE", name, subresource: "", object: next, isUpsert } as const;
  const validation = context.admission?.validate(created);
  if (validation !== undefined) {
    await validation;
    if (existing === undefined && resource.store.get(key) !== undefined) throw new OutdatedWrite();
  }
  if (existing !== undefined)
    throw alreadyExists(resourceRefOf(type, name), { isTerminating: isTerminating(existing.object) });
  rules.reread?.(next);
  if (resource.asksWebhook) return { status: 201, object: await storeNewConverted(context, key, next) };
  return {
    status: 201,
    object: storeNew(context, { key, object: next, settles, revision: Number(resourceVersion) || 0 }),
  };
}

async function storeNewConverted(context: WriteContext, key: string, object: JsonObject): Promise<StoredObject> {
  const { resource, isDryRun } = context;
  const storedForm = await settled(() => resource.storedForm(object));
  if (resource.store.get(key) !== undefined) throw new OutdatedWrite();
  const sources = sourcesOf(context);
  const stored = isDryRun
    ? new StoredObject(key, storedForm, 0, sources)
    : resource.store.put(key, storedForm, sources);
  return settled(() => resource.read(stored));
}

function storeNew(
  context: WriteContext,
  { key, object, settles, revision }: { key: string; object: JsonObject; settles: boolean; revision: number },
): StoredObject {
  const { resource, isDryRun } = context;
  const sources = sourcesOf(context);
  // A dry run has no revision to show but a given one. What it answers was in the form of the store, too.
  const form = () => (revision === 0 ? object : withResourceVersion(object, revision));
  if (isDryRun) return resource.read(new StoredObject(key, resource.storedForm(form()), 0, sources));
  const stored = resource.store.put(key, resource.storedForm(object), sources);
  if (settles) unsettled.add(stored);
  return resource.read(stored);
}

const unsettled = new WeakSet<StoredObject>();

/** True for a new object that gets the last of its defaults by the first update, even by one that changes nothing. */
function isUnsettled(stored: StoredObject): boolean {
  return unsettled.has(stored);
}

function setServerOwned(object: JsonObject): void {
  const metadata = metadataOf(object);
  delete metadata["resourceVersion"];
  metadata["uid"] = randomUUID();
  metadata["creationTimestamp"] = now();
}

/** True for the type whose objects say who made them, and whose spec never changes. */
function isCertificateRequest({ kind, group }: ServedType): boolean {
  return kind === "CertificateSigningRequest" && group === "certificates.k8s.io";
}

// Whatever the request says of it itself.
function setRequester(object: JsonObject, { username, uid, groups, extra }: UserInfo): void {
  const spec: JsonObject = { ...objectAt(object, "spec"), username };
  for (const field of ["uid", "groups", "extra"]) delete spec[field];
  if (uid !== undefined && uid !== "") spec["uid"] = uid;
  if (groups.length > 0) spec["groups"] = [...groups];
  if (extra !== undefined) spec["extra"] = Object.fromEntries(Object.entries(extra).map(([k, v]) => [k, [...v]]));
  object["spec"] = spec;
}

function chooseName({ resource, namespace }: WriteContext, object: JsonObject, base: string): void {
  for (let attempt = 0; attempt < GENERATE_ATTEMPTS; attempt++) {
    const name = generateName(base);
    metadataOf(object)["name"] = name;
    if (resource.store.get(keyOf({ namespace, name })) === undefined) return;
  }
  throw generatedNamesTaken(resourceRefOf(resource.type, metadataOf(object)["name"] as string));
}

/** What a write to an existing object consists of. */
interface Update {
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
  if (resource.asksWebhook) return storeNextConverted(context, { stored, next: last });
  return storeNext(context, { stored, storedForm: resource.storedForm(last) });
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

function storeNext(
  context: WriteContext,
  { stored, storedForm }: { stored: StoredObject; storedForm: JsonObject },
): StoredObject {
  const { resource, isDryRun } = context;
  const sources = sourcesOf(context);
  if (isUnchanged(stored, storedForm, sources)) return resource.read(stored);
  if (isDryRun) return resource.read(stored.as(storedForm, sources));
  return resource.read(resource.store.put(stored.key, storedForm, sources));
}

async function storeNextConverted(
  context: WriteContext,
  { stored, next }: { stored: StoredObject; next: JsonObject },
): Promise<StoredObject> {
  const { resource, isDryRun } = context;
  const storedForm = await settled(() => resource.storedForm(next));
  if (resource.store.get(stored.key) !== stored) throw new OutdatedWrite();
  const sources = sourcesOf(context);
  if (isUnchanged(stored, storedForm, sources)) return settled(() => resource.read(stored));
  const result = isDryRun ? stored.as(storedForm, sources) : resource.store.put(stored.key, storedForm, sources);
  return settled(() => resource.read(result));
}

function isUnchanged(stored: StoredObject, storedForm: JsonObject, sources: readonly LongIntegers[]): boolean {
  if (!deepEqual(storedForm, stored.object) || isUnsettled(stored)) return false;
  // Two integers may be the same number.
  if (sources.length === 0) return true;
  const { integers } = stored.as(storedForm, sources);
  return integers === undefined ? stored.integers === undefined : integers.equals(stored.integers);
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

/** Fails for a custom resource of another kind, which Kubernetes notices as late as it checks what is in the object. */
function checkCustomKind({ type }: ServedResource, object: JsonObject): void {
  const kind = stringAt(object, "kind") ?? "";
  if (type.custom === undefined || kind === type.kind) return;
  const name = stringAt(objectAt(object, "metadata"), "name") ?? "";
  throw invalid({ kind, group: type.group, name }, [invalidError("kind", kind, `must be ${type.kind}`)]);
}

/** Fails when nothing may be created here: the namespace or the type itself is missing or on its way out. */
function checkCreationAllowed(
  registry: Registry,
  resource: ServedResource,
  object: { name: string; namespace: string | undefined },
): void {
  const { type } = resource;
  if (object.namespace !== undefined) {
    const namespace = registry.namespaces.get(object.namespace);
    if (namespace === undefined) throw notFound({ resource: "namespaces", group: "", name: object.namespace });
    if (isTerminating(namespace.object)) {
      throw namespaceTerminating(resourceRefOf(type, object.name), object.namespace);
    }
  }
  if (type.custom !== undefined && isCrdTerminating(type.custom.crd)) {
    const detail = "create not allowed while custom resource definition is terminating";
    throw forbidden(resourceRefOf(type, object.name), detail);
  }
}

function isCrdTerminating(crd: JsonObject): boolean {
  const conditions = arrayAt(objectAt(crd, "status"), "conditions") ?? [];
  return conditions.filter(isObject).some(({ type, status }) => type === "Terminating" && status === "True");
}
