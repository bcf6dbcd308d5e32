// Fields that the controller hands over to another one, such as the replicas of a Deployment to an autoscaler. An apply that does not state a field
// that its manager owns removes it, so that a default takes its place: the field leaves our managed fields first, and keeps its value.
import { isJsonObject, type JsonObject, type JsonValue } from "@gen-operator/schema";
import { describeObject } from "../base/kubernetes-object.js";
import type { DecodedResource } from "../base/decoded-resource.js";
import { fieldsAt, type FieldPath, type FieldsV1 } from "../match/field-set.js";
import { isAppliedBy, readWhole, requireVersion, withoutFields, writeEntries } from "./managed-entries.js";
import type { WriteTarget } from "./send/apply-matcher.js";
import { onLatest } from "./send/on-latest.js";
import type { Change, Stated } from "./send/plan.js";
import type { ManagedEntry } from "./send/rivals.js";
import type { Sender } from "./send/send.js";

/** Paths of fields such as `spec.replicas`. */
export type ReleasedPaths = readonly string[];

/** Throws if an object states a field that is released. */
export function checkReleased({ definition }: WriteTarget, desired: Stated, released: ReleasedPaths = []): void {
  const stated = released.find((path) => valueAt(desired, path) !== undefined);
  if (stated === undefined) return;
  throw new Error(
    `${describeObject(definition, desired.metadata)} cannot be written: ${stated} is released to another controller, and desired() states it; ` +
      `remove it from what desired() returns, or from released`,
  );
}

/** Tells whether a field is released, or is in one that is. */
export function isReleased(fields: FieldPath, released: ReleasedPaths = []): boolean {
  return released.some((path) => fieldsOf(path).every((element, index) => fields[index] === element));
}

/** Tells whether our manager owns a released field. */
export function ownsReleased(sender: Sender, live: DecodedResource, released: ReleasedPaths): boolean {
  const applied = sender.matcher.ownedFields(live, "object");
  if (applied === undefined) return false;
  const fields = JSON.parse(applied.fieldsV1) as FieldsV1;
  return released.some((path) => fieldsAt(fields, fieldsOf(path)) !== undefined);
}

/** Gives up the released fields in the managed fields alone; returns the object afterwards, undefined if there is none any more. */
export async function releaseFields(sender: Sender, write: Change): Promise<DecodedResource | undefined> {
  const { before, target, plan, released } = write;
  const release = async (live: DecodedResource) => {
    const state = await readWhole(sender, { ...write, before: live });
    if (state === undefined) return undefined;
    requireVersion(write, state);
    const entries = withoutReleased(state.entries, sender.fieldManager, released);
    return writeEntries(sender, write, { ...state, entries });
  };
  return plan.lock === undefined ? onLatest(before, release, { sender, target }) : release(before);
}

/** Returns the entries of an object, of which ours has no released field. */
export function withoutReleased(
  entries: readonly ManagedEntry[],
  fieldManager: string,
  released: ReleasedPaths = [],
): readonly ManagedEntry[] {
  if (released.length === 0) return entries;
  return entries.flatMap((entry) =>
    isAppliedBy(entry, fieldManager) ? withoutFields(entry, released.map(fieldsOf)) : [entry],
  );
}

/** Returns an object with the released fields of the live one. */
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

function valueAt(object: object, path: string): JsonValue | undefined {
  let value: unknown = object;
  for (const name of path.split("."))
    value = (value as { readonly [name: string]: unknown } | null | undefined)?.[name];
  return value as JsonValue | undefined;
}

function fieldsOf(path: string): FieldPath {
  return path.split(".").map((name) => `f:${name}`);
}
