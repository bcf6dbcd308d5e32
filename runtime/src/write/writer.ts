import { BlockedError, isApiError, RetryAfterError, type ApiError } from "../base/errors.js";
import {
  describeObject,
  keyOf,
  type JsonPatchOperation,
  type KubernetesObject,
  type ObjectMeta,
} from "../base/kubernetes-object.js";
import {
  CONTROLLER_LABEL,
  DEPENDENT_NAME,
  hasLink,
  isOriginal,
  isOwnedBy,
  lacksLabel,
  LINK_ANNOTATIONS,
  linkOf,
  linksTo,
  missingLink,
  otherOwnerOf,
  PRIMARY_NAME,
  sharesDependent,
  sharesPrimary,
} from "../base/primary-link.js";
import type { DecodedResource } from "../base/decoded-resource.js";
import { messageOf } from "../base/logger.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import { applyMethod } from "./apply.js";
import { LAST_STATED } from "./last-stated.js";
import { mergedMetadata, putMethod } from "./put.js";
import { checkReleased } from "./released-fields.js";
import type { WriteTarget } from "./send/apply-matcher.js";
import { onLatest } from "./send/on-latest.js";
import {
  locked,
  planCreate,
  planJsonPatch,
  planMergePatch,
  uidTest,
  withEncodedData,
  withoutStatus,
  type Sending,
  type Stated,
} from "./send/plan.js";
import { createPostponedError, type PrimaryCause } from "./send/postponed-write.js";
import type { DeletionSending, Sender } from "./send/send.js";
import { digestOf } from "./send/write-loops.js";
import type { ChangeOptions, WriteMethod, Written } from "./write-method.js";

const LOOK_AGAIN_AFTER_MS = 10_000;
const MOST_BLOCKED = 1_000;

/** What is known of an object that is written, and what may be done to it. */
export interface ApplyOptions extends Omit<ChangeOptions, "live"> {
  /** Its state, if it exists and may be written. */
  readonly live: DecodedResource | undefined;
  /** Decides what to do with an object of the name that does not belong to the same primary. Default: `refuse` */
  readonly existing?: ((live: KubernetesObject) => Promise<"refuse" | "adopt">) | undefined;
  /** Whether an existing object keeps its content, and is only linked to the primary. */
  readonly isLeft?: boolean;
}

/** An object that is deleted to create it again, and why. */
interface Replacement {
  readonly cause: PrimaryCause;
  readonly error: ApiError;
}

type Tie = Pick<Sending, "cause" | "isFiltered"> & { readonly desired: Stated["metadata"] };
type Removal = Pick<Sending, "isUrgent"> & { readonly cause: PrimaryCause; readonly keepsLink?: boolean };

/** Writes objects by server-side apply, or by POST and PUT, and only those that are not as desired already. */
export class Writer {
  readonly #sender: Sender;
  readonly #method: WriteMethod;
  /** The objects that were in the way of a creation when it was tried last. */
  readonly #blocked = new Set<string>();
  /** Digests of the content for which objects were deleted last to create them again. */
  readonly #replaced = new Map<string, string>();

  constructor(sender: Sender, { serverSideApply = true }: { serverSideApply?: boolean } = {}) {
    this.#sender = sender;
    this.#method = serverSideApply ? applyMethod(sender) : putMethod(sender);
  }

  /** Makes an object as desired. The creation of one that exists after all fails if it is not of this primary and not to be adopted. */
  async apply(target: WriteTarget, stated: Stated, options: ApplyOptions): Promise<Written> {
    const desired = withoutStatus(target.definition, withEncodedData(target.definition, stated));
    target.cache.requireWhole(keyOf(desired.metadata));
    checkReleased(target, desired, options.released);
    const written = await this.#write(target, desired, options);
    if (written.kind !== "postponed" && written.kind !== "unseen") checkLink(target, desired.metadata, written.entry);
    return written;
  }

  async #write(target: WriteTarget, desired: Stated, options: ApplyOptions): Promise<Written> {
    const { live, cause } = options;
    const changed = live && (await this.#method.change(target, desired, Object.assign({}, options, { live })));
    if (changed !== undefined) return changed;
    // One GET tells whether it is still in the way.
    const isBlocked = live === undefined && this.#blocked.has(idOf(target, desired.metadata));
    const resumed = isBlocked ? await this.#resume(target, desired, options) : undefined;
    if (resumed !== undefined) return resumed;
    try {
      const sent = await this.#method.create(target, desired, cause);
      // A postponed change leaves the object as it is, but a missing object has to be waited for.
      if (sent.kind === "postponed") throw createPostponedError(sent.postponed);
      return sent;
    } catch (error) {
      if (!isApiError(error, 409)) throw error;
      const written = await this.#resume(target, desired, options);
      if (written === undefined) throw error;
      return written;
    }
  }

  /** Reads an object by its name, which the watch may not show; undefined if there is none that belongs to the primary. */
  async findOwn(target: WriteTarget, desired: Stated["metadata"], cause: PrimaryCause) {
    const live = await this.#sender.read(target, desired, cause.signal);
    return live !== undefined && this.#isOwn(desired, live, cause.primary) ? live : undefined;
  }

  delete(target: WriteTarget, live: KubernetesObject, options?: DeletionSending): Promise<boolean> {
    return this.#sender.delete(target, live, options);
  }

  /**
   * Checks that an object which an immutable field keeps from becoming as desired may be deleted to create it again, and returns how to delete it.
   * Throws if the desired object could not be created, or if the object was deleted for the same content before.
   */
  async checkReplacement(target: WriteTarget, stated: Stated, { cause, error }: Replacement): Promise<DeletionSending> {
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
      await this.#sender.dryRun({ target, plan: planCreate(definition, desired), cause });
    } catch (problem) {
      // The name is checked last: the object itself would be accepted.
      if (!isApiError(problem, 409)) throw fail(`it could not be created again: ${messageOf(problem)}`);
    }
    if (this.#replaced.size >= MOST_BLOCKED) this.#replaced.clear();
    this.#replaced.set(id, digest);
    const text = `deleting ${describeObject(definition, desired.metadata)} to create it again (onImmutable: recreate): ${messageOf(error)}`;
    cause.logger?.info({ dependent: cause.dependent }, text);
    return { cause, propagationPolicy: propagationOf(definition) };
  }

  /** Ties an object to its primary as a desired one is, and changes nothing else of it. */
  async tie(target: WriteTarget, live: DecodedResource, { desired, ...sending }: Tie): Promise<DecodedResource> {
    if (hasLink(live.object.metadata, desired)) return live;
    const { uid, resourceVersion } = live.object.metadata;
    const { ownerReferences: wanted = [], ...link } = linkOf(desired);
    // A merge patch replaces the whole list, so nobody else may have changed it.
    const hasOwners = wanted.every((owner) => isOwnedBy(live.object.metadata, owner));
    const { ownerReferences } = mergedMetadata(live.object.metadata, desired);
    const metadata = { ...link, uid, ...(!hasOwners && { ownerReferences, resourceVersion }) };
    const plan = planMergePatch({ metadata }, false);
    const sent = await this.#sender.send({ target, plan, before: live, isUrgent: true, ...sending });
    if (sent.kind === "postponed") return live;
    checkLink(target, desired, sent.entry);
    return sent.entry;
  }

  /** Puts a finalizer on an object and changes nothing else of it: the object may be another client's. */
  async hold(target: WriteTarget, live: DecodedResource, finalizer: string, cause: PrimaryCause): Promise<void> {
    const hold = async (before: DecodedResource) => {
      const { uid, finalizers = [], deletionTimestamp } = before.object.metadata;
      if (deletionTimestamp !== undefined || finalizers.includes(finalizer)) return;
      const path = "/metadata/finalizers";
      const isFirst = finalizers.length === 0;
      const addition: JsonPatchOperation = isFirst
        ? { op: "add", path, value: [finalizer] }
        : { op: "add", path: `${path}/-`, value: finalizer };
      const plan = planJsonPatch(before.object, [uidTest(uid), addition], false);
      // Another client may add the first finalizer at the same time.
      const sending = { target, plan: isFirst ? locked(plan) : plan, before, cause, isUrgent: true };
      const sent = await this.#sender.send(sending);
      if (sent.kind === "postponed" || sent.entry.object.metadata.finalizers?.includes(finalizer) === true) return;
      throw new Error(
        `${describeObject(target.definition, before.object.metadata)} was stored without finalizer "${finalizer}", which holds it for the cleanup of ` +
          "its primary: an admission policy or webhook removed it; exempt the object",
      );
    };
    await onLatest(live, hold, { sender: this.#sender, target });
  }

  /** Takes a finalizer off an object and changes nothing else of it. */
  async release(target: WriteTarget, live: DecodedResource, finalizer: string, cause: PrimaryCause): Promise<void> {
    const release = async (before: DecodedResource) => {
      const { uid, finalizers = [] } = before.object.metadata;
      const index = finalizers.indexOf(finalizer);
      if (index === -1) return;
      const path = `/metadata/finalizers/${index}`;
      const operations: JsonPatchOperation[] = [
        uidTest(uid),
        { op: "test", path, value: finalizer },
        { op: "remove", path },
      ];
      const plan = planJsonPatch(before.object, operations, false);
      await this.#sender.send({ target, plan, before, cause, isUrgent: true });
    };
    await onLatest(live, release, { sender: this.#sender, target });
  }

  /** Takes off an object what ties it to a primary: by a JSON patch, so that nothing else of it changes, nor who manages it. */
  async untie(target: WriteTarget, live: DecodedResource, cause: PrimaryCause): Promise<void> {
    await this.#takeOff(target, live, { cause, isUrgent: true });
    this.#sender.forget(target, live.object, cause);
  }

  /** Takes the owner references of a primary off an object, which something else ties to it. */
  async disown(target: WriteTarget, live: DecodedResource, cause: PrimaryCause): Promise<void> {
    await this.#takeOff(target, live, { cause, keepsLink: true });
  }

  async #takeOff(target: WriteTarget, live: DecodedResource, { keepsLink, ...sending }: Removal): Promise<void> {
    const { uid } = sending.cause.primary.metadata;
    const takeOff = async (before: DecodedResource) => {
      const operations = untyingOperations(before.object, uid, keepsLink);
      if (operations.length === 0) return;
      const plan = planJsonPatch(before.object, operations, false);
      await this.#sender.send({ target, plan, before, ...sending });
    };
    await onLatest(live, takeOff, { sender: this.#sender, target });
  }

  // The object exists, but the watch does not show it: the response to its creation was lost, it lacks the label, or another client created it.
  // Returns undefined if there is none.
  async #resume(target: WriteTarget, desired: Stated, options: ApplyOptions): Promise<Written | undefined> {
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
      // Those of primaries that are gone are forgotten.
      if (this.#blocked.size >= MOST_BLOCKED) this.#blocked.clear();
      this.#blocked.add(id);
      throw error;
    }
    target.cache.put(live);
    const isTerminating = live.object.metadata.deletionTimestamp !== undefined;
    if (!isTerminating && !isLeft) return { kind: "unseen", entry: live, isForeign: !isOwn };
    // Not by an apply: one that states the link alone would remove the fields that the operator applied before. Another client may have changed
    // the object unseen, so the event of this write is not filtered.
    const entry = await this.tie(target, live, { desired: metadata, cause, isFiltered: false });
    return { kind: isTerminating ? "terminating" : entry === live ? "unchanged" : "updated", entry };
  }

  // Tied to the same primary; what is tied to none is ours if it says so of itself, or if we have applied it as this dependent or
  // written it by PUT.
  #isOwn(desired: Partial<ObjectMeta>, live: DecodedResource, primary?: KubernetesObject): boolean {
    const { metadata } = live.object;
    const isTied = desired.annotations?.[PRIMARY_NAME] !== undefined || (desired.ownerReferences ?? []).length > 0;
    // Before its deletion changed, or in another controller, it may have been tied in the other way.
    if (isTied && sharesPrimary(primary === undefined ? desired : linksTo(primary), metadata)) return true;
    const isFree = otherOwnerOf(metadata, desired) === undefined;
    // Somebody may have taken off what tied it.
    const isUntied = isFree && sharesDependent(desired, metadata);
    if (isUntied && isOriginal(metadata) === true) return true;
    // With all other annotations: what is untied on purpose has no label either.
    const isStripped = isFree && !lacksLabel(metadata, desired) && metadata.annotations?.[DEPENDENT_NAME] === undefined;
    // A copy of the object has the annotation of the PUT, too, beside the name of the dependent.
    if (isStripped && metadata.annotations?.[LAST_STATED] !== undefined && isOriginal(metadata) !== false) return true;
    return (!isTied || isUntied || isStripped) && this.#sender.matcher.ownedFields(live, "object") !== undefined;
  }
}

// The Pods of a StatefulSet, with their claims, are adopted by the next one. Elsewhere nothing of the former object may run beside the new one.
function propagationOf({ apiVersion, kind }: ResourceDefinition): "Foreground" | "Orphan" {
  return kind === "StatefulSet" && apiVersion.startsWith("apps/") ? "Orphan" : "Foreground";
}

function idOf({ definition }: WriteTarget, metadata: Stated["metadata"]): string {
  return `${definition.group}/${definition.plural}/${keyOf(metadata)}`;
}

// Nothing would find such an object, so nobody would write or delete it.
function checkLink({ definition }: WriteTarget, desired: Stated["metadata"], { object }: DecodedResource): void {
  const missing = missingLink(object.metadata, desired);
  if (missing.length === 0 || object.metadata.deletionTimestamp !== undefined) return;
  throw new Error(
    `${describeObject(definition, desired)} was stored without what ties it to its primary (${missing.join(", ")}): an admission policy or ` +
      "webhook takes it off; exempt the object from it. Else the operator does not find the object, and leaves it when its primary is deleted",
  );
}

/** Returns the operations that take owner references of an owner off an object, and its label and annotations unless it `keepsLink`. */
export function untyingOperations(
  { metadata }: KubernetesObject,
  owner: string | undefined,
  keepsLink = false,
): JsonPatchOperation[] {
  const { uid, ownerReferences = [] } = metadata;
  const removal = (path: string, test: JsonPatchOperation): JsonPatchOperation[] => [test, { op: "remove", path }];
  const removedFrom = (member: "annotations" | "labels", name: string) => {
    const value = metadata[member]?.[name];
    const path = `/metadata/${member}/${name.replaceAll("/", "~1")}`;
    return value === undefined ? [] : removal(path, { op: "test", path, value });
  };
  const annotations = [...LINK_ANNOTATIONS, LAST_STATED].flatMap((name) => removedFrom("annotations", name));
  const links = keepsLink ? [] : [...annotations, ...removedFrom("labels", CONTROLLER_LABEL)];
  // From the last to the first, so that the places of those before stay right.
  const owners = [...ownerReferences.entries()].reverse().flatMap(([index, each]) => {
    const path = `/metadata/ownerReferences/${index}`;
    return each.uid === owner ? removal(path, { op: "test", path: `${path}/uid`, value: owner }) : [];
  });
  const operations = [...links, ...owners];
  // The object of the name may be another one by now.
  return operations.length === 0 ? [] : [uidTest(uid), ...operations];
}

/** Throws if an object must not be taken over: a lost answer or a late watch hid it, or it is somebody else's. */
export function checkAdoption(desired: Stated["metadata"], live: KubernetesObject, policy?: "refuse" | "adopt"): void {
  const object = describeObject(live, desired);
  // The conflict that told of it is the runtime's own doing, and would only confuse.
  const fail = (problem: string) => new BlockedError(`${object} ${problem}`);
  const isTerminating = live.metadata.deletionTimestamp !== undefined;
  // It is tied to nobody who would be told when it is gone.
  const later = (problem: string) => new RetryAfterError(`${object} ${problem}`, LOOK_AGAIN_AFTER_MS);
  const strange = "exists already and does not belong to this primary";
  if (policy !== "adopt" && isTerminating)
    throw later(`${strange}; it is being deleted: wait for that, or give the dependent another name`);
  const other = otherOwnerOf(live.metadata, desired);
  if (other !== undefined) {
    const what = policy === "adopt" ? "cannot be adopted: it" : "exists already and";
    throw fail(`${what} belongs to ${other}; delete it there, or give the dependent another name`);
  }
  const advice = "delete it, let the dependent adopt it (existing: adopt), or give the dependent another name";
  if (policy !== "adopt") throw fail(`${strange}; ${advice}`);
  if (isTerminating) throw later("cannot be adopted: it is being deleted; it is created when it is gone");
}
