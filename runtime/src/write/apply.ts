import { isApiError } from "../base/errors.js";
import { keyOf, type KubernetesObject, type ObjectMeta, type ObjectRef } from "../base/kubernetes-object.js";
import type { ApiClient } from "../client/api-client.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import { PRIMARY_NAME, otherOwnerOf, sharesDependent, sharesPrimary } from "../base/primary-link.js";
import type { Applied } from "../client/write-request.js";
import { ApplyMatcher, type Application } from "./apply-matcher.js";
import { checkAdoption } from "./existing-object.js";
import { writeGuarded } from "./guarded-write.js";
import { LoopGuard } from "./loop-guard.js";
import type { Verdict } from "../match/match.js";
import type {
  ApplyOptions,
  DeletePolicy,
  Mismatch,
  ObjectWriter,
  StatedObject,
  WriteTarget,
  Written,
} from "./object-writer.js";
import { appliedFinalizers } from "../match/owned-fields.js";
import { deleteObject, untieObject } from "./remove.js";
import { withEncodedData } from "./secret-data.js";
import { writeThrough } from "./write-through.js";

// An apply that states a version meets a conflict if the object exists, and creates it if not: so nothing of others is taken over.
const VERSION_OF_NOTHING = "1";

/** Writes objects by server-side apply, and only those that are not as desired already. */
export class Writer implements ObjectWriter {
  readonly #client: () => ApiClient;
  readonly #fieldManager: string;
  /** All controllers of the operator: they share what the answers bring. */
  readonly #fieldManagers: Iterable<string>;
  readonly #matcher: ApplyMatcher;
  readonly #loops = new LoopGuard();

  constructor(
    client: ApiClient | (() => ApiClient),
    fieldManager: string,
    fieldManagers: Iterable<string> = [fieldManager],
  ) {
    this.#client = typeof client === "function" ? client : () => client;
    this.#fieldManager = fieldManager;
    this.#fieldManagers = fieldManagers;
    this.#matcher = new ApplyMatcher(fieldManager);
  }

  /** Makes an object as desired, as a writer does; one that somebody undoes each time is left alone for a growing pause. */
  async apply(target: WriteTarget, stated: StatedObject, options: ApplyOptions): Promise<Written> {
    const { live, isForced = false } = options;
    const desired = withEncodedData(target.definition, stated);
    target.cache.requireWhole(keyOf(desired.metadata));
    const application: Application = { target, part: "object", desired };
    const guarded = { definition: target.definition, desired };
    const verdict: Verdict = isForced && live !== undefined ? DIFFERENT : this.#matcher.compare(application, live);
    if (verdict.matches) {
      this.#loops.noteMatch(guarded);
      return { kind: "unchanged", entry: live! };
    }
    return writeGuarded(this.#loops, {
      ...guarded,
      live,
      verdict,
      send: () => this.#write(application, verdict, options),
      differences: (limit) => this.#matcher.differences(application, live, limit),
    });
  }

  /**
   * Applies the status of an object through its subresource, if it is not as desired already. Where there is no subresource, the uid
   * keeps it from making an object anew that is gone.
   */
  async applyStatus(target: WriteTarget, status: object, live: DecodedResource): Promise<Written> {
    const { name, namespace, uid, finalizers } = live.object.metadata;
    target.cache.requireWhole(keyOf({ name, namespace }));
    const part = target.definition.hasStatusSubresource ? "status" : "object";
    // Without the subresource the status is applied with the object, and what was applied of that before has to be repeated.
    const applied = part === "object" ? appliedFinalizers(this.#matcher.ownedFields(live, part)?.fieldsV1 ?? "") : [];
    const ownFinalizers = applied.filter((finalizer) => finalizers?.includes(finalizer));
    const ref = { name, uid, ...(namespace === undefined ? {} : { namespace }) };
    const metadata = { ...ref, ...(ownFinalizers.length > 0 ? { finalizers: ownFinalizers } : {}) };
    const application: Application = { target, part, desired: { metadata, status } as Application["desired"] };
    const verdict = this.#matcher.compare(application, live);
    if (verdict.matches) return { kind: "unchanged", entry: live };
    return this.#send(application, { live, verdict });
  }

  async delete(target: WriteTarget, live: KubernetesObject, policy: DeletePolicy = {}): Promise<boolean> {
    const options = { ...policy, client: this.#client(), fieldManagers: this.#fieldManagers };
    const isGone = await deleteObject(target, live, options);
    this.#matcher.forget(target, live.metadata);
    this.#loops.forget(target.definition, live.metadata);
    return isGone;
  }

  async untie(target: WriteTarget, live: DecodedResource, primary: KubernetesObject): Promise<void> {
    const options = { fieldManager: this.#fieldManager, fieldManagers: this.#fieldManagers };
    await untieObject(target, live, { ...options, client: this.#client(), primary });
    this.#matcher.forget(target, live.object.metadata);
    this.#loops.forget(target.definition, live.object.metadata);
  }

  async #write(application: Application, verdict: Mismatch, options: ApplyOptions): Promise<Written> {
    const { live, signal } = options;
    if (live !== undefined) return this.#send(application, { live, verdict, signal });
    try {
      return await this.#send(application, { live, verdict, signal });
    } catch (error) {
      if (!isApiError(error, 409)) throw error;
      return this.#resume(application, { conflict: error, options });
    }
  }

  async #send(application: Application, options: Sending): Promise<Written> {
    const { live, verdict, signal } = options;
    const { target, part, desired } = application;
    const { definition, cache } = target;
    const body = live === undefined ? withVersion(desired, VERSION_OF_NOTHING) : desired;
    const { wasCreated, ...entry } = await writeThrough(cache, {
      key: keyOf(desired.metadata),
      isFiltered: true,
      send: (findKnown): Promise<Applied> =>
        this.#client().apply({ definition }, body, {
          fieldManager: this.#fieldManager,
          fieldManagers: this.#fieldManagers,
          findKnown,
          ...(part === "status" ? { subresource: "status" } : {}),
          ...(signal === undefined ? {} : { signal }),
        }),
      before: live,
      isOwn: (answer, before) => this.#matcher.isOwn(application, before, answer),
    });
    this.#matcher.remember(application, entry);
    return { kind: wasCreated ? "created" : "updated", entry, verdict };
  }

  // There is an object that the watch has not brought yet. It is ours if the answer to its creation was lost, or after a restart.
  async #resume(
    application: Application,
    { conflict, options }: { conflict: Error; options: ApplyOptions },
  ): Promise<Written> {
    const { target, desired } = application;
    const { definition, cache } = target;
    const { name, namespace } = desired.metadata;
    const live = await this.#client().getEntry({ definition }, { name, namespace }, this.#fieldManagers);
    if (live === undefined) throw conflict;
    const isOwn = this.#isOwn(desired.metadata, live, options);
    if (!isOwn) checkAdoption({ definition, desired: desired.metadata, live: live.object }, options.existing);
    cache.put(live);
    if (live.object.metadata.deletionTimestamp !== undefined) return { kind: "terminating", entry: live };
    if (isOwn && options.isOnlyCreated === true) return { kind: "unchanged", entry: live };
    const wanted = isOwn ? application : { ...application, desired: options.adoption ?? desired };
    const verdict = this.#matcher.compare(wanted, live);
    if (verdict.matches) return { kind: "created", entry: live };
    return this.#send(wanted, { live, verdict, signal: options.signal });
  }

  // Tied to the same primary; what is tied to none is ours if we have applied it, and of a dependent if we did as this one.
  #isOwn(desired: Partial<ObjectMeta>, live: DecodedResource, { adoption }: ApplyOptions): boolean {
    const { metadata } = live.object;
    const isTied = desired.annotations?.[PRIMARY_NAME] !== undefined || (desired.ownerReferences ?? []).length > 0;
    if (isTied && sharesPrimary(desired, metadata)) return true;
    // Somebody may have taken off what tied it. To tie what is only created would be to state its content, or to give that up.
    const isUntied = sharesDependent(desired, metadata) && otherOwnerOf(metadata, desired) === undefined;
    if (isTied && (adoption !== undefined || !isUntied)) return false;
    return this.#matcher.ownedFields(live, "object") !== undefined;
  }
}

const DIFFERENT = { matches: false, path: "", reason: "is not as desired, as its matcher says" } as const;

interface Sending {
  readonly live: DecodedResource | undefined;
  readonly verdict: Mismatch;
  readonly signal?: AbortSignal | undefined;
}

function withVersion<Desired extends { readonly metadata: ObjectRef }>(
  desired: Desired,
  resourceVersion: string,
): Desired {
  return { ...desired, metadata: { ...desired.metadata, resourceVersion } };
}
