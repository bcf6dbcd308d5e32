// Server-side apply cannot remove a field that its manager does not own. So the API server keeps rejecting an object that switches from one member of
// a union to another: a strategy, the source of a volume, the handler of a probe, "exactly one of" in a validation rule, or a port with the same
// name. Dry runs of the whole change find the fields that are in the way. We take ownership of them in the managed fields, so that a single apply
// removes them and sets the desired object, without an intermediate state that clients can observe.
import { type JsonObject, type JsonValue, isJsonObject } from "@gen-operator/schema";
import { type ApiError, type StatusCause, isAboutImmutable, isApiError } from "../base/errors.js";
import { type DecodedResource, describeObject } from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import {
  type FieldPath,
  type ManagedEntry,
  type Path,
  type Place,
  childrenOf,
  fieldPathText,
  fieldsAt,
  isProtected,
  placesOn,
  rootPlace,
  unstatedBelow,
} from "./field-set.js";
import {
  type WholeState,
  afterEdit,
  isAppliedBy,
  isReleased,
  readWhole,
  requireVersion,
  withFieldsOf,
  writeEntries,
} from "./managed-fields.js";
import { pathText, plainOf } from "./match.js";
import { mergeApplied } from "./merge.js";
import { NOTHING, parseOwnedFields, schemaOf } from "./owned-fields.js";
import type { Sender } from "./sender.js";
import { type Write, type WriteResult, jsonPatchOf, patchBetween } from "./write.js";

/** A field of the live object that the desired object does not contain. */
interface ForeignMember {
  readonly path: Path;
  readonly fields: FieldPath;
  readonly managers: readonly string[];
}

/** The maximum number of dry runs that do not reduce the number of causes. */
const MOST_TRIES = 8;
const MOST_CONFLICTS = 3;
const NAMED_MEMBERS = 5;

/** Retries an apply that the API server rejected, with the fields removed that are in its way. Throws the original error if there are none. */
export async function applyOverForeign(
  error: unknown,
  write: Write<DecodedResource>,
  sender: Sender,
): Promise<WriteResult> {
  if (!isApiError(error, 422) || !error.causes.some(isAboutMembers)) throw error;
  const { target, ref, cause } = write;
  for (let attempt = 1; ; attempt++) {
    const state = await readWhole(sender, write);
    if (state === undefined) throw error;
    requireVersion(write, state);
    const members = await findInTheWay(error, { write, state, sender });
    const { fieldManager } = sender;
    const { apiVersion } = target.definition;
    const fields = members.map((member) => member.fields);
    const entries = withFieldsOf(state.entries, { fieldManager, apiVersion, fields });
    let claimed: DecodedResource;
    try {
      claimed = await writeEntries(sender, write, { ...state, entries });
    } catch (conflict) {
      if (isApiError(conflict, 409) && attempt < MOST_CONFLICTS) continue;
      throw conflict;
    }
    const sent = await sender.send(afterEdit(write, claimed)).catch(async (failure: unknown) => {
      // If the apply fails, return the fields to their managers.
      if (isApiError(failure)) await giveBack(sender, write, { claimed, entries: state.entries });
      throw failure;
    });
    const object = describeObject(target.definition, ref);
    const text = `removed ${members.map(describeMember).join(", ")} from ${object}, because the API server rejected the write with them: ${reasonOf(error)}`;
    if (sent.kind !== "postponed") cause?.logger?.warn({ dependent: cause.dependent }, text);
    return sent;
  }
}

async function giveBack(
  sender: Sender,
  write: Write<DecodedResource>,
  { claimed, entries }: { readonly claimed: DecodedResource; readonly entries: readonly ManagedEntry[] },
): Promise<void> {
  // The error of the apply is more helpful than that of the return. The next successful apply removes fields that stayed ours.
  await writeEntries(sender, write, { object: claimed.object, entries }).catch(() => {});
}

interface Search {
  readonly write: Write<DecodedResource>;
  readonly state: WholeState;
  readonly sender: Sender;
}

/** Returns a minimal set of fields without which a dry run of the change succeeds. */
async function findInTheWay(error: ApiError, search: Search): Promise<readonly ForeignMember[]> {
  let root = mergedOf(search);
  let chosen: readonly ForeignMember[] = [];
  let { causes } = error;
  const first = candidatesFor(causes, root, search);
  let candidates = first;
  let tries = 0;
  for (let isNearer = true; isNearer;) {
    isNearer = false;
    for (const members of groupsOf(candidates)) {
      if (++tries > MOST_TRIES) break;
      const value = without(root.value, members);
      const left = await dryRun(error, value, search);
      if (left?.length === 0) return [...chosen, ...members];
      if (left === undefined || left.length >= causes.length) continue;
      // These fields explain some of the causes. Keep them, and search for the others.
      chosen = [...chosen, ...members];
      root = { ...root, value };
      [causes, isNearer, tries] = [left, true, 0];
      candidates = candidatesFor(causes, root, search);
      break;
    }
  }
  const named = first.filter(({ managers }) => managers.length > 0).slice(0, NAMED_MEMBERS);
  const list = named.map(({ fields, managers }) => `${fieldPathText(fields)} (${quoted(managers)})`).join(", ");
  if (list !== "") error.message += `; it is also rejected without the fields of other field managers: ${list}`;
  throw error;
}

/** Sends the change as a dry run. Returns the causes of a rejection, or none if the API server accepts it. */
async function dryRun(
  error: ApiError,
  changed: object,
  { write: { target, cause }, state, sender }: Search,
): Promise<readonly StatusCause[] | undefined> {
  const operations = patchBetween(state.object.metadata.uid, state.object, changed);
  try {
    await sender.dryRun({ ...jsonPatchOf(target, state.object, operations), cause });
    return [];
  } catch (failure) {
    if (isApiError(failure, 422)) return failure.causes.length === 0 ? undefined : failure.causes;
    error.message += `; cannot check whether fields of other field managers cause this: ${messageOf(failure)}`;
    throw error;
  }
}

// Single fields first, then pairs.
function* groupsOf(members: readonly ForeignMember[]): Generator<readonly ForeignMember[]> {
  for (const member of members) yield [member];
  for (const [index, member] of members.entries()) for (const other of members.slice(index + 1)) yield [member, other];
}

// Returns the object that would result from the apply.
function mergedOf({ write: { target, desired: stated }, state: { object, entries }, sender }: Search): Root {
  const schema = schemaOf(target.definition);
  const isOwn = (entry: ManagedEntry) => isAppliedBy(entry, sender.fieldManager);
  const nodeOf = ({ fieldsV1 = {} }: ManagedEntry) => parseOwnedFields(JSON.stringify(fieldsV1));
  const mine = entries.filter(isOwn).map(nodeOf)[0] ?? NOTHING;
  const others = entries.filter((entry) => !isOwn(entry)).map(nodeOf);
  const desired = plainOf(stated) as JsonObject;
  const live = object as unknown as JsonObject;
  const merged = mergeApplied(live, desired, { schema, mine, others });
  // The apply changes neither the identity of the object nor the fields that the API server manages.
  for (const name of ["apiVersion", "kind", "status"]) if (live[name] !== undefined) merged[name] = live[name];
  const { labels, annotations, finalizers, ownerReferences } = merged["metadata"] as JsonObject;
  const { metadata } = live as { metadata: JsonObject };
  const value = plainOf({ ...merged, metadata: { ...metadata, labels, annotations, finalizers, ownerReferences } });
  return rootPlace(value!, desired, schema) as Root;
}

type Root = Place & { readonly value: JsonObject };

function candidatesFor(causes: readonly StatusCause[], root: Root, { write, state, sender }: Search): ForeignMember[] {
  const others = state.entries.filter((entry) => !isAppliedBy(entry, sender.fieldManager));
  const found = new Map<string, ForeignMember & { readonly rank: number }>();
  const add = (place: Place, rank: number) => {
    const { desired, path, fields } = place;
    const key = pathText(path);
    if (desired !== undefined || found.has(key) || isProtected(place) || isReleased(fields, write.released)) return;
    const owners = others.filter(({ fieldsV1 = {} }) => fieldsAt(fieldsV1, fields) !== undefined);
    // A field that is written through a subresource, such as scale, stays with its manager.
    if (owners.some(({ subresource }) => subresource !== undefined)) return;
    const managers = [...new Set(owners.flatMap(({ manager }) => manager ?? []))];
    // A value set by a client is more likely in the way than a default.
    found.set(key, { path, fields, managers, rank: managers.length > 0 ? rank : rank + 0.5 });
  };
  for (const each of causes.filter(isAboutMembers)) {
    const places = placesOn(stepsOf(each), root);
    const place = places.at(-1)!;
    const own = places.find(({ desired }) => desired === undefined);
    if (own !== undefined) add(own, 0);
    if (each.reason === "FieldValueDuplicate") for (const item of duplicatesOf(places)) add(item, 0);
    if (own === undefined) for (const inner of unstatedBelow(place)) add(inner, 1);
    const parent = places[(own === undefined ? places.length : places.indexOf(own) + 1) - 2];
    if (parent !== undefined) for (const sibling of childrenOf(parent)) add(sibling, 1);
  }
  return [...found.values()].sort((a, b) => a.rank - b.rank);
}

// Removing the field of another manager does not resolve the error of an immutable field.
function isAboutMembers(cause: StatusCause): boolean {
  return cause.field !== undefined && !isAboutImmutable(cause);
}

// A validation rule at the root has no field, and the error of a schema contains the path in its message.
function stepsOf({ field = "", message = "" }: StatusCause): Path {
  const text = field === "<nil>" ? (/"([^" ]+)" must validate/.exec(message)?.[1] ?? "") : field;
  return [...text.matchAll(/([^.[\]]+)|\[([^\]]*)\]/g)].map(([, name, key = ""]) => {
    if (name !== undefined) return name;
    return /^\d+$/.test(key) ? Number(key) : key.replace(/^"(.*)"$/, "$1");
  });
}

// Returns items that have the same value as another item in a field that must be unique within the list.
function duplicatesOf(places: readonly Place[]): Place[] {
  const at = places.findLastIndex(({ value }) => Array.isArray(value));
  const [list, , unique] = places.slice(at);
  if (at < 0 || list === undefined || unique === undefined) return [];
  return childrenOf(list).filter(({ value }) => isJsonObject(value) && value[unique.name] === unique.value);
}

function without(value: JsonObject, members: readonly ForeignMember[]): JsonObject {
  const result = structuredClone(value);
  // In reverse order, because a removal shifts the indexes after it.
  const paths = members.map(({ path }) => path).sort((a, b) => compareIndexes(b, a));
  for (const path of paths) {
    const parent = path.slice(0, -1).reduce<JsonValue>((node, step) => (node as JsonObject)[step]!, result);
    const last = path.at(-1)!;
    if (Array.isArray(parent)) parent.splice(last as number, 1);
    else delete (parent as JsonObject)[last];
  }
  return result;
}

function compareIndexes(a: Path, b: Path): number {
  const at = a.findIndex((step, index) => step !== b[index]);
  const [left, right] = [a[at], b[at]];
  return typeof left === "number" && typeof right === "number" ? left - right : 0;
}

function describeMember({ fields, managers }: ForeignMember): string {
  return `${fieldPathText(fields)} (${managers.length === 0 ? "set by the API server" : `owned by ${quoted(managers)}`})`;
}

function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(" and ");
}

function reasonOf({ causes }: ApiError): string {
  return [...new Set(causes.map(({ field, message }) => `${field}: ${message}`))].join(", ");
}
