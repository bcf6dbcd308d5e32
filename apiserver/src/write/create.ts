import { randomUUID } from "node:crypto";
import { alreadyExists, generatedNamesTaken, invalid, plainError } from "../errors/status-error.js";
import { stringAt, type JsonObject } from "../json.js";
import { setFirstGeneration } from "../object/generation.js";
import { generateName } from "../object/names.js";
import { keyOf, kindRefOf, resourceRefOf } from "../object/object-key.js";
import { checkObjectMeta, dropDuplicateOwners, isTerminating, metadataOf, now } from "../object/object-meta.js";
import { wipeReset } from "../object/reset-paths.js";
import { normalForm } from "../registry/served-resource.js";
import { StoredObject } from "../storage/stored-object.js";
import { OutdatedWrite } from "./attempts.js";
import { checkCreationAllowed, settleNamespace } from "./check-creation.js";
import { trackUpdate } from "./managed-fields.js";
import type { WriteContext, WriteResult } from "./write-context.js";

const GENERATE_ATTEMPTS = 8;
const SERVER_OWNED = ["creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "selfLink", "uid"];

/**
 * Creates a decoded object.
 *
 * `isTracked` says that the managedFields are final already, as those of an apply are.
 */
export async function createObject(
  context: WriteContext,
  body: JsonObject,
  { isTracked = false } = {},
): Promise<WriteResult> {
  const { registry, resource, namespace } = context;
  const { type, rules } = resource;
  settleNamespace(metadataOf(body), namespace);
  if (!isTracked && (stringAt(metadataOf(body), "resourceVersion") ?? "") !== "") {
    throw plainError("resourceVersion should not be set on objects to be created");
  }
  checkCreationAllowed(registry, resource, { name: stringAt(metadataOf(body), "name") ?? "", namespace });
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
  wipeReset(type, object);
  setServerOwned(object);
  setFirstGeneration(type, object);
  rules.finish(object);
  const warning = dropDuplicateOwners(metadataOf(object));
  if (warning !== undefined) context.warnings.push(warning);
  const key = chooseKey(context, object);
  const name = stringAt(metadataOf(object), "name") ?? "";
  const errors = [...checkObjectMeta(type, object), ...rules.validate(object)];
  if (errors.length > 0) throw invalid(kindRefOf(type, name), errors);
  context.warnings.push(...rules.warnings(object));
  const next = normalForm(type, object);
  const validation = context.admission?.validate({ context, operation: "CREATE", name, subresource: "", object: next });
  if (validation !== undefined) {
    await validation;
    if (resource.store.get(key) !== undefined) throw new OutdatedWrite();
  }
  return { status: 201, object: store(context, key, next) };
}

function store(context: WriteContext, key: string, object: JsonObject): StoredObject {
  const { resource, isDryRun } = context;
  // A dry run has no revision to show.
  if (isDryRun) return new StoredObject(key, object, 0);
  return resource.read(resource.store.put(key, resource.storedForm(object)));
}

function setServerOwned(object: JsonObject): void {
  const metadata = metadataOf(object);
  delete metadata["resourceVersion"];
  metadata["uid"] = randomUUID();
  metadata["creationTimestamp"] = now();
}

function chooseKey({ resource, namespace }: WriteContext, object: JsonObject): string {
  const metadata = metadataOf(object);
  const given = stringAt(metadata, "name") ?? "";
  const base = stringAt(metadata, "generateName") ?? "";
  if (given !== "" || base === "") {
    const key = keyOf({ namespace, name: given });
    const existing = given === "" ? undefined : resource.store.get(key);
    if (existing === undefined) return key;
    throw alreadyExists(resourceRefOf(resource.type, given), { isTerminating: isTerminating(existing.object) });
  }
  for (let attempt = 0; attempt < GENERATE_ATTEMPTS; attempt++) {
    metadata["name"] = generateName(base);
    const key = keyOf({ namespace, name: metadata["name"] });
    if (resource.store.get(key) === undefined) return key;
  }
  throw generatedNamesTaken(resourceRefOf(resource.type, metadata["name"] as string));
}
