import { type ApiError, BlockedError, RetryAfterError, isApiError } from "../base/errors.js";
import {
  type DecodedResource,
  type JsonPatchOperation,
  type JsonValue,
  type KubernetesObject,
  type ObjectBody,
  type ObjectMeta,
  type ResourceDefinition,
  describeObject,
  isOwnedByFormer,
  keyOf,
  uidOf,
} from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import {
  CONTROLLER_LABEL,
  DEPENDENT_NAME,
  LINK_ANNOTATIONS,
  PRIMARY_NAME,
  hasLink,
  isOriginal,
  isOwnedBy,
  lacksLabel,
  linkOf,
  linksTo,
  missingLink,
  otherOwnerOf,
  sharesDependent,
  sharesPrimary,
} from "../base/primary-link.js";
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
import { type Deletion, type Sender, digestOf } from "./sender.js";
import { LAST_STATED, Update, fieldsOfStatement, mergedMetadata } from "./update.js";
import {
  type ApplyResult,
  type ChangeOptions,
  type PrimaryCause,
  type Write,
  type WriteBasis,
  type WriteCause,
  type WriteMethod,
  type WriteResult,
  type WriteTarget,
  applyOf,
  checkReleased,
  createOf,
  createPostponedError,
  jsonPatchOf,
  locked,
  mergePatchOf,
  pointerOf,
  removeIf,
  uidTest,
  withEncodedData,
  withoutStatus,
} from "./write.js";

const LOOK_AGAIN_AFTER_MS = 10_000;
const MOST_BLOCKED = 1_000;

/** The live object, and how to apply the desired one. */
interface WriterOptions extends ChangeOptions {
  /** Undefined if the object does not exist, or must not be written in its current state. */
  readonly live: DecodedResource | undefined;
  /** Decides whether to adopt an existing object that does not belong to the primary. Default: `refuse` */
  readonly existing?: ((live: KubernetesObject) => Promise<"refuse" | "adopt">) | undefined;
  /** Whether an existing object keeps its content and is only linked to the primary. */
  readonly isLeft?: boolean;
}

/** The reason for deleting an object in order to recreate it. */
interface Replacement {
  readonly cause: PrimaryCause;
  readonly error: ApiError;
}

interface TieOptions {
  /** The metadata of the desired object, including its link. */
  readonly desired: ObjectBody["metadata"];
  readonly cause: WriteCause | undefined;
  readonly isFiltered?: boolean;
}

/** Writes the objects of dependents with server-side apply, or with POST and PUT, unless they already match. */
export class Writer {
  readonly #sender: Sender;
  readonly #method: WriteMethod;
  /** Objects whose last creation failed because another object has the same name. */
  readonly #blocked = new Set<string>();
  /** For each object, the digest of the desired object for which it was last deleted to recreate it. */
  readonly #replaced = new Map<string, string>();

  constructor(sender: Sender, { serverSideApply = true }: { serverSideApply?: boolean } = {}) {
    this.#sender = sender;
    this.#method = serverSideApply ? new ServerSideApply(sender) : new Update(sender);
  }

  /** Applies a desired object. A creation fails if an object with the same name neither belongs to this primary nor may be adopted. */
  async apply(target: WriteTarget, stated: ObjectBody, options: WriterOptions): Promise<ApplyResult> {
    const desired = withoutStatus(target.definition, withEncodedData(target.definition, stated));
    target.cache.requireWhole(keyOf(desired.metadata));
    checkReleased(target, desired, options.released);
    const written = await this.#write(target, desired, options);
    if (written.kind !== "postponed" && written.kind !== "unseen") checkLink(target, desired.metadata, written.entry);
    return written;
  }

  async #write(target: WriteTarget, desired: ObjectBody, options: WriterOptions): Promise<ApplyResult> {
    const { live, cause } = options;
    const changed = live && (await this.#method.change(target, desired, live, options));
    if (changed !== undefined) return changed;
    // A GET is cheaper than another failing creation.
    const isBlocked = live === undefined && this.#blocked.has(idOf(target, desired.metadata));
    const resumed = isBlocked ? await this.#resume(target, desired, options) : undefined;
    if (resumed !== undefined) return resumed;
    try {
      const sent = await this.#method.create(target, desired, cause);
      // The workflow continues after a postponed change, but not without the object.
      if (sent.kind === "postponed") throw createPostponedError(sent.postponed);
      return sent;
    } catch (error) {
      if (!isApiError(error, 409)) throw error;
      const written = await this.#resume(target, desired, options);
      if (written === undefined) throw error;
      return written;
    }
  }

  /** Reads an object that the watch may not contain. Returns undefined if it does not exist or does not belong to the primary. */
  async findOwn(target: WriteTarget, desired: ObjectBody["metadata"], cause: PrimaryCause) {
    const live = await this.#sender.read(target, desired, cause.signal);
    return live !== undefined && this.#isOwn(desired, live, cause.primary) ? live : undefined;
  }

  delete(target: WriteTarget, live: KubernetesObject, options?: Deletion): Promise<boolean> {
    return this.#sender.delete(target, live, options);
  }

  /**
   * Checks whether an object may be deleted in order to recreate it with another value of an immutable field, and returns how to delete it. Throws if
   * the API server would reject the creation, or if the object has already been recreated for the same desired state.
   */
  async checkReplacement(target: WriteTarget, stated: ObjectBody, { cause, error }: Replacement): Promise<Deletion> {
    const { definition } = target;
    const desired = withoutStatus(definition, withEncodedData(definition, stated));
    const id = idOf(target, desired.metadata);
    const digest = digestOf(desired);
    const fail = (problem: string) =>
      new BlockedError(`${messageOf(error)}; it is not deleted, because ${problem}`, { cause: error });
    if (this.#replaced.get(id) === digest)
      throw fail(
        "it was created again for the same desired state before: exempt it from the admission policy or webhook that changes the field, or delete it yourself",
      );
    try {
      await this.#sender.dryRun({ ...createOf(target, desired), cause });
    } catch (problem) {
      // The API server checks the name last, so it accepts the object apart from the conflict.
      if (!isApiError(problem, 409)) throw fail(`it could not be created again: ${messageOf(problem)}`);
    }
    if (this.#replaced.size >= MOST_BLOCKED) this.#replaced.clear();
    this.#replaced.set(id, digest);
    const text = `deleting ${describeObject(definition, desired.metadata)} to create it again (onImmutable: recreate): ${messageOf(error)}`;
    cause.logger?.info({ dependent: cause.dependent }, text);
    return { cause, propagationPolicy: propagationOf(definition) };
  }

  /** Adds the link of the desired object to a live object, without changing other fields. */
  async tie(target: WriteTarget, live: DecodedResource, options: TieOptions): Promise<DecodedResource> {
    const { desired, cause, isFiltered = true } = options;
    if (hasLink(live.object.metadata, desired)) return live;
    const { uid, resourceVersion } = live.object.metadata;
    const { ownerReferences: wanted = [], ...link } = linkOf(desired);
    // A merge patch replaces the whole list, so it is locked to the resourceVersion that was read.
    const hasOwners = wanted.every((owner) => isOwnedBy(live.object.metadata, owner));
    const { ownerReferences } = mergedMetadata(live.object.metadata, desired);
    const metadata = { ...link, uid, ...(!hasOwners && { ownerReferences, resourceVersion }) };
    const write = mergePatchOf(target, { metadata });
    const sent = await this.#sender.send({ ...write, before: live, cause, isFiltered });
    // Without its link, the primary does not find the object.
    if (sent.kind === "postponed") throw createPostponedError(sent.postponed);
    checkLink(target, desired, sent.entry);
    return sent.entry;
  }

  /** Adds a finalizer to an object without changing other fields: the object may belong to another client. */
  async hold(target: WriteTarget, live: DecodedResource, finalizer: string, cause: PrimaryCause): Promise<void> {
    const hold = async (before: DecodedResource) => {
      const { uid, finalizers = [], deletionTimestamp } = before.object.metadata;
      if (deletionTimestamp !== undefined || finalizers.includes(finalizer)) return;
      const path = "/metadata/finalizers";
      const isFirst = finalizers.length === 0;
      const addition: JsonPatchOperation = isFirst
        ? { op: "add", path, value: [finalizer] }
        : { op: "add", path: `${path}/-`, value: finalizer };
      const patch = jsonPatchOf(target, before.object, [uidTest(uid), addition]);
      // Another client may add the first finalizer at the same time, so this patch is locked. The patch then differs each time because of the
      // resourceVersion, so the finalizer is tracked in write loops instead.
      const held = { ...cause, statement: { held: finalizer } };
      const sent = await this.#sender.send({ ...(isFirst ? locked(patch) : patch), before, cause: held });
      if (sent.kind === "postponed" || sent.entry.object.metadata.finalizers?.includes(finalizer) === true) return;
      throw new Error(
        `${describeObject(target.definition, before.object.metadata)} was stored without finalizer "${finalizer}", which holds it for the cleanup of ` +
          "its primary: an admission policy or webhook removed it; exempt the object",
      );
    };
    await retryOnConflict(live, hold, { sender: this.#sender, target });
  }

  /** Removes a finalizer from an object without changing other fields. */
  async release(target: WriteTarget, live: DecodedResource, finalizer: string, cause: PrimaryCause): Promise<void> {
    const release = async (before: DecodedResource) => {
      const { uid, finalizers = [] } = before.object.metadata;
      const index = finalizers.indexOf(finalizer);
      if (index === -1) return;
      const operations = [uidTest(uid), ...removeIf(pointerOf(["metadata", "finalizers", index]), finalizer)];
      await this.#sender.send({ ...jsonPatchOf(target, before.object, operations), before, cause, isUrgent: true });
    };
    await retryOnConflict(live, release, { sender: this.#sender, target });
  }

  /** Releases an object: removes its link to a primary with a JSON patch, which changes neither other fields nor their managers. */
  async untie(target: WriteTarget, live: DecodedResource, cause: PrimaryCause): Promise<void> {
    await this.#takeOff(target, live, cause);
    this.#sender.forget(target, live.object, cause);
  }

  /** Removes the owner references to a primary from an object that is also linked by annotations. */
  async disown(target: WriteTarget, live: DecodedResource, cause: PrimaryCause): Promise<void> {
    await this.#takeOff(target, live, cause, true);
  }

  async #takeOff(target: WriteTarget, live: DecodedResource, cause: PrimaryCause, keepsLink = false): Promise<void> {
    const { uid } = cause.primary.metadata;
    const takeOff = async (before: DecodedResource) => {
      const operations = untyingOperations(before.object, uid, keepsLink);
      if (operations.length === 0) return;
      const patch = jsonPatchOf(target, before.object, operations);
      await this.#sender.send({ ...patch, before, cause, isUrgent: !keepsLink });
    };
    await retryOnConflict(live, takeOff, { sender: this.#sender, target });
  }

  // Handles an object that exists but that the watch does not contain: the response to its creation was lost, it lacks the label, or another client
  // created it. Returns undefined if there is none.
  async #resume(target: WriteTarget, desired: ObjectBody, options: WriterOptions): Promise<ApplyResult | undefined> {
    const { existing, isLeft = false, cause } = options;
    const { metadata } = desired;
    const id = idOf(target, metadata);
    const live = await this.#sender.read(target, metadata, cause?.signal);
    this.#blocked.delete(id);
    if (live === undefined) return undefined;
    const isOwn = this.#isOwn(metadata, live, cause?.primary);
    try {
      if (!isOwn) checkAdoption(metadata, live.object, await existing?.(live.object));
    } catch (error) {
      // Otherwise, the objects of deleted primaries would remain in the set.
      if (this.#blocked.size >= MOST_BLOCKED) this.#blocked.clear();
      this.#blocked.add(id);
      throw error;
    }
    target.cache.put(live);
    const isTerminating = live.object.metadata.deletionTimestamp !== undefined;
    if (!isTerminating && !isLeft) return { kind: "unseen", entry: live, isForeign: !isOwn };
    // An apply of only the link would remove the fields that the operator applied before. Another client may have changed the object in the meantime,
    // so the event of this write is not filtered.
    const entry = await this.tie(target, live, { desired: metadata, cause, isFiltered: false });
    return { kind: isTerminating ? "terminating" : entry === live ? "unchanged" : "updated", entry };
  }

  // Returns whether an object is linked to the same primary, or is linked to none and was written by us: marked as ours, applied by us, or written by
  // our PUT.
  #isOwn(desired: Partial<ObjectMeta>, live: DecodedResource, primary?: KubernetesObject): boolean {
    const { metadata } = live.object;
    const isTied = desired.annotations?.[PRIMARY_NAME] !== undefined || (desired.ownerReferences ?? []).length > 0;
    // The object may have the other kind of link, if the deletion policy of the dependent has changed or another controller created it.
    if (isTied && sharesPrimary(primary === undefined ? desired : linksTo(primary), metadata)) return true;
    const isFree = otherOwnerOf(metadata, desired) === undefined;
    // Another client may have removed the link.
    const isUntied = isFree && sharesDependent(desired, metadata);
    if (isUntied && isOriginal(metadata) === true) return true;
    // An object that was released on purpose lacks the label as well.
    const isStripped = isFree && !lacksLabel(metadata, desired) && metadata.annotations?.[DEPENDENT_NAME] === undefined;
    // A copy of the object also has the annotation of the PUT, but with the name of the dependent.
    if (isStripped && metadata.annotations?.[LAST_STATED] !== undefined && isOriginal(metadata) !== false) return true;
    return (!isTied || isUntied || isStripped) && this.#sender.matcher.ownedFields(live, "object") !== undefined;
  }
}

// A recreated StatefulSet adopts the pods and claims of the previous one. For other kinds, the dependents of the previous object must be gone before
// the new one is created.
function propagationOf({ apiVersion, kind }: ResourceDefinition): "Foreground" | "Orphan" {
  return kind === "StatefulSet" && apiVersion.startsWith("apps/") ? "Orphan" : "Foreground";
}

function idOf({ definition }: WriteTarget, metadata: ObjectBody["metadata"]): string {
  return `${definition.group}/${definition.plural}/${keyOf(metadata)}`;
}

// Without its link, the controller would not find the object, and so would neither update nor delete it.
function checkLink({ definition }: WriteTarget, desired: ObjectBody["metadata"], { object }: DecodedResource): void {
  const missing = missingLink(object.metadata, desired);
  if (missing.length === 0 || object.metadata.deletionTimestamp !== undefined) return;
  throw new Error(
    `${describeObject(definition, desired)} was stored without ${missing.join(", ")}: an admission policy or ` +
      "webhook removed it. Exempt the object; otherwise the operator can neither find it nor delete it with its primary",
  );
}

/** Returns the operations that remove the references to an owner from an object and, unless `keepsLink` is set, its label and annotations. */
export function untyingOperations(
  { metadata }: KubernetesObject,
  owner: string | undefined,
  keepsLink = false,
): JsonPatchOperation[] {
  const { uid, ownerReferences = [] } = metadata;
  const removedFrom = (member: "annotations" | "labels", name: string) => {
    const value = metadata[member]?.[name];
    return value === undefined ? [] : removeIf(pointerOf(["metadata", member, name]), value);
  };
  const annotations = [...LINK_ANNOTATIONS, LAST_STATED].flatMap((name) => removedFrom("annotations", name));
  const links = keepsLink ? [] : [...annotations, ...removedFrom("labels", CONTROLLER_LABEL)];
  // In reverse order, because a removal shifts the indexes after it.
  const owners = [...ownerReferences.entries()].reverse().flatMap(([index, each]) => {
    return each.uid === owner ? removeIf(pointerOf(["metadata", "ownerReferences", index]), owner, "/uid") : [];
  });
  const operations = [...links, ...owners];
  // Another object may have the name by now.
  return operations.length === 0 ? [] : [uidTest(uid), ...operations];
}

/** Throws if an existing object must not be adopted. */
export function checkAdoption(
  desired: ObjectBody["metadata"],
  live: KubernetesObject,
  policy?: "refuse" | "adopt",
): void {
  const object = describeObject(live, desired);
  // Without the conflict of the creation as the cause, which would only be confusing.
  const fail = (problem: string) => new BlockedError(`${object} ${problem}`);
  const isTerminating = live.metadata.deletionTimestamp !== undefined;
  // When an object that is not linked to the primary is deleted, no watch event enqueues the primary.
  const later = (problem: string) => new RetryAfterError(`${object} ${problem}`, LOOK_AGAIN_AFTER_MS);
  const strange = "already exists and is not owned by this primary";
  if (policy !== "adopt" && isTerminating)
    throw later(`${strange}; it is being deleted: wait for that, or give the dependent another name`);
  const other = otherOwnerOf(live.metadata, desired);
  if (other !== undefined) {
    const what = policy === "adopt" ? "cannot be adopted: it" : "already exists and";
    throw fail(`${what} is owned by ${other}; delete it there, or change the name that desired() returns`);
  }
  const advice = "delete it, set existing: adopt, or change the name that desired() returns";
  if (policy !== "adopt") throw fail(`${strange}; ${advice}`);
  if (isTerminating) throw later("cannot be adopted: it is being deleted; it is created again after its deletion");
}

/** Writes objects with server-side apply. */
class ServerSideApply implements WriteMethod {
  readonly #sender: Sender;
  readonly #leftFields: LeftFields;

  constructor(sender: Sender) {
    this.#sender = sender;
    this.#leftFields = new LeftFields(sender);
  }

  create(target: WriteTarget, desired: ObjectBody, cause: WriteCause | undefined): Promise<WriteResult> {
    // With a resourceVersion, an apply fails with a conflict if the object exists, so it takes no fields over from other managers.
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
    // With the UID, an apply neither recreates a deleted object nor overwrites one that another client has created under the same name.
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

  /** Returns undefined if the object no longer exists or another object has its name. */
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

  // Whether an earlier version of the operator wrote the object with PUT or under another field manager.
  #isToMigrate(live: DecodedResource): boolean {
    const wasPut = live.object.metadata.annotations?.[LAST_STATED] !== undefined;
    return wasPut || isOwnedByFormer(live, this.#sender.formerFieldManagers);
  }
}

// An apply does not remove fields that the same manager wrote with PUT, that a previous controller of the object applied, or that have lost their
// managers in a backup. So the first apply migrates their managed fields, like kubectl does (csaupgrade in client-go).

/** Applies an object after migrating its managed fields, so that the apply removes fields that remain from earlier writes. */
async function applyMigrating(sender: Sender, write: Write<DecodedResource>): Promise<WriteResult> {
  const { target, ref, lock, before, cause } = write;
  // Kept between attempts: after a lost response, the next attempt finds the entries that this one wrote.
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
    // Some fields cannot be removed, and it is no longer known which fields are ours and which are defaults.
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

// Returns the entries, with the fields of earlier writes merged into our applied ones.
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
 * Returns fields that are ours although no entry lists them: those of the last PUT and, if the managed fields were stripped, all fields that are not
 * desired and that no other manager owns.
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
  // When an object that the controller did not write is adopted, it keeps its fields.
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

/** Returns all fields of the desired object, each without the fields below it. */
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
 * Removes fields that an apply left behind, unless another manager also owns them. Fields that could not be removed are kept in memory: after the
 * apply, the managed fields no longer show that they were ours.
 */
class LeftFields {
  readonly #sender: Sender;
  /** By UID of the object. */
  readonly #pending = new Map<string, readonly FieldPath[]>();

  constructor(sender: Sender) {
    this.#sender = sender;
  }

  hasAny({ object }: DecodedResource): boolean {
    return this.#pending.size > 0 && this.#pending.has(object.metadata.uid ?? "");
  }

  /** Returns the result of an apply or, if it left fields behind, of the patch that removes them. */
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

/** Returns those of `fields` that the object contains and that no other manager owns, each together with its mirror field. */
function removableFields(
  { object, entries }: WholeState,
  fields: readonly FieldPath[],
  { fieldManager, released, target }: Write & { readonly fieldManager: string },
): readonly LeftField[] {
  const others = entries.filter((entry) => !isAppliedBy(entry, fieldManager) && entry.manager !== BEFORE_FIRST_APPLY);
  const find = (path: FieldPath): LeftField | undefined => {
    // Replicas may have been scaled through the subresource, which stripped managed fields do not show.
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

// In a PodSpec, the API server sets each of these fields to the value of the other one if it is absent, so both must be removed together.
const MIRRORS: { readonly [element: string]: string } = { "f:serviceAccountName": "f:serviceAccount" };

function mirrorOf(path: FieldPath): FieldPath | undefined {
  const mirror = MIRRORS[path.at(-1) ?? ""];
  return mirror === undefined ? undefined : [...path.slice(0, -1), mirror];
}
