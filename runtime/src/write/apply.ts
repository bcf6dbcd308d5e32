import { isApiError } from "../base/errors.js";
import { describeObject, keyOf, type KubernetesObject, type ObjectMeta } from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import { PRIMARY_NAME, otherOwnerOf, sharesDependent, sharesPrimary } from "../base/primary-link.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import type { Verdict } from "../match/match.js";
import { appliedFinalizers } from "../match/owned-fields.js";
import { checkAdoption } from "./existing-object.js";
import { clearingPatch } from "./foreign-entries.js";
import type {
  ApplyOptions,
  Mismatch,
  ObjectWriter,
  StatedObject,
  UntieOptions,
  WriteTarget,
  Written,
} from "./object-writer.js";
import { applicationOf, planApply, planJsonPatch, type PlannedWrite, type Stated } from "./send/plan.js";
import { createPostponedError, type WriteCause } from "./send/postponed-write.js";
import { untieObject } from "./remove.js";
import { restoreLabel } from "./restore-label.js";
import { withEncodedData } from "./send/secret-data.js";
import { Sender, type DeletionSending, type SenderOptions } from "./send/send.js";

// An apply that states a version meets a conflict if the object exists, and creates it if not: so nothing of others is taken over.
const VERSION_OF_NOTHING = "1";

const DIFFERENT = { matches: false, path: "", reason: "is not as desired, as its matcher says" } as const;

/** Writes objects by server-side apply, and only those that are not as desired already. */
export class Writer implements ObjectWriter {
  readonly sender: Sender;

  constructor(options: SenderOptions) {
    this.sender = new Sender(options);
  }

  async apply(target: WriteTarget, stated: StatedObject, options: ApplyOptions): Promise<Written> {
    const { live, isForced = false } = options;
    target.cache.requireWhole(keyOf(stated.metadata));
    const plan = planApply(target.definition, withEncodedData(target.definition, stated), false);
    const verdict: Verdict = isForced && live !== undefined ? DIFFERENT : this.#compare(target, plan, live);
    if (verdict.matches) {
      this.sender.noteMatch(target, plan.ref);
      return { kind: "unchanged", entry: live! };
    }
    try {
      return await this.#send(target, plan, { ...options, verdict });
    } catch (error) {
      if (live !== undefined) return this.#clearAndSend(target, plan, { ...options, live, verdict, error });
      if (!isApiError(error, 409)) throw error;
      return this.#resume(target, plan, { conflict: error, options });
    }
  }

  /**
   * Applies the status of an object through its subresource, if it is not as desired already. Where there is no subresource, the uid
   * keeps it from making an object anew that is gone.
   */
  async applyStatus(
    target: WriteTarget,
    status: object,
    options: Pick<ApplyOptions, "cause"> & { readonly live: DecodedResource },
  ): Promise<Written> {
    const { live } = options;
    const { name, namespace, uid, finalizers } = live.object.metadata;
    const isPart = target.definition.hasStatusSubresource;
    target.cache.requireWhole(keyOf({ name, namespace }));
    // Without the subresource the status is applied with the object, and what was applied of that before has to be repeated.
    const applied = isPart ? [] : appliedFinalizers(this.sender.matcher.ownedFields(live, "object")?.fieldsV1 ?? "");
    const ownFinalizers = applied.filter((finalizer) => finalizers?.includes(finalizer));
    const ref = { name, uid, ...(namespace === undefined ? {} : { namespace }) };
    const metadata = { ...ref, ...(ownFinalizers.length > 0 ? { finalizers: ownFinalizers } : {}) };
    const plan = {
      ...planApply(target.definition, { metadata, status } as Stated, isPart),
      body: { metadata, status },
    };
    const verdict = this.#compare(target, plan, live);
    if (!verdict.matches) return this.#send(target, plan, { ...options, verdict });
    this.sender.noteMatch(target, plan.ref, isPart);
    return { kind: "unchanged", entry: live };
  }

  delete(target: WriteTarget, live: KubernetesObject, options?: DeletionSending): Promise<boolean> {
    return this.sender.delete(target, live, options);
  }

  untie(target: WriteTarget, live: DecodedResource, options: UntieOptions): Promise<void> {
    return untieObject(target, live, { ...options, sender: this.sender });
  }

  #compare(target: WriteTarget, plan: PlannedWrite, live: DecodedResource | undefined): Verdict {
    return this.sender.matcher.compare(applicationOf(target, plan)!, live);
  }

  async #send(target: WriteTarget, plan: PlannedWrite, options: Sending): Promise<Written> {
    const { live, verdict, cause, isUrgent = false } = options;
    const { matcher } = this.sender;
    const application = applicationOf(target, plan)!;
    const sent = await this.sender.send({
      target,
      plan: live === undefined ? withVersion(plan, VERSION_OF_NOTHING) : plan,
      before: live,
      cause,
      content: plan.body,
      isUrgent,
      differences: (limit) => matcher.differences(application, live, limit),
    });
    if (sent.kind !== "postponed") {
      matcher.remember(application, sent.entry);
      return { ...sent, verdict };
    }
    // What is there is left as it is; what is not there has to be waited for.
    if (live === undefined) throw createPostponedError(sent.postponed);
    return { ...sent, entry: live };
  }

  // Once: what is in the way again is refused again.
  async #clearAndSend(
    target: WriteTarget,
    plan: PlannedWrite,
    { error, ...options }: Sending & { readonly live: DecodedResource; readonly error: unknown },
  ): Promise<Written> {
    const { live, cause } = options;
    const change = clearingPatch(error, { target, desired: plan.body, live });
    if (change === undefined) throw error;
    const clearing = planJsonPatch(target.definition, live.object, { change, isStatus: false });
    const cleared = await this.sender.send({ target, plan: clearing, before: live, cause });
    if (cleared.kind === "postponed") throw error;
    const object = describeObject(target.definition, plan.ref);
    cause?.logger?.warn(
      { dependent: cause.dependent },
      `took list entries of others out of ${object}: ${messageOf(error)}`,
    );
    return this.#send(target, plan, { ...options, live: cleared.entry });
  }

  // There is an object that the watch has not brought yet. It is ours if the answer to its creation was lost, or after a restart.
  async #resume(
    target: WriteTarget,
    plan: PlannedWrite,
    { conflict, options }: { conflict: Error; options: ApplyOptions },
  ): Promise<Written> {
    const { definition, cache } = target;
    const { metadata } = plan.body as StatedObject;
    const live = await this.sender.read(target, metadata);
    if (live === undefined) throw conflict;
    const isOwn = this.#isOwn(metadata, live, options);
    if (!isOwn) checkAdoption({ definition, desired: metadata, live: live.object }, options.existing);
    cache.put(live);
    const isTerminating = live.object.metadata.deletionTimestamp !== undefined;
    if (isTerminating || (isOwn && options.isOnlyCreated === true)) {
      const { cause } = options;
      const entry = await restoreLabel(this.sender, target, { live, desired: metadata, cause });
      return { kind: isTerminating ? "terminating" : entry === live ? "unchanged" : "updated", entry };
    }
    const wanted = isOwn || options.adoption === undefined ? plan : planApply(definition, options.adoption, false);
    const verdict = this.#compare(target, wanted, live);
    if (verdict.matches) return { kind: "created", entry: live };
    return this.#send(target, wanted, { ...options, live, verdict });
  }

  // Tied to the same primary; what is tied to none is ours if we have applied it, and of a dependent if we did as this one.
  #isOwn(desired: Partial<ObjectMeta>, live: DecodedResource, { adoption }: ApplyOptions): boolean {
    const { metadata } = live.object;
    const isTied = desired.annotations?.[PRIMARY_NAME] !== undefined || (desired.ownerReferences ?? []).length > 0;
    if (isTied && sharesPrimary(desired, metadata)) return true;
    // Somebody may have taken off what tied it. To tie what is only created would be to state its content, or to give that up.
    const isUntied = sharesDependent(desired, metadata) && otherOwnerOf(metadata, desired) === undefined;
    if (isTied && (adoption !== undefined || !isUntied)) return false;
    return this.sender.matcher.ownedFields(live, "object") !== undefined;
  }
}

interface Sending {
  readonly live: DecodedResource | undefined;
  readonly verdict: Mismatch;
  readonly cause?: WriteCause | undefined;
  readonly isUrgent?: boolean;
}

function withVersion(plan: PlannedWrite, resourceVersion: string): PlannedWrite {
  const { metadata } = plan.body as StatedObject;
  return { ...plan, body: { ...plan.body, metadata: { ...metadata, resourceVersion } } };
}
