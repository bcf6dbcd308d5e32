import { type ApiError, BlockedError, RetryAfterError, isApiError } from "../base/errors.js";
import {
  type DecodedResource,
  type JsonPatchOperation,
  type KubernetesObject,
  type ObjectBody,
  type ObjectMeta,
  type ResourceDefinition,
  describeObject,
  keyOf,
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
import { retryOnConflict } from "./retry-on-conflict.js";
import { type Deletion, type Sender, digestOf } from "./sender.js";
import { ServerSideApply } from "./server-side-apply.js";
import { LAST_STATED, Update, mergedMetadata } from "./update.js";
import {
  type ApplyResult,
  type ChangeOptions,
  type PrimaryCause,
  type WriteCause,
  type WriteMethod,
  type WriteTarget,
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

/** The live object, and how it is made as desired. */
interface WriterOptions extends ChangeOptions {
  /** Undefined if the object does not exist, or must not be written as it is. */
  readonly live: DecodedResource | undefined;
  /** Decides about an existing object that does not belong to the primary. Default: `refuse` */
  readonly existing?: ((live: KubernetesObject) => Promise<"refuse" | "adopt">) | undefined;
  /** Whether an existing object keeps its content, and is only linked to the primary. */
  readonly isLeft?: boolean;
}

/** An object that is deleted to create it again, and why. */
interface Replacement {
  readonly cause: PrimaryCause;
  readonly error: ApiError;
}

interface TieOptions {
  /** The metadata of the desired object, with its link. */
  readonly desired: ObjectBody["metadata"];
  readonly cause: WriteCause | undefined;
  readonly isFiltered?: boolean;
}

/** Writes the objects of dependents, by server-side apply or by POST and PUT, unless they are as desired already. */
export class Writer {
  readonly #sender: Sender;
  readonly #method: WriteMethod;
  /** The objects whose last creation failed because another object has the name. */
  readonly #blocked = new Set<string>();
  /** The digest of the desired object for which an object was last deleted to recreate it. */
  readonly #replaced = new Map<string, string>();

  constructor(sender: Sender, { serverSideApply = true }: { serverSideApply?: boolean } = {}) {
    this.#sender = sender;
    this.#method = serverSideApply ? new ServerSideApply(sender) : new Update(sender);
  }

  /** Makes an object as desired. A creation fails if the name belongs to an object that is neither of this primary nor to be adopted. */
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
    // A GET costs less than another creation that fails.
    const isBlocked = live === undefined && this.#blocked.has(idOf(target, desired.metadata));
    const resumed = isBlocked ? await this.#resume(target, desired, options) : undefined;
    if (resumed !== undefined) return resumed;
    try {
      const sent = await this.#method.create(target, desired, cause);
      // The workflow goes on after a postponed change, but not without the object.
      if (sent.kind === "postponed") throw createPostponedError(sent.postponed);
      return sent;
    } catch (error) {
      if (!isApiError(error, 409)) throw error;
      const written = await this.#resume(target, desired, options);
      if (written === undefined) throw error;
      return written;
    }
  }

  /** Reads an object that the watch may not show; undefined if it does not exist, or does not belong to the primary. */
  async findOwn(target: WriteTarget, desired: ObjectBody["metadata"], cause: PrimaryCause) {
    const live = await this.#sender.read(target, desired, cause.signal);
    return live !== undefined && this.#isOwn(desired, live, cause.primary) ? live : undefined;
  }

  delete(target: WriteTarget, live: KubernetesObject, options?: Deletion): Promise<boolean> {
    return this.#sender.delete(target, live, options);
  }

  /**
   * Checks that an object may be deleted to recreate it with another value of an immutable field, and returns how to delete it. Throws if the API
   * server would reject the creation, or if the object has been recreated for the same desired state before.
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
      // The API server checks the name last, so it accepts the object itself.
      if (!isApiError(problem, 409)) throw fail(`it could not be created again: ${messageOf(problem)}`);
    }
    if (this.#replaced.size >= MOST_BLOCKED) this.#replaced.clear();
    this.#replaced.set(id, digest);
    const text = `deleting ${describeObject(definition, desired.metadata)} to create it again (onImmutable: recreate): ${messageOf(error)}`;
    cause.logger?.info({ dependent: cause.dependent }, text);
    return { cause, propagationPolicy: propagationOf(definition) };
  }

  /** Links an object to its primary as the desired object is, and changes no other field. */
  async tie(target: WriteTarget, live: DecodedResource, options: TieOptions): Promise<DecodedResource> {
    const { desired, cause, isFiltered = true } = options;
    if (hasLink(live.object.metadata, desired)) return live;
    const { uid, resourceVersion } = live.object.metadata;
    const { ownerReferences: wanted = [], ...link } = linkOf(desired);
    // A merge patch replaces the whole list, so it is locked on the version that was read.
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

  /** Adds a finalizer to an object and changes no other field: the object may be another client's. */
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
      // Another client may add the first finalizer at the same time, so that patch is locked; it differs each time by its version.
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

  /** Removes a finalizer from an object and changes no other field. */
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

  /** Releases an object: removes its link to a primary by a JSON patch, which changes neither other fields nor their managers. */
  async untie(target: WriteTarget, live: DecodedResource, cause: PrimaryCause): Promise<void> {
    await this.#takeOff(target, live, cause);
    this.#sender.forget(target, live.object, cause);
  }

  /** Removes the owner references of a primary from an object that annotations link to it. */
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

  // The object exists, but the watch does not show it: the response to its creation was lost, it lacks the label, or another client created it.
  // Returns undefined if there is none.
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
      // The objects of deleted primaries would stay in the set.
      if (this.#blocked.size >= MOST_BLOCKED) this.#blocked.clear();
      this.#blocked.add(id);
      throw error;
    }
    target.cache.put(live);
    const isTerminating = live.object.metadata.deletionTimestamp !== undefined;
    if (!isTerminating && !isLeft) return { kind: "unseen", entry: live, isForeign: !isOwn };
    // An apply of the link alone would remove the fields that the operator applied before. Another client may have changed the object in the
    // meantime, so the event of this write is not filtered.
    const entry = await this.tie(target, live, { desired: metadata, cause, isFiltered: false });
    return { kind: isTerminating ? "terminating" : entry === live ? "unchanged" : "updated", entry };
  }

  // Linked to the same primary, or linked to none and marked as ours, applied by us, or written by our PUT.
  #isOwn(desired: Partial<ObjectMeta>, live: DecodedResource, primary?: KubernetesObject): boolean {
    const { metadata } = live.object;
    const isTied = desired.annotations?.[PRIMARY_NAME] !== undefined || (desired.ownerReferences ?? []).length > 0;
    // It may have the other kind of link, if the deletion of the dependent has changed, or another controller created it.
    if (isTied && sharesPrimary(primary === undefined ? desired : linksTo(primary), metadata)) return true;
    const isFree = otherOwnerOf(metadata, desired) === undefined;
    // Another client may have removed the link.
    const isUntied = isFree && sharesDependent(desired, metadata);
    if (isUntied && isOriginal(metadata) === true) return true;
    // An object that was released on purpose has lost its label, too.
    const isStripped = isFree && !lacksLabel(metadata, desired) && metadata.annotations?.[DEPENDENT_NAME] === undefined;
    // A copy of the object has the annotation of the PUT as well, but also the name of the dependent.
    if (isStripped && metadata.annotations?.[LAST_STATED] !== undefined && isOriginal(metadata) !== false) return true;
    return (!isTied || isUntied || isStripped) && this.#sender.matcher.ownedFields(live, "object") !== undefined;
  }
}

// A recreated StatefulSet adopts the pods and claims of the former one. For other kinds, nothing of the former object may run beside the new one.
function propagationOf({ apiVersion, kind }: ResourceDefinition): "Foreground" | "Orphan" {
  return kind === "StatefulSet" && apiVersion.startsWith("apps/") ? "Orphan" : "Foreground";
}

function idOf({ definition }: WriteTarget, metadata: ObjectBody["metadata"]): string {
  return `${definition.group}/${definition.plural}/${keyOf(metadata)}`;
}

// The controller would not find an object without its link, so it would neither write nor delete it.
function checkLink({ definition }: WriteTarget, desired: ObjectBody["metadata"], { object }: DecodedResource): void {
  const missing = missingLink(object.metadata, desired);
  if (missing.length === 0 || object.metadata.deletionTimestamp !== undefined) return;
  throw new Error(
    `${describeObject(definition, desired)} was stored without ${missing.join(", ")}: an admission policy or ` +
      "webhook removed it. Exempt the object; otherwise the operator can neither find it nor delete it with its primary",
  );
}

/** Returns the operations that remove the references to an owner from an object, with its label and annotations unless `keepsLink` is set. */
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
  // From the last to the first, because a removal shifts the indexes after it.
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
  // Without the conflict of the creation as its cause, which would only confuse.
  const fail = (problem: string) => new BlockedError(`${object} ${problem}`);
  const isTerminating = live.metadata.deletionTimestamp !== undefined;
  // No watch event enqueues the primary when an object that is not linked to it is deleted.
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
