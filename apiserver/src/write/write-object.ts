import { randomUUID } from "node:crypto";
import { generateName } from "@gen-operator/schema";
import type { AdmittedWrite } from "../admission/admission.js";
import { hasGivenEmpty } from "../builtin/normal-form.js";
import { objectsAt } from "../builtin/read-path.js";
import type { ServedType } from "../builtin/served-type.js";
import { isUint64 } from "../decode/options.js";
import { invalidError } from "../errors/field-error.js";
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
import { type JsonObject, type JsonValue, arrayAt, clone, deepEqual, isObject, objectAt, stringAt } from "../json.js";
import { setAtPath, valueAtPath } from "../object/field-path.js";
import {
  checkObjectMeta,
  checkPathName,
  checkUpdatedMeta,
  dropDuplicateOwners,
  holdersOf,
  isNamespace,
  isTerminating,
  keyOf,
  kindRefOf,
  metadataOf,
  normalForm,
  now,
  resourceRefOf,
  storageKeyOf,
} from "../object/object-meta.js";
import { settled } from "../pending-conversion.js";
import type { ServedResource } from "../registry/registry.js";
import { StoredObject, withResourceVersion } from "../storage/store.js";
import { removeObject } from "./delete.js";
import { restoreTimes, trackUpdate } from "./managed-fields.js";
import {
  OutdatedWrite,
  type WriteContext,
  type WriteResult,
  attemptWrite,
  setNamespace,
  sourcesOf,
} from "./write-context.js";

/** A write that passes through the stages; each may replace its object. */
interface Write {
  readonly context: WriteContext;
  /** "" for the main resource. */
  readonly subresource: string;
  /** True if managedFields are already computed, as for an apply. */
  readonly isTracked: boolean;
  object: JsonObject;
}

interface Creation extends Write {
  readonly operation: "CREATE";
  readonly live: undefined;
  /** True if the request was an update. */
  readonly isUpsert: boolean;
  /** The resourceVersion of the request; "" if it is absent. */
  readonly resourceVersion: string;
  /** True if the first update sets the remaining defaults. */
  settles: boolean;
  /** An existing object with this name, read before validating admission. */
  existing: StoredObject | undefined;
}

/** A write that replaces an object. */
interface Replacement extends Write {
  readonly operation: "UPDATE";
  readonly name: string;
  readonly isPut: boolean;
  readonly stored: StoredObject;
  /** The stored object in the requested version. */
  readonly live: JsonObject;
}

/** A stage of a write, possibly asynchronous. The last one returns the object for the response. */
type Stage<W> = (write: W) => Promise<StoredObject | void> | StoredObject | void;

/**
 * The stages in the order of kube-apiserver. A decoded object is defaulted, its managers are tracked, and it passes mutating admission
 * (`endpoints/handlers`); it is prepared and validated (`registry/rest`), passes validating admission, and is stored (`registry/generic/registry`).
 */
const STAGES: readonly { readonly create?: Stage<Creation>; readonly update?: Stage<Replacement> }[] = [
  { create: matchNamespace, update: matchNamespace },
  { create: checkCreatable, update: checkPreconditions },
  { create: checkKind, update: checkKind },
  { create: clearServerOwned },
  { create: fillDefaults, update: fillDefaults },
  { create: recordManagers, update: recordManagers },
  { create: admitMutating, update: admitMutating },
  { create: matchNamespace, update: matchNamespace },
  { create: prepareForCreate, update: prepareForUpdate },
  { create: dropDuplicateOwnerReferences, update: dropDuplicateOwnerReferences },
  { create: validateNew, update: validateUpdate },
  { create: warn, update: warn },
  { create: canonicalize, update: canonicalize },
  { create: findExisting },
  { create: admitValidating, update: admitValidating },
  { create: checkStillAbsent, update: checkStillLatest },
  { create: storeNew, update: storeUpdate },
];

const CREATE_STAGES = STAGES.flatMap(({ create }) => create ?? []);
const UPDATE_STAGES = STAGES.flatMap(({ update }) => update ?? []);

async function run<W>(stages: readonly Stage<W>[], write: W): Promise<StoredObject> {
  let result: StoredObject | void = undefined;
  for (const stage of stages) {
    const outcome = stage(write);
    result = outcome instanceof Promise ? await outcome : outcome;
  }
  return result as StoredObject;
}

/**
 * Creates a decoded object. With admission or a conversion webhook it may throw OutdatedWrite, for which the caller uses attemptWrite.
 *
 * `isTracked` is set if managedFields are already computed, as for an apply; `isUpsert`, if the request was an update.
 */
export async function createObject(
  context: WriteContext,
  object: JsonObject,
  { isTracked = false, isUpsert = false } = {},
): Promise<WriteResult> {
  const write: Creation = {
    context,
    operation: "CREATE",
    subresource: "",
    live: undefined,
    object,
    isTracked,
    isUpsert,
    resourceVersion: stringAt(metadataOf(object), "resourceVersion") ?? "",
    settles: false,
    existing: undefined,
  };
  return { status: 201, object: await run(CREATE_STAGES, write) };
}

/** A write to an existing object. */
interface Update {
  name: string;
  /** "" for the main resource. */
  subresource: string;
  /**
   * Computes the new state from the live one, which it must not modify; both are in the requested version. `isTracked` is set if managedFields are
   * already computed.
   */
  change(live: JsonObject): { object: JsonObject; isTracked: boolean };
  /** Computes the object to create if none exists; absent if that is an error. */
  create?(): { object: JsonObject; isTracked: boolean };
  /** A different UID causes a conflict for PUT, and an immutable field error for PATCH. */
  isPut: boolean;
}

/** Updates an object, or creates it if the request allows that. */
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
  const live = resource.read(stored).object;
  const { object, isTracked } = update.change(live);
  const { name, subresource, isPut } = update;
  const write: Replacement = {
    context,
    operation: "UPDATE",
    name,
    subresource,
    isPut,
    isTracked,
    stored,
    live,
    object,
  };
  return { status: 200, object: await run(UPDATE_STAGES, write) };
}

const SERVER_OWNED = ["creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "selfLink", "uid"];

function matchNamespace({ context, object }: Write): void {
  setNamespace(metadataOf(object), context.namespace);
}

// Throws if resourceVersion is set, the namespace does not exist or is terminating, or the CRD is terminating.
function checkCreatable({ context, object, isTracked, resourceVersion }: Creation): void {
  const { registry, resource, namespace } = context;
  const { type } = resource;
  if (!isTracked && resourceVersion !== "" && !context.isDryRun) {
    throw plainError("resourceVersion should not be set on objects to be created");
  }
  if (namespace !== undefined) {
    const stored = registry.namespaces.get(namespace);
    if (stored === undefined) throw notFound({ resource: "namespaces", group: "", name: namespace });
    if (isTerminating(stored.object)) throw namespaceTerminating(resourceRefOf(type, nameOf(object)), namespace);
  }
  if (type.custom !== undefined && isCrdTerminating(type.custom.crd)) {
    const detail = "create not allowed while custom resource definition is terminating";
    throw forbidden(resourceRefOf(type, nameOf(object)), detail);
  }
}

function isCrdTerminating(crd: JsonObject): boolean {
  const conditions = arrayAt(objectAt(crd, "status"), "conditions") ?? [];
  return conditions.filter(isObject).some(({ type, status }) => type === "Terminating" && status === "True");
}

function checkPreconditions(write: Replacement): void {
  checkUid(write);
  checkResourceVersion(write);
}

function checkUid({ context, object, live, name, isPut }: Replacement): void {
  const given = stringAt(metadataOf(object), "uid") ?? "";
  const uid = stringAt(metadataOf(live), "uid") ?? "";
  if (!isPut || given === "" || given === uid) return;
  const { type } = context.resource;
  const key = storageKeyOf(type, keyOf({ namespace: context.namespace, name }), context);
  throw storagePreconditionFailed(resourceRefOf(type, name), { key, field: "UID", given, live: uid });
}

function checkResourceVersion({ context, object, live, name }: Replacement): void {
  const { type } = context.resource;
  const given = stringAt(metadataOf(object), "resourceVersion") ?? "";
  if (given === "" || given === "0") {
    if (type.strategy.allowsUnconditionalUpdate) return;
    const error = invalidError("metadata.resourceVersion", 0, "must be specified for an update");
    // The error contains the resource instead of the kind.
    throw invalid({ kind: type.plural, group: type.group, name }, [error]);
  }
  if (!isUint64(given)) {
    const problem = /^\d+$/.test(given) ? "value out of range" : "invalid syntax";
    throw plainError(`strconv.ParseUint: parsing ${quote(given)}: ${problem}`);
  }
  if (given !== metadataOf(live)["resourceVersion"]) throw staleResourceVersion(resourceRefOf(type, name));
}

// As in kube-apiserver, the kind of a custom resource is checked at this stage.
function checkKind({ context, object, subresource }: Write): void {
  const { type } = context.resource;
  const kind = stringAt(object, "kind") ?? "";
  if (subresource === "status" || type.custom === undefined || kind === type.kind) return;
  throw invalid({ kind, group: type.group, name: nameOf(object) }, [
    invalidError("kind", kind, `must be ${type.kind}`),
  ]);
}

function clearServerOwned({ object }: Creation): void {
  for (const field of SERVER_OWNED) delete metadataOf(object)[field];
}

function fillDefaults({ context, object, live, isTracked }: Creation | Replacement): void {
  const { type, rules } = context.resource;
  // An apply has already set defaults, and fields of objects that were read through another version stay without defaults.
  if (live !== undefined && type.custom !== undefined && isTracked) return;
  rules.fillDefaults(object, live);
}

function recordManagers(write: Creation | Replacement): void {
  const { context, object, live, subresource } = write;
  if (!write.isTracked) write.object = trackUpdate(context, { live, object, subresource });
}

function admittedOf(write: Creation | Replacement): AdmittedWrite {
  const { context, operation, subresource, object } = write;
  return operation === "CREATE"
    ? { context, operation, name: nameOf(object), subresource, object, isUpsert: write.isUpsert }
    : { context, operation, name: write.name, subresource, object, oldObject: write.live };
}

function admitMutating(write: Creation | Replacement): Promise<void> | undefined {
  return write.context.admission?.mutate(admittedOf(write))?.then((mutated) => {
    write.object = mutated;
  });
}

function admitValidating(write: Creation | Replacement): Promise<void> | undefined {
  return write.context.admission?.validate(admittedOf(write));
}

const GENERATE_ATTEMPTS = 8;

function prepareForCreate(write: Creation): void {
  const { context, object } = write;
  const { type, rules } = context.resource;
  wipeReset(type, object);
  setServerOwned(object);
  const base = stringAt(metadataOf(object), "generateName") ?? "";
  if (nameOf(object) === "" && base !== "") chooseName(context, object, base);
  if (isCertificateRequest(type)) setRequester(object, context.user);
  setFirstGeneration(type, object);
  const { settlesOnUpdate } = type.strategy;
  write.settles =
    settlesOnUpdate === "all" ||
    (settlesOnUpdate === "without-labels" && objectAt(metadataOf(object), "labels") === undefined);
  context.warnings.push(...(rules.finish(object, undefined, { subresource: "", isDryRun: context.isDryRun }) ?? []));
}

function setServerOwned(object: JsonObject): void {
  const metadata = metadataOf(object);
  delete metadata["resourceVersion"];
  metadata["uid"] = randomUUID();
  metadata["creationTimestamp"] = now();
}

/** True for CertificateSigningRequests, whose spec contains the requester and is immutable. */
function isCertificateRequest({ kind, group }: ServedType): boolean {
  return kind === "CertificateSigningRequest" && group === "certificates.k8s.io";
}

// Overrides the fields in the request.
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

function prepareForUpdate(write: Replacement): void {
  const { context, live, subresource } = write;
  const { type, rules } = context.resource;
  carryOver(write.object, live, write);
  if (isCertificateRequest(type)) write.object["spec"] = live["spec"] as JsonObject;
  const object = restoreReset(type, write.object, { live, subresource });
  const count = () => subresource !== "status" && raiseGeneration(type, object, live);
  if (type.strategy.countsDropped) count();
  rules.finish(object, live, { subresource, isDryRun: context.isDryRun });
  if (!type.strategy.countsDropped) count();
  write.object = object;
}

// Fields that the server owns are kept. A value that contradicts a deletion is left for checkUpdatedMeta to reject.
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

/** Removes fields that a create does not write, in place: the status of a type with a status subresource. */
function wipeReset(type: ServedType, object: JsonObject): void {
  const { resetOnMain, createsWithStatus } = type.strategy;
  if (resetOnMain.includes(".status") && !createsWithStatus) setAtPath(object, ".status", undefined);
}

/** Returns `object` with all fields that the endpoint does not write restored from `live`. */
function restoreReset(
  type: ServedType,
  object: JsonObject,
  from: { live: JsonObject; subresource: string },
): JsonObject {
  const { live, subresource } = from;
  if (subresource === "status") return restoreForStatus(type, object, live);
  if (subresource === "") {
    // spec.finalizers of a Namespace is only written through the finalize subresource.
    const { resetOnMain } = type.strategy;
    restore(object, live, isNamespace(type) ? [...resetOnMain, ".spec"] : resetOnMain);
  }
  const part = restorePart(object, from);
  if (part !== undefined) return part;
  if (subresource === "finalize") restore(object, live, [".status"]);
  return object;
}

function restoreForStatus(type: ServedType, object: JsonObject, live: JsonObject): JsonObject {
  const { resetOnStatus } = type.strategy;
  if (!resetOnStatus.includes(".metadata")) {
    restore(object, live, resetOnStatus);
    return object;
  }
  const { managedFields } = metadataOf(object);
  const { managedFields: _managedFields, ...own } = metadataOf(live);
  const metadata = { ...own, ...(managedFields === undefined ? {} : { managedFields }) };
  const { status: _, ...rest } = live;
  const { status } = object;
  return { ...clone(rest), metadata: clone(metadata), ...(status === undefined ? {} : { status }) };
}

function restore(object: JsonObject, live: JsonObject, paths: readonly string[]): void {
  for (const path of paths) {
    const value = valueAtPath(live, path);
    setAtPath(object, path, value === undefined ? undefined : clone(value));
  }
}

const CONTAINERS = ["containers", "initContainers"];
const RESIZED = ["resources", "resizePolicy"];

function copyMembers(to: JsonObject, from: JsonObject, keys: readonly string[]): void {
  for (const key of keys) {
    const value = from[key];
    if (value === undefined) delete to[key];
    else to[key] = value;
  }
}

/** Copies the fields that a subresource writes from `object` to `next`, a copy of the live object. */
type PartOf = (next: JsonObject, object: JsonObject) => void;

// By subresource.
const PARTS: Record<string, PartOf> = {
  ephemeralcontainers(next, object) {
    const containers = arrayAt(objectAt(object, "spec"), "ephemeralContainers");
    const { ephemeralContainers: _, ...spec } = objectAt(next, "spec") ?? {};
    next["spec"] = { ...spec, ...(containers === undefined ? {} : { ephemeralContainers: containers }) };
  },
  resize(next, object) {
    const [spec, given] = [objectAt(next, "spec") ?? {}, objectAt(object, "spec") ?? {}];
    copyMembers(spec, given, ["resources"]);
    for (const list of CONTAINERS) {
      const containers = objectsAt(object, `spec.${list}`);
      const own = objectsAt(next, `spec.${list}`);
      // Containers with other names are kept, so that validation rejects them.
      if (own.some(({ name }, index) => name !== containers[index]?.["name"])) copyMembers(spec, given, [list]);
      else own.forEach((container, index) => copyMembers(container, containers[index] ?? {}, RESIZED));
    }
  },
  approval(next, object) {
    const { conditions: _, ...status } = objectAt(next, "status") ?? {};
    const conditions = arrayAt(objectAt(object, "status"), "conditions");
    next["status"] = { ...status, ...(conditions === undefined ? {} : { conditions }) };
  },
};

/** Returns `live` with the fields of `object` that a subresource writes; undefined for other subresources. */
function restorePart(
  object: JsonObject,
  { live, subresource }: { live: JsonObject; subresource: string },
): JsonObject | undefined {
  const part = PARTS[subresource];
  if (part === undefined) return undefined;
  // A Pod with a different number of containers is returned unchanged, so that validation rejects it.
  const isOther = CONTAINERS.some(
    (list) => objectsAt(object, `spec.${list}`).length !== objectsAt(live, `spec.${list}`).length,
  );
  if (subresource === "resize" && isOther) return object;
  const next = clone(live);
  const { managedFields, resourceVersion } = metadataOf(object);
  const kept = { ...(managedFields === undefined ? {} : { managedFields }) };
  next["metadata"] = { ...metadataOf(next), ...kept, ...(resourceVersion === undefined ? {} : { resourceVersion }) };
  part(next, object);
  return next;
}

/** Sets the generation of a new object; kinds without a generation keep the value of the client. */
function setFirstGeneration(type: ServedType, object: JsonObject): void {
  const { generation } = type.strategy;
  if (generation !== "never" && generation !== "spec-from-zero") metadataOf(object)["generation"] = 1;
}

/** Increments the generation of an object that replaces `live`, if its strategy counts the change. Not called for /status. */
function raiseGeneration(type: ServedType, object: JsonObject, live: JsonObject): void {
  const isFromZero = type.strategy.generation === "spec-from-zero";
  const generation = metadataOf(live)["generation"] ?? (isFromZero ? 0 : undefined);
  if (generation !== undefined && isRaised(type, object, live))
    metadataOf(object)["generation"] = Number(generation) + 1;
}

function isRaised(type: ServedType, object: JsonObject, live: JsonObject): boolean {
  switch (type.strategy.generation) {
    case "never":
    case "first":
      return false;
    case "spec":
    case "spec-from-zero":
      return !deepEqual(object["spec"], live["spec"]);
    case "spec-as-given":
      return hasGivenEmpty(object["spec"]) || !deepEqual(object["spec"], live["spec"]);
    case "spec-and-annotations":
      return !deepEqual(object["spec"], live["spec"]) || !deepEqual(annotationsOf(object), annotationsOf(live));
    case "outside-metadata-as-given":
      return (
        hasGivenEmpty(outsideMetadata(type, object)) ||
        !deepEqual(outsideMetadata(type, object), outsideMetadata(type, live))
      );
    case "outside-metadata-and-labels":
      return (
        !deepEqual(withoutEmpty(outsideMetadata(type, object)), withoutEmpty(outsideMetadata(type, live))) ||
        !deepEqual(objectAt(metadataOf(object), "labels") ?? {}, objectAt(metadataOf(live), "labels") ?? {})
      );
    case "outside-metadata":
      return !deepEqual(outsideMetadata(type, object), outsideMetadata(type, live));
  }
}

// Fields that are encoded as null when empty may be empty lists here.
function withoutEmpty(object: JsonObject): JsonObject {
  const isEmpty = (value: JsonValue) => value === null || (Array.isArray(value) && value.length === 0);
  return Object.fromEntries(Object.entries(object).filter(([, value]) => !isEmpty(value)));
}

function annotationsOf(object: JsonObject): JsonObject {
  return objectAt(metadataOf(object), "annotations") ?? {};
}

function outsideMetadata(type: ServedType, object: JsonObject): JsonObject {
  const rest = { ...object };
  for (const key of ["apiVersion", "kind", "metadata"]) delete rest[key];
  if (type.subresources.some(({ name }) => name === "status")) delete rest["status"];
  return rest;
}

function dropDuplicateOwnerReferences(write: Creation | Replacement): void {
  const { context, object } = write;
  const isPatch = write.operation === "UPDATE" && !write.isPut;
  const warning = dropDuplicateOwners(metadataOf(object), { isPatch });
  if (warning !== undefined) context.warnings.push(warning);
}

function validateNew({ context, object }: Creation): void {
  const { type, rules } = context.resource;
  const ofMetadata = checkObjectMeta(type, object);
  const ofKind = rules.validate(object, undefined, ofMetadata);
  const omitsMetadataErrors = type.strategy.checksMetadata.length === 0 && ofKind.length > 0;
  const errors = omitsMetadataErrors ? ofKind : [...ofMetadata, ...ofKind];
  if (errors.length > 0) throw invalid(kindRefOf(type, nameOf(object)), errors);
}

function validateUpdate(write: Replacement): void {
  const { context, object, live, subresource } = write;
  const { type, rules } = context.resource;
  const ofPart = subresource === "" ? undefined : rules.validatePart?.(object, live, subresource);
  const ofMetadata = checkUpdatedMeta(type, write);
  const ofKind =
    subresource === "status"
      ? rules.validateStatus(object, live)
      : (ofPart ?? rules.validate(object, live, ofMetadata));
  const errors = [...ofMetadata, ...ofKind];
  if (errors.length === 0) return;
  context.warnings.push(...(rules.forgiven?.(object) ?? []));
  // A webhook may have changed the name, and the message has that one.
  throw invalid(kindRefOf(type, stringAt(metadataOf(object), "name") ?? ""), errors);
}

function warn({ context, object, live, subresource }: Creation | Replacement): void {
  context.warnings.push(...context.resource.rules.warnings(object, live, subresource));
}

function canonicalize(write: Write): void {
  write.object = normalForm(write.context.resource.type, write.object);
}

function findExisting(write: Creation): void {
  write.existing = atKey(write);
}

function checkStillAbsent(write: Creation): void {
  const { context, object, existing } = write;
  if (existing !== undefined) {
    const ref = resourceRefOf(context.resource.type, nameOf(object));
    throw alreadyExists(ref, { isTerminating: isTerminating(existing.object) });
  }
  if (atKey(write) !== undefined) throw new OutdatedWrite();
}

function checkStillLatest({ context, stored }: Replacement): void {
  if (context.resource.store.get(stored.key) !== stored) throw new OutdatedWrite();
}

function atKey({ context, object }: Creation): StoredObject | undefined {
  return context.resource.store.get(keyOf({ namespace: context.namespace, name: nameOf(object) }));
}

function storeNew(write: Creation): Promise<StoredObject> | StoredObject {
  const { context, object, settles } = write;
  const { resource, namespace, isDryRun } = context;
  const key = keyOf({ namespace, name: nameOf(object) });
  resource.rules.reread?.(object);
  if (resource.asksWebhook) return storeNewConverted(context, key, object);
  const sources = sourcesOf(context);
  // In a dry run, the resourceVersion is that of the request, if any. Its object is converted to the stored form and back as well.
  const revision = Number(write.resourceVersion) || 0;
  const form = () => (revision === 0 ? object : withResourceVersion(object, revision));
  if (isDryRun) return resource.read(new StoredObject(key, resource.storedForm(form()), 0, sources));
  const stored = resource.store.put(key, resource.storedForm(object), sources);
  if (settles) unsettled.add(stored);
  return resource.read(stored);
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

// New objects whose remaining defaults are set by the first update, even if it changes nothing else.
const unsettled = new WeakSet<StoredObject>();

function storeUpdate(write: Replacement): Promise<StoredObject> | StoredObject {
  const { context, object, stored, live } = write;
  const { resource } = context;
  if (isReadyToGo(resource, object, live)) return removeObject(context, { stored, last: object });
  const last = restoreTimes(live, object);
  resource.rules.reread?.(last);
  metadataOf(last)["resourceVersion"] = metadataOf(live)["resourceVersion"] as string;
  if (resource.asksWebhook) return storeNextConverted(context, { stored, next: last });
  return storeNext(context, { stored, storedForm: resource.storedForm(last) });
}

function isReadyToGo({ type }: ServedResource, object: JsonObject, live: JsonObject): boolean {
  if (!isTerminating(live) || holdersOf(type, object).length > 0 || holdersOf(type, live).length === 0) return false;
  return (metadataOf(object)["deletionGracePeriodSeconds"] ?? 0) === 0;
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
  if (!deepEqual(storedForm, stored.object) || unsettled.has(stored)) return false;
  // Two different 64-bit integers may be equal as JavaScript numbers.
  if (sources.length === 0) return true;
  const { integers } = stored.as(storedForm, sources);
  return integers === undefined ? stored.integers === undefined : integers.equals(stored.integers);
}

function nameOf(object: JsonObject): string {
  return stringAt(metadataOf(object), "name") ?? "";
}
