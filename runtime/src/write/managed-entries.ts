// Moves fields between the entries of `metadata.managedFields`. Server-side apply removes what its manager owned before and states no more, and
// nothing else, so whatever an apply has to remove becomes ours first. An edit of the entries changes nothing else of the object.
import { ApiError } from "../base/errors.js";
import type { JsonValue, KubernetesObject } from "../base/kubernetes-object.js";
import type { DecodedResource } from "../base/decoded-resource.js";
import { objectPath } from "../client/resource-path.js";
import { withField, withoutField, type FieldPath } from "../match/field-set.js";
import { locked, planJsonPatch, uidTest, type Change } from "./send/plan.js";
import type { ManagedEntry } from "./send/rivals.js";
import type { Sender } from "./send/send.js";

/** To whom the API server gives all fields of an object without managed fields when it is first applied. */
export const BEFORE_FIRST_APPLY = "before-first-apply";

/** An object as the API server has it, with all of its managed fields, which no cache keeps. */
export interface WholeState {
  readonly object: KubernetesObject;
  readonly entries: readonly ManagedEntry[];
}

type Write = Pick<Change, "target" | "cause" | "before">;

/** Reads an object with its managed fields; undefined if it no longer exists, or another one has its name. */
export async function readWhole(sender: Sender, { target, before, cause }: Write): Promise<WholeState | undefined> {
  const { metadata } = before.object;
  const text = await sender.client.readPath(objectPath(target.definition, metadata), { signal: cause?.signal });
  if (text === undefined) return undefined;
  const object = JSON.parse(text) as KubernetesObject & { metadata: { managedFields?: ManagedEntry[] } };
  if (object.metadata.uid !== metadata.uid) return undefined;
  return { object, entries: object.metadata.managedFields ?? [] };
}

/** Fails with a conflict if an object is no longer in the version that an apply states. */
export function requireVersion({ plan }: Pick<Change, "plan">, { object }: WholeState): void {
  if (plan.lock === undefined || plan.lock === object.metadata.resourceVersion) return;
  throw new ApiError(409, { reason: "Conflict", message: "the object has been modified" });
}

/** Returns an apply of the object that an edit of its managed fields alone has made: what it was computed from is in it. */
export function afterEdit(write: Change, before: DecodedResource): Change {
  const { plan } = write;
  const version = before.object.metadata.resourceVersion;
  return { ...write, before, plan: plan.lock === undefined ? plan : locked({ ...plan, version }) };
}

/** Writes the entries of an object; fails with a conflict (409) if the object is no longer in the state that was read. */
export async function writeEntries(
  sender: Sender,
  { target, cause }: Write,
  { object, entries }: WholeState,
): Promise<DecodedResource> {
  const { uid } = object.metadata;
  // An empty list would reset the managed fields.
  const value = entries as unknown as JsonValue;
  const patch = [uidTest(uid), { op: "add" as const, path: "/metadata/managedFields", value }];
  const plan = locked(planJsonPatch(object, patch, false));
  const sent = await sender.send({ target, plan, before: { object }, cause, isUrgent: true });
  return sent.kind === "postponed" ? { object } : sent.entry;
}

/** Tells whether an entry holds what a field manager applies to the object itself. */
export function isAppliedBy({ manager, operation, subresource }: ManagedEntry, fieldManager: string): boolean {
  return manager === fieldManager && operation === "Apply" && subresource === undefined;
}

/** Returns the entries with fields as those that a field manager applied, and as those of no other one. */
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

/** Returns an entry without fields; none if nothing is left of it. */
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
