// Moves fields between the entries of `metadata.managedFields`. Server-side apply removes only fields that its manager owned before and no longer
// applies, so we first take ownership of a field that an apply has to remove. Editing the entries changes no other field of the object.
import { type JsonObject, type JsonValue, isJsonObject } from "@gen-operator/schema";
import { ApiError } from "../base/errors.js";
import type { DecodedResource, KubernetesObject } from "../base/kubernetes-object.js";
import { objectPath } from "../client/api-client.js";
import { type FieldPath, type ManagedEntry, fieldsAt, withField, withoutField } from "./field-set.js";
import type { FieldsV1 } from "./owned-fields.js";
import { retryOnConflict } from "./retry-on-conflict.js";
import type { Sender } from "./sender.js";
import { type ReleasedPaths, type Write, jsonPatchOf, locked, uidTest, valueAt } from "./write.js";

/** The manager that the API server assigns to all fields of an object without managed fields when it is first applied. */
export const BEFORE_FIRST_APPLY = "before-first-apply";

/** A stored object with all of its managed fields, which the caches do not keep. */
export interface WholeState {
  readonly object: KubernetesObject;
  readonly entries: readonly ManagedEntry[];
}

/** Reads an object with its managed fields. Returns undefined if it no longer exists or another object has its name. */
export async function readWhole(
  sender: Sender,
  { target, before, cause }: Write<DecodedResource>,
): Promise<WholeState | undefined> {
  const { metadata } = before.object;
  const text = await sender.client.readPath(objectPath(target.definition, metadata), { signal: cause?.signal });
  if (text === undefined) return undefined;
  const object = JSON.parse(text) as KubernetesObject & { metadata: { managedFields?: ManagedEntry[] } };
  if (object.metadata.uid !== metadata.uid) return undefined;
  return { object, entries: object.metadata.managedFields ?? [] };
}

/** Throws a conflict error if the object no longer has the resourceVersion that the write is locked to. */
export function requireVersion({ lock }: Write, { object }: WholeState): void {
  if (lock === undefined || lock === object.metadata.resourceVersion) return;
  throw new ApiError(409, { reason: "Conflict", message: "the object has been modified" });
}

/**
 * Returns the write based on the state after an edit of the managed fields. The edit has not changed the fields from which the write was computed.
 */
export function afterEdit(write: Write<DecodedResource>, before: DecodedResource): Write<DecodedResource> {
  if (write.lock === undefined) return { ...write, before };
  return locked({ ...write, before, version: before.object.metadata.resourceVersion });
}

/** Writes the managed fields of an object. Fails with a conflict (409) if the object has changed since it was read. */
export async function writeEntries(
  sender: Sender,
  { target, cause }: Write,
  { object, entries }: WholeState,
): Promise<DecodedResource> {
  const { uid } = object.metadata;
  // The API server would reset the managed fields if the list were empty.
  const value = entries as unknown as JsonValue;
  const patch = [uidTest(uid), { op: "add" as const, path: "/metadata/managedFields", value }];
  const write = locked(jsonPatchOf(target, object, patch));
  const sent = await sender.send({ ...write, before: { object }, cause, isUrgent: true });
  return sent.kind === "postponed" ? { object } : sent.entry;
}

/** Returns whether an entry is from applies of a field manager to the object itself, not to subresources. */
export function isAppliedBy({ manager, operation, subresource }: ManagedEntry, fieldManager: string): boolean {
  return manager === fieldManager && operation === "Apply" && subresource === undefined;
}

/** Returns the entries with `fields` owned only by the given field manager. */
export function withFieldsOf(
  entries: readonly ManagedEntry[],
  { fieldManager, apiVersion, fields }: { fieldManager: string; apiVersion: string; fields: readonly FieldPath[] },
): readonly ManagedEntry[] {
  const isOwn = (entry: ManagedEntry) => isAppliedBy(entry, fieldManager);
  const empty = { manager: fieldManager, operation: "Apply", apiVersion, fieldsType: "FieldsV1", fieldsV1: {} };
  const all: readonly ManagedEntry[] = entries.some(isOwn) ? entries : [...entries, empty];
  return all.flatMap((entry) => {
    const { fieldsV1 = {} } = entry;
    if (isOwn(entry)) return [{ ...entry, fieldsV1: fields.reduce(withField, fieldsV1) }];
    return withoutFields(entry, fields);
  });
}

/** Returns an entry without `fields`, or no entry if no field remains. */
export function withoutFields(
  entry: ManagedEntry,
  fields: readonly FieldPath[],
  remove = withoutField,
): readonly ManagedEntry[] {
  const { fieldsV1 = {} } = entry;
  const left = fields.reduce<typeof fieldsV1 | undefined>((set, path) => set && remove(set, path), fieldsV1);
  if (left === fieldsV1) return [entry];
  return left === undefined ? [] : [{ ...entry, fieldsV1: left }];
}

// Released fields belong to another controller, such as the replicas of a Deployment to an autoscaler. An apply without a field that its manager owns
// removes the field, and the API server sets the default. To keep its value, we first remove the field from our managed fields.

/** Returns whether a field is released or is below a released field. */
export function isReleased(fields: FieldPath, released: ReleasedPaths = []): boolean {
  return released.some((path) => fieldsOfPath(path).every((element, index) => fields[index] === element));
}

/** Returns whether our manager owns a released field. */
export function ownsReleased(sender: Sender, live: DecodedResource, released: ReleasedPaths): boolean {
  const applied = sender.matcher.ownedFields(live, "object");
  if (applied === undefined) return false;
  const fields = JSON.parse(applied.fieldsV1) as FieldsV1;
  return released.some((path) => fieldsAt(fields, fieldsOfPath(path)) !== undefined);
}

/** Removes the released fields from our managed fields. Returns the resulting object, or undefined if it no longer exists. */
export async function releaseFields(
  sender: Sender,
  write: Write<DecodedResource>,
): Promise<DecodedResource | undefined> {
  const { before, target, lock, released } = write;
  const release = async (live: DecodedResource) => {
    const state = await readWhole(sender, { ...write, before: live });
    if (state === undefined) return undefined;
    requireVersion(write, state);
    const entries = withoutReleased(state.entries, sender.fieldManager, released);
    return writeEntries(sender, write, { ...state, entries });
  };
  return lock === undefined ? retryOnConflict(before, release, { sender, target }) : release(before);
}

/** Returns the entries, with the released fields removed from ours. */
export function withoutReleased(
  entries: readonly ManagedEntry[],
  fieldManager: string,
  released: ReleasedPaths = [],
): readonly ManagedEntry[] {
  if (released.length === 0) return entries;
  return entries.flatMap((entry) =>
    isAppliedBy(entry, fieldManager) ? withoutFields(entry, released.map(fieldsOfPath)) : [entry],
  );
}

/** Returns an object with the values of the live object in released fields. */
export function withReleased<Body extends object>(body: Body, live: object, released: ReleasedPaths = []): Body {
  return released.reduce((object, path) => {
    const value = valueAt(live, path);
    return value === undefined ? object : (withValue(object as JsonObject, path.split("."), value) as Body);
  }, body);
}

function withValue(object: JsonObject, [name, ...rest]: readonly string[], value: JsonValue): JsonObject {
  const child = object[name!];
  return { ...object, [name!]: rest.length === 0 ? value : withValue(isJsonObject(child) ? child : {}, rest, value) };
}

function fieldsOfPath(path: string): FieldPath {
  return path.split(".").map((name) => `f:${name}`);
}
