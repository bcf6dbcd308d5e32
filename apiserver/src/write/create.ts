import { randomUUID } from "node:crypto";
import { generateName } from "@gen-operator/schema";
import type { ServedType } from "../builtin/served-type.js";
import { alreadyExists, generatedNamesTaken, invalid, plainError } from "../errors/status-error.js";
import type { UserInfo } from "../identity/user.js";
import { objectAt, stringAt, type JsonObject } from "../json.js";
import { setFirstGeneration } from "../object/generation.js";
import { keyOf, kindRefOf, resourceRefOf } from "../object/object-key.js";
import { checkObjectMeta, dropDuplicateOwners, isTerminating, metadataOf, now } from "../object/object-meta.js";
import { wipeReset } from "../object/reset-paths.js";
import { settled } from "../pending-conversion.js";
import { normalForm } from "../registry/served-resource.js";
import { StoredObject, withResourceVersion } from "../storage/stored-object.js";
import { OutdatedWrite } from "./attempts.js";
import { checkCreationAllowed, settleNamespace } from "./check-place.js";
import { checkCustomKind } from "./decode-object.js";
import { trackUpdate } from "./managed-fields.js";
import type { WriteContext, WriteResult } from "./write-context.js";

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
  if (resource.asksWebhook) return { status: 201, object: await storeConverted(context, key, next) };
  return {
    status: 201,
    object: store(context, { key, object: next, settles, revision: Number(resourceVersion) || 0 }),
  };
}

async function storeConverted(
  { resource, isDryRun }: WriteContext,
  key: string,
  object: JsonObject,
): Promise<StoredObject> {
  const storedForm = await settled(() => resource.storedForm(object));
  if (resource.store.get(key) !== undefined) throw new OutdatedWrite();
  const stored = isDryRun ? new StoredObject(key, storedForm, 0) : resource.store.put(key, storedForm);
  return settled(() => resource.read(stored));
}

function store(
  { resource, isDryRun }: WriteContext,
  { key, object, settles, revision }: { key: string; object: JsonObject; settles: boolean; revision: number },
): StoredObject {
  // A dry run has no revision to show but a given one. What it answers was in the form of the store, too.
  const form = () => (revision === 0 ? object : withResourceVersion(object, revision));
  if (isDryRun) return resource.read(new StoredObject(key, resource.storedForm(form()), 0));
  const stored = resource.store.put(key, resource.storedForm(object));
  if (settles) unsettled.add(stored);
  return resource.read(stored);
}

const unsettled = new WeakSet<StoredObject>();

/** True for a new object that gets the last of its defaults by the first update, even by one that changes nothing. */
export function isUnsettled(stored: StoredObject): boolean {
  return unsettled.has(stored);
}

function setServerOwned(object: JsonObject): void {
  const metadata = metadataOf(object);
  delete metadata["resourceVersion"];
  metadata["uid"] = randomUUID();
  metadata["creationTimestamp"] = now();
}

/** True for the type whose objects say who made them, and whose spec never changes. */
export function isCertificateRequest({ kind, group }: ServedType): boolean {
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
