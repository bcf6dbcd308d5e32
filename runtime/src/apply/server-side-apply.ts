import { isApiError } from "../base/errors.js";
import {
  type DecodedResource,
  type JsonValue,
  type KubernetesObject,
  type ObjectBody,
  describeObject,
  isOwnedByFormer,
  uidOf,
} from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import { CONTROLLER_LABEL } from "../base/primary-link.js";
import {
  type FieldPath,
  type LeftField,
  type ManagedEntry,
  type Place,
  childrenOf,
  fieldPathText,
  fieldsAt,
  isProtected,
  resolveField,
  rootPlace,
  unionOf,
  unstatedBelow,
  withoutMember,
} from "./field-set.js";
import { applyOverForeign } from "./foreign-members.js";
import {
  BEFORE_FIRST_APPLY,
  type WholeState,
  afterEdit,
  isAppliedBy,
  isReleased,
  ownsReleased,
  readWhole,
  releaseFields,
  requireVersion,
  withFieldsOf,
  withoutFields,
  withoutReleased,
  writeEntries,
} from "./managed-fields.js";
import { plainOf } from "./match.js";
import { schemaOf } from "./owned-fields.js";
import { failedAsGone, retryOnConflict } from "./retry-on-conflict.js";
import type { Sender } from "./sender.js";
import { LAST_STATED, fieldsOfStatement } from "./update.js";
import {
  type ApplyResult,
  type ChangeOptions,
  type Write,
  type WriteBasis,
  type WriteCause,
  type WriteMethod,
  type WriteResult,
  type WriteTarget,
  applyOf,
  jsonPatchOf,
  locked,
  pointerOf,
  removeIf,
  uidTest,
} from "./write.js";

/** Writes objects by server-side apply. */
export class ServerSideApply implements WriteMethod {
  readonly #sender: Sender;
  readonly #leftFields: LeftFields;

  constructor(sender: Sender) {
    this.#sender = sender;
    this.#leftFields = new LeftFields(sender);
  }

  create(target: WriteTarget, desired: ObjectBody, cause: WriteCause | undefined): Promise<WriteResult> {
    // An apply with a resource version fails with a conflict if the object exists, so it takes over no fields of other managers.
    return this.#sender.send({ ...locked({ ...applyOf(target, desired), version: "1" }), desired, cause });
  }

  async change(
    target: WriteTarget,
    desired: ObjectBody,
    live: DecodedResource,
    options: ChangeOptions,
  ): Promise<ApplyResult | undefined> {
    const sender = this.#sender;
    const { isForced, basis, released, cause } = options;
    const asDesired = applyOf(target, desired);
    const isReleasing = released !== undefined && ownsReleased(sender, live, released);
    const isOwing = isReleasing || this.#isToMigrate(live) || this.#leftFields.hasAny(live);
    if (isForced !== true && !isOwing && sender.matcher.matches(asDesired, live)) {
      sender.noteMatch(asDesired, cause);
      return { kind: "unchanged", entry: live };
    }
    const { uid, resourceVersion } = live.object.metadata;
    if (basis !== undefined && basis.version !== resourceVersion) return { kind: "unseen", entry: live };
    // With the uid, an apply neither creates a deleted object again nor takes over one that another client has created under its name.
    const metadata = Object.assign({}, desired.metadata, { uid }, basis && { resourceVersion });
    const stated = Object.assign({}, desired, { metadata });
    const write = { ...applyOf(target, stated), desired, before: live, cause, released };
    try {
      if (isReleasing) {
        const without = await releaseFields(sender, write);
        if (without === undefined) return undefined;
        const { resourceVersion: version } = without.object.metadata;
        return await this.change(target, desired, without, { ...options, basis: basis && { version } });
      }
      const sent = await this.#send(write, basis);
      return sent && (await this.#leftFields.removeAfter(write, sent));
    } catch (error) {
      if (basis === undefined || !isApiError(error, 409)) throw error;
      const now = await sender.read(target, desired.metadata, cause?.signal);
      return now === undefined || uidOf(now) !== uid ? undefined : { kind: "unseen", entry: now };
    }
  }

  /** Returns undefined if the object no longer exists, or another one has its name. */
  async #send(write: Write<DecodedResource>, basis: WriteBasis | undefined): Promise<WriteResult | undefined> {
    const sender = this.#sender;
    const { target, before, cause } = write;
    const isFirst = this.#isToMigrate(before) || sender.matcher.ownedFields(before, "object") === undefined;
    try {
      return await (isFirst ? applyMigrating(sender, write) : sender.send(write));
    } catch (error) {
      if (basis !== undefined && isApiError(error, 409)) throw error;
      if (await failedAsGone(error, before.object, { sender, target, cause })) return undefined;
      return applyOverForeign(error, write, sender);
    }
  }

  // An earlier version of the operator wrote the object by PUT, or under another field manager.
  #isToMigrate(live: DecodedResource): boolean {
    const wasPut = live.object.metadata.annotations?.[LAST_STATED] !== undefined;
    return wasPut || isOwnedByFormer(live, this.#sender.formerFieldManagers);
  }
}

// An apply does not remove fields that the same manager wrote by PUT, that another controller applied which had the object before, or that have lost
// their managers in a backup. So the first apply migrates them, as kubectl does (csaupgrade in client-go).

/** Applies an object after migrating its managed fields, so that the apply removes what earlier writes left. */
async function applyMigrating(sender: Sender, write: Write<DecodedResource>): Promise<WriteResult> {
  const { target, ref, lock, before, cause } = write;
  // Kept between attempts: after a lost answer the next one finds the entries as this one left them.
  let migrated: { readonly former: readonly ManagedEntry[]; readonly left: readonly FieldPath[] } | undefined;
  const migrate = async (live: typeof before) => {
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
    migrated = { former, left };
    return writeEntries(sender, write, { ...state, entries: freed });
  };
  const isLocked = lock !== undefined;
  const state = await (isLocked ? migrate(before) : retryOnConflict(before, migrate, { sender, target }));
  const { former = [], left = [] } = migrated ?? {};
  if (state === undefined) return sender.send(write);
  if (left.length === 0) return sender.send(afterEdit(write, state));
  try {
    return await sender.send(afterEdit(write, state));
  } catch (error) {
    // Some fields cannot be removed, and nothing tells any more which ones are ours and which ones are defaults.
    if (!isApiError(error, 422)) throw error;
    const given = await writeEntries(sender, write, { object: state.object, entries: former });
    const sent = await sender.send(afterEdit(write, given));
    const text =
      `${describeObject(target.definition, ref)} had lost its managed fields, and keeps ${left.map(fieldPathText).join(", ")}, ` +
      `which may remain from an earlier version, because the API server rejected their removal: ${messageOf(error)}`;
    cause?.logger?.warn({ dependent: cause.dependent }, text);
    return sent;
  }
}

// Returns the entries, with the fields of former writes as applied ones.
function withFormer(
  { object, entries }: WholeState,
  write: Write<DecodedResource>,
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

/**
 * Returns fields that are ours without an entry that says so: those of the last PUT, and, if the managed fields were stripped, all fields beside a
 * desired one that no other manager owns.
 */
function leftOver(
  { object, entries }: WholeState,
  write: Write<DecodedResource>,
  fieldManager: string,
): readonly FieldPath[] {
  const unowned = entries.find(({ manager }) => manager === BEFORE_FIRST_APPLY);
  const others = entries.filter((entry) => entry !== unowned && !isAppliedBy(entry, fieldManager));
  const isFree = (fields: FieldPath) => others.every(({ fieldsV1 = {} }) => fieldsAt(fieldsV1, fields) === undefined);
  const statement = fieldsOfStatement(object).filter((fields, index) => index === 0 || isFree(fields));
  const isStripped = entries.length === 0 || unowned !== undefined;
  // An object that the controller did not write keeps its fields when it is adopted.
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

/** Returns all fields of the desired object, each without those below it. */
function statedFields(object: KubernetesObject, write: Write<DecodedResource>): readonly FieldPath[] {
  const found: FieldPath[] = [];
  for (let level = [placeOf(object, write)]; level.length > 0;) {
    level = level.flatMap(childrenOf).filter(({ desired }) => desired !== undefined);
    found.push(...level.map(({ fields }) => fields));
  }
  return found;
}

function placeOf(object: KubernetesObject, { target, desired }: Write): Place {
  return rootPlace(object as never, plainOf(desired)!, schemaOf(target.definition));
}

/**
 * Removes fields that an apply left behind, unless another manager owns them as well. Fields that could not be removed are kept in memory: after the
 * apply the managed fields no longer tell that they were ours.
 */
class LeftFields {
  readonly #sender: Sender;
  /** By the uid of the object. */
  readonly #pending = new Map<string, readonly FieldPath[]>();

  constructor(sender: Sender) {
    this.#sender = sender;
  }

  hasAny({ object }: DecodedResource): boolean {
    return this.#pending.size > 0 && this.#pending.has(object.metadata.uid ?? "");
  }

  /** Returns the result of an apply, or of the patch that removes the fields that it left. */
  async removeAfter(write: Write<DecodedResource>, sent: WriteResult): Promise<WriteResult> {
    if (sent.kind === "postponed") return sent;
    const { uid = "" } = sent.entry.object.metadata;
    const left = this.#sender.matcher.leftBehind(write, sent.entry);
    const fields = [...(this.#pending.get(uid) ?? []), ...left.map((each) => each.fields)];
    if (fields.length === 0) return sent;
    this.#pending.set(uid, fields);
    const removed = await this.#remove({ ...write, before: sent.entry }, fields);
    if (removed?.kind !== "postponed") this.#pending.delete(uid);
    return removed ?? sent;
  }

  #remove(write: Write<DecodedResource>, fields: readonly FieldPath[]): Promise<WriteResult | undefined> {
    const sender = this.#sender;
    const { target, cause } = write;
    const remove = async (live: DecodedResource): Promise<WriteResult | undefined> => {
      const state = await readWhole(sender, { ...write, before: live });
      const found =
        state === undefined ? [] : removableFields(state, fields, { ...write, fieldManager: sender.fieldManager });
      if (state === undefined || found.length === 0) return undefined;
      const { object } = state;
      const operations = [
        uidTest(object.metadata.uid),
        ...found.flatMap(({ path, value }) => removeIf(pointerOf(path), value)),
      ];
      // The known mutations of the object include these fields.
      sender.matcher.mutations.forget(target.cache, object.metadata);
      return sender.send({ ...jsonPatchOf(target, object, operations), before: live, cause });
    };
    return retryOnConflict(write.before, remove, { sender, target });
  }
}

/** Returns those of `fields` that the object has and that no other manager owns, each with its mirror. */
function removableFields(
  { object, entries }: WholeState,
  fields: readonly FieldPath[],
  { fieldManager, released, target }: Write & { readonly fieldManager: string },
): readonly LeftField[] {
  const others = entries.filter((entry) => !isAppliedBy(entry, fieldManager) && entry.manager !== BEFORE_FIRST_APPLY);
  const find = (path: FieldPath): LeftField | undefined => {
    // Replicas may have been scaled through the subresource, which stripped managed fields do not tell.
    const isKept = path.at(-1) === "f:replicas" || isReleased(path, released);
    const isOwned = others.some(({ fieldsV1 = {} }) => fieldsAt(fieldsV1, path) !== undefined);
    return isKept || isOwned ? undefined : resolveField(object as unknown as JsonValue, path);
  };
  return fields.flatMap((path): readonly LeftField[] => {
    const left = find(path);
    if (left === undefined) return [];
    const mirror = target.definition.isCustom ? undefined : mirrorOf(path);
    const mirrored = mirror && find(mirror);
    return mirrored?.value === left.value ? [left, mirrored] : [left];
  });
}

// In a PodSpec the API server sets each of these fields to the value of the other one if that is absent, so only both together go.
const MIRRORS: { readonly [element: string]: string } = { "f:serviceAccountName": "f:serviceAccount" };

function mirrorOf(path: FieldPath): FieldPath | undefined {
  const mirror = MIRRORS[path.at(-1) ?? ""];
  return mirror === undefined ? undefined : [...path.slice(0, -1), mirror];
}
