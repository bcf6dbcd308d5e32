import { isApiError, RetryAfterError } from "../base/errors.js";
import { keyOf, type KubernetesObject, type ObjectMeta, type ObjectRef } from "../base/kubernetes-object.js";
import type { ApiClient } from "../cluster/api-client.js";
import type { DecodedResource } from "../cluster/decode-resource.js";
import { PRIMARY_NAME, otherOwnerOf, sharesDependent, sharesPrimary } from "../cluster/primary-link.js";
import { describeObject } from "../cluster/resource-path.js";
import type { Applied } from "../cluster/write-request.js";
import { ApplyMatcher, type Application, type WriteTarget } from "./apply-matcher.js";
import { checkAdoption, type ExistingPolicy } from "./existing-object.js";
import { LoopGuard, type LoopFinding } from "./loop-guard.js";
import type { Verdict } from "./match.js";
import { appliedFinalizers } from "./owned-fields.js";
import { deleteObject, untieObject } from "./remove.js";
import { withEncodedData } from "./secret-data.js";
import { writeThrough } from "./write-through.js";

export type { WriteTarget } from "./apply-matcher.js";

/** What a write did; nothing is written while an object is being deleted. */
export interface Written {
  readonly kind: "created" | "updated" | "unchanged" | "terminating";
  readonly entry: DecodedResource;
  /** Why it was not a match; absent for an unchanged object. */
  readonly verdict?: Mismatch;
  /** The loop that the write belongs to: the same was written before, and undone each time. */
  readonly loop?: LoopFinding;
  /** How long the object is left as it is although it is not as desired, because it is in a loop. */
  readonly postponedMs?: number;
}

/** An object as it is desired; the kind is that of the target. */
export type StatedObject = object & { readonly metadata: ObjectRef & Partial<ObjectMeta> };

/** What is known of an object that is written, and what may be done to it. */
export interface ApplyOptions {
  /** Its state, if it exists and may be written. */
  readonly live: DecodedResource | undefined;
  /** What to do about one that exists and does not belong to the same primary: that is an error unless told otherwise. */
  readonly existing?: ExistingPolicy | undefined;
  /** What is written to such an object, in place of what is desired. */
  readonly adoption?: StatedObject | undefined;
  /** Whether it is written without being compared: somebody else found it different. */
  readonly isForced?: boolean;
  readonly signal?: AbortSignal;
}

/** Writes objects, and only those that are not as desired already. */
export interface ObjectWriter {
  /**
   * Makes an object as desired. Without a live one it is created, which fails if there is one after all that is not of this primary and
   * must not be adopted.
   */
  apply(target: WriteTarget, stated: StatedObject, options: ApplyOptions): Promise<Written>;
  /** Deletes an object, unless it was made anew meanwhile; tells whether it is gone at once. */
  delete(target: WriteTarget, live: KubernetesObject): Promise<boolean>;
  /** Takes off an object what ties it to a primary, and leaves it alone otherwise. */
  untie(target: WriteTarget, live: DecodedResource, primary: KubernetesObject): Promise<void>;
}

/** With what a writer writes. */
export interface WriterOptions {
  /** Returns the client of the cluster, which may be there only while something is watched. */
  readonly client: () => ApiClient;
  readonly fieldManager: string;
  /** All that the operator writes with: they share what the answers bring. */
  readonly fieldManagers: Iterable<string>;
}

type Mismatch = Verdict & { readonly matches: false };

// An apply that states a version meets a conflict if the object exists, and creates it if not: so nothing of others is taken over.
const VERSION_OF_NOTHING = "1";

// How much of what is undone in a loop is named.
const NAMED_DIFFERENCES = 10;

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
    const postponedMs = this.#loops.pauseOf(guarded);
    if (postponedMs > 0) return postpone(application, { live, verdict, postponedMs });
    const written = await this.#write(application, verdict, options);
    const loop = written.kind === "unchanged" ? undefined : this.#loops.noteWrite(guarded);
    if (loop === undefined) return written;
    return {
      ...written,
      loop: { ...loop, differences: this.#matcher.differences(application, live, NAMED_DIFFERENCES) },
    };
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

  async delete(target: WriteTarget, live: KubernetesObject): Promise<boolean> {
    const isGone = await deleteObject(target, live, { client: this.#client(), fieldManagers: this.#fieldManagers });
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

// What is there is left as it is, and nothing waits for it; what is not there has to be waited for.
function postpone(
  { target, desired }: Application,
  { live, verdict, postponedMs }: { live: DecodedResource | undefined; verdict: Mismatch; postponedMs: number },
): Written {
  if (live !== undefined) return { kind: "unchanged", entry: live, verdict, postponedMs };
  const object = describeObject(target.definition, desired.metadata);
  const message = `${object} is deleted again and again; it is created again in ${Math.ceil(postponedMs / 1000)} s`;
  throw new RetryAfterError(message, postponedMs);
}

function withVersion<Desired extends { readonly metadata: ObjectRef }>(
  desired: Desired,
  resourceVersion: string,
): Desired {
  return { ...desired, metadata: { ...desired.metadata, resourceVersion } };
}
