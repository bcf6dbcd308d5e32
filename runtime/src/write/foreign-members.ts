// Server-side apply cannot remove a member that the manager does not own, so that an object which switches from one member of a union to another
// is rejected for ever: a strategy, the source of a volume, the handler of a probe, "exactly one of" in a rule of a custom resource, a port of
// the same name. Members in the way are found by dry runs of the whole change. They become ours in the managed fields alone, so that one apply
// removes them and sets the desired object: nobody sees a state between the two.
import { isJsonObject, type JsonObject, type JsonValue } from "@gen-operator/schema";
import { isAboutImmutable, isApiError, type ApiError, type StatusCause } from "../base/errors.js";
import { describeObject } from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import type { DecodedResource } from "../base/decoded-resource.js";
import { mergeApplied } from "../match/apply-merge.js";
import { fieldPathText, fieldsAt, type FieldPath } from "../match/field-set.js";
import { pathText } from "../match/match.js";
import {
  childrenOf,
  isProtected,
  placesOn,
  rootPlace,
  unstatedBelow,
  type Path,
  type Place,
} from "../match/object-places.js";
import { NOTHING, parseOwnedFields } from "../match/owned-fields.js";
import { plainOf } from "../match/json-value.js";
import { schemaOf } from "../match/schema-node.js";
import {
  afterEdit,
  isAppliedBy,
  readWhole,
  requireVersion,
  withFieldsOf,
  writeEntries,
  type WholeState,
} from "./managed-entries.js";
import { isReleased } from "./released-fields.js";
import { patchBetween, planJsonPatch, type Change } from "./send/plan.js";
import type { ManagedEntry } from "./send/rivals.js";
import type { Sender, Sent } from "./send/send.js";

/** A member of the object that the desired one does not state. */
interface ForeignMember {
  readonly path: Path;
  readonly fields: FieldPath;
  readonly managers: readonly string[];
}

/** How many dry runs are made without one that gets the API server to complain less. */
const MOST_TRIES = 8;
const MOST_CONFLICTS = 3;
const NAMED_MEMBERS = 5;

/** Sends an apply again that the API server rejected, with the members that are in its way removed; throws its error if there are none. */
export async function applyOverForeign(error: unknown, write: Change, sender: Sender): Promise<Sent> {
  if (!isApiError(error, 422) || !error.causes.some(isAboutMembers)) throw error;
  const { target, plan, cause } = write;
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
      // What an apply does not take stays with those who had it.
      if (isApiError(failure)) await giveBack(sender, write, { claimed, entries: state.entries });
      throw failure;
    });
    const object = describeObject(target.definition, plan.ref);
    const text = `removed ${members.map(describeMember).join(", ")} from ${object}, which the API server rejected otherwise: ${reasonOf(error)}`;
    if (sent.kind !== "postponed") cause?.logger?.warn({ dependent: cause.dependent }, text);
    return sent;
  }
}

async function giveBack(
  sender: Sender,
  write: Change,
  { claimed, entries }: { readonly claimed: DecodedResource; readonly entries: readonly ManagedEntry[] },
): Promise<void> {
  // An apply that is rejected again says what is wrong; members that stay ours are removed by the next one that is not.
  await writeEntries(sender, write, { object: claimed.object, entries }).catch(() => {});
}

interface Search {
  readonly write: Change;
  readonly state: WholeState;
  readonly sender: Sender;
}

/** Returns the fewest members without which a dry run of the change succeeds. */
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
      // These are in the way for one of several causes.
      chosen = [...chosen, ...members];
      root = { ...root, value };
      [causes, isNearer, tries] = [left, true, 0];
      candidates = candidatesFor(causes, root, search);
      break;
    }
  }
  const named = first.filter(({ managers }) => managers.length > 0).slice(0, NAMED_MEMBERS);
  const list = named.map(({ fields, managers }) => `${fieldPathText(fields)} (${quoted(managers)})`).join(", ");
  if (list !== "") error.message += `; it is rejected without fields of other field managers as well: ${list}`;
  throw error;
}

/** Makes the change without storing it; returns what the API server rejects, nothing if it accepts it. */
async function dryRun(
  error: ApiError,
  changed: object,
  { write: { target, cause }, state, sender }: Search,
): Promise<readonly StatusCause[] | undefined> {
  const operations = patchBetween(state.object.metadata.uid, state.object, changed);
  try {
    await sender.dryRun({ target, plan: planJsonPatch(state.object, operations, false), cause });
    return [];
  } catch (failure) {
    if (isApiError(failure, 422)) return failure.causes.length === 0 ? undefined : failure.causes;
    error.message += `; whether fields of other field managers are in the way cannot be found out: ${messageOf(failure)}`;
    throw error;
  }
}

// One at a time, then pairs.
function* groupsOf(members: readonly ForeignMember[]): Generator<readonly ForeignMember[]> {
  for (const member of members) yield [member];
  for (const [index, member] of members.entries()) for (const other of members.slice(index + 1)) yield [member, other];
}

// What the API server makes of the apply.
function mergedOf({ write: { target, content, plan }, state: { object, entries }, sender }: Search): Root {
  const schema = schemaOf(target.definition);
  const isOwn = (entry: ManagedEntry) => isAppliedBy(entry, sender.fieldManager);
  const nodeOf = ({ fieldsV1 = {} }: ManagedEntry) => parseOwnedFields(JSON.stringify(fieldsV1));
  const mine = entries.filter(isOwn).map(nodeOf)[0] ?? NOTHING;
  const others = entries.filter((entry) => !isOwn(entry)).map(nodeOf);
  const desired = plainOf(content ?? plan.body) as JsonObject;
  const live = object as unknown as JsonObject;
  const merged = mergeApplied(live, desired, { schema, mine, others });
  // The identity, and what the API server keeps for itself.
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
    // What is written through a subresource, such as a scale, belongs to whoever does that.
    if (owners.some(({ subresource }) => subresource !== undefined)) return;
    const managers = [...new Set(owners.flatMap(({ manager }) => manager ?? []))];
    // What somebody set is more likely in the way than a default.
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

// An error about something that cannot change is about nobody's members.
function isAboutMembers(cause: StatusCause): boolean {
  return cause.field !== undefined && !isAboutImmutable(cause);
}

// The rules at the root have no field, and the text of what a schema rejects has its path.
function stepsOf({ field = "", message = "" }: StatusCause): Path {
  const text = field === "<nil>" ? (/"([^" ]+)" must validate/.exec(message)?.[1] ?? "") : field;
  return [...text.matchAll(/([^.[\]]+)|\[([^\]]*)\]/g)].map(([, name, key = ""]) => {
    if (name !== undefined) return name;
    return /^\d+$/.test(key) ? Number(key) : key.replace(/^"(.*)"$/, "$1");
  });
}

// Items of others that have a value which has to be unique in their list.
function duplicatesOf(places: readonly Place[]): Place[] {
  const at = places.findLastIndex(({ value }) => Array.isArray(value));
  const [list, , unique] = places.slice(at);
  if (at < 0 || list === undefined || unique === undefined) return [];
  return childrenOf(list).filter(({ value }) => isJsonObject(value) && value[unique.name] === unique.value);
}

function without(value: JsonObject, members: readonly ForeignMember[]): JsonObject {
  const result = structuredClone(value);
  // From the last to the first, so that the places of items before stay right.
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
