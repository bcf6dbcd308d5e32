// An apply removes nothing of what the same manager wrote by PUT, nor of what the controller applied that had the object before, nor of anything
// after a backup tool has stripped the managed fields. So the first apply takes these fields over (kubectl does that, too: csaupgrade).
import type { KubernetesObject } from "../base/kubernetes-object.js";
import { isApiError } from "../base/errors.js";
import { describeObject } from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import { CONTROLLER_LABEL } from "../base/primary-link.js";
import { fieldPathText, fieldsAt, unionOf, withoutMember, type FieldPath } from "../match/field-set.js";
import { plainOf } from "../match/json-value.js";
import { childrenOf, isProtected, rootPlace, unstatedBelow, type Place } from "../match/object-places.js";
import { schemaOf } from "../match/schema-node.js";
import { fieldsOfStatement } from "./last-stated.js";
import {
  afterEdit,
  BEFORE_FIRST_APPLY,
  isAppliedBy,
  readWhole,
  requireVersion,
  withFieldsOf,
  withoutFields,
  writeEntries,
  type WholeState,
} from "./managed-entries.js";
import { isReleased, withoutReleased } from "./released-fields.js";
import { onLatest } from "./send/on-latest.js";
import type { Change } from "./send/plan.js";
import type { ManagedEntry } from "./send/rivals.js";
import type { Sender, Sent } from "./send/send.js";

/** Applies an object, and removes what is left over from before its fields were managed by this manager. */
export async function applyClaiming(sender: Sender, write: Change): Promise<Sent> {
  const { target, before, cause, plan } = write;
  let claims: { readonly former: readonly ManagedEntry[]; readonly left: readonly FieldPath[] } | undefined;
  const claim = async (live: typeof before) => {
    const state = await readWhole(sender, { ...write, before: live });
    if (state === undefined) return undefined;
    requireVersion(write, state);
    const former = withoutReleased(withFormer(state, write, sender), sender.fieldManager, write.released);
    const left = leftOver({ ...state, entries: former }, write, sender.fieldManager);
    const { apiVersion } = target.definition;
    const own = { fieldManager: sender.fieldManager, apiVersion, fields: left };
    const entries = left.length === 0 ? former : withFieldsOf(former, own);
    const freed = entries.flatMap((entry) =>
      entry.manager === BEFORE_FIRST_APPLY
        ? withoutFields(entry, statedFields(state.object, write), withoutMember)
        : [entry],
    );
    if (JSON.stringify(freed) === JSON.stringify(state.entries)) return live;
    claims = { former, left };
    return writeEntries(sender, write, { ...state, entries: freed });
  };
  const isLocked = plan.lock !== undefined;
  const claimed = await (isLocked ? claim(before) : onLatest(before, claim, { sender, target }));
  const { former = [], left = [] } = claims ?? {};
  if (claimed === undefined) return sender.send(write);
  if (left.length === 0) return sender.send(afterEdit(write, claimed));
  try {
    return await sender.send(afterEdit(write, claimed));
  } catch (error) {
    // Some of them cannot be removed; which of them are ours, and not defaults, nothing tells any more.
    if (!isApiError(error, 422)) throw error;
    const given = await writeEntries(sender, write, { object: claimed.object, entries: former });
    const sent = await sender.send(afterEdit(write, given));
    const text =
      `${describeObject(target.definition, plan.ref)} had lost its managed fields, and keeps ${left.map(fieldPathText).join(", ")}, ` +
      `which may be left over from an earlier version: the API server does not let them go: ${messageOf(error)}`;
    cause?.logger?.warn({ dependent: cause.dependent }, text);
    return sent;
  }
}

// The entries, with the fields of former writes as applied ones.
function withFormer(
  { object, entries }: WholeState,
  write: Change,
  { fieldManager, formerFieldManagers }: Sender,
): readonly ManagedEntry[] {
  const controller = object.metadata.labels?.[CONTROLLER_LABEL];
  const isOfFormer = (manager = "") => manager === controller || formerFieldManagers.includes(manager);
  const isFormer = ({ manager, operation, subresource }: ManagedEntry) =>
    subresource === undefined && (manager === fieldManager ? operation === "Update" : isOfFormer(manager));
  const former = entries.filter(isFormer);
  if (former.length === 0) return entries;
  const own = entries.find((entry) => isAppliedBy(entry, fieldManager));
  const all = own === undefined ? former : [own, ...former];
  const fieldsV1 = all.map((entry) => entry.fieldsV1 ?? {}).reduce(unionOf);
  const { apiVersion } = write.target.definition;
  const applied = { ...all[0], manager: fieldManager, operation: "Apply", fieldsV1 };
  const entry = all.length === 1 ? applied : { ...applied, apiVersion };
  return entries.flatMap((each) => (each === all[0] ? [entry] : all.includes(each) ? [] : [each]));
}

/** Returns fields that are ours although no entry says so: after all entries were stripped, as far as can be told, those beside a desired field. */
function leftOver({ object, entries }: WholeState, write: Change, fieldManager: string): readonly FieldPath[] {
  const unowned = entries.find(({ manager }) => manager === BEFORE_FIRST_APPLY);
  const others = entries.filter((entry) => entry !== unowned && !isAppliedBy(entry, fieldManager));
  const isFree = (fields: FieldPath) => others.every(({ fieldsV1 = {} }) => fieldsAt(fieldsV1, fields) === undefined);
  const statement = fieldsOfStatement(object).filter((fields, index) => index === 0 || isFree(fields));
  const isStripped = entries.length === 0 || unowned !== undefined;
  // An object that the controller did not write is adopted as it is.
  if (!isStripped || object.metadata.labels?.[CONTROLLER_LABEL] === undefined) return statement;
  const isUnowned = ({ fields }: Place) =>
    unowned === undefined || fieldsAt(unowned.fieldsV1 ?? {}, fields) !== undefined;
  const places = unstatedBelow(placeOf(object, write));
  const free = places.filter(
    (place) =>
      !isProtected(place) && !isReleased(place.fields, write.released) && isUnowned(place) && isFree(place.fields),
  );
  return [...statement, ...free.map(({ fields }) => fields)];
}

/** Returns all fields that are stated, each without what is below it. */
function statedFields(object: KubernetesObject, write: Change): readonly FieldPath[] {
  const found: FieldPath[] = [];
  for (let level = [placeOf(object, write)]; level.length > 0;) {
    level = level.flatMap(childrenOf).filter(({ desired }) => desired !== undefined);
    found.push(...level.map(({ fields }) => fields));
  }
  return found;
}

function placeOf(object: KubernetesObject, { target, plan, content = plan.body }: Change): Place {
  return rootPlace(object as never, plainOf(content)!, schemaOf(target.definition));
}
