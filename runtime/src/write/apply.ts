import { isApiError, RetryAfterError } from "../base/errors.js";
import { keyOf, type KubernetesObject, type ObjectMeta, type ObjectRef } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { ApiClient } from "../cluster/api-client.js";
import type { DecodedResource } from "../cluster/decode-resource.js";
import { PRIMARY_NAME, PRIMARY_NAMESPACE, PRIMARY_TYPE } from "../cluster/primary-link.js";
import { describeObject } from "../cluster/resource-path.js";
import type { Applied } from "../cluster/write-request.js";
import { ApplyMatcher, type Application, type WriteTarget } from "./apply-matcher.js";
import { LoopGuard, type LoopFinding } from "./loop-guard.js";
import type { Verdict } from "./match.js";
import { appliedFinalizers } from "./owned-fields.js";
import { withEncodedData } from "./secret-data.js";
import { writeThrough } from "./write-through.js";

export type { WriteTarget } from "./apply-matcher.js";

/** What a write did. */
export interface Written {
  readonly kind: "created" | "updated" | "unchanged";
  readonly entry: DecodedResource;
  /** Why it was not a match; absent for an unchanged object. */
  readonly verdict?: Mismatch;
  /** The loop that the write belongs to: the same was written before, and undone each time. */
  readonly loop?: LoopFinding;
  /** How long the object is left as it is although it is not as desired, because it is in a loop. */
  readonly postponedMs?: number;
}

type Mismatch = Verdict & { readonly matches: false };

// An apply that states a version meets a conflict if the object exists, and creates it if not: so nothing of others is taken over.
const VERSION_OF_NOTHING = "1";

// How much of what is undone in a loop is named.
const NAMED_DIFFERENCES = 10;

/** Writes objects by server-side apply, and only those that are not as desired already. */
export class Writer {
  readonly #client: ApiClient;
  readonly #fieldManager: string;
  /** All controllers of the operator: they share what the answers bring. */
  readonly #fieldManagers: Iterable<string>;
  readonly #matcher: ApplyMatcher;
  readonly #loops = new LoopGuard();

  constructor(client: ApiClient, fieldManager: string, fieldManagers: Iterable<string> = [fieldManager]) {
    this.#client = client;
    this.#fieldManager = fieldManager;
    this.#fieldManagers = fieldManagers;
    this.#matcher = new ApplyMatcher(fieldManager);
  }

  /**
   * Makes an object as desired. `live` is its state if it exists and may be written; without one it is created, which fails if there
   * is one after all that is not of this primary. One that somebody undoes each time is left alone for a growing pause.
   */
  async apply(
    target: WriteTarget,
    stated: object & { metadata: ObjectRef },
    { live, signal }: { live: DecodedResource | undefined; signal?: AbortSignal },
  ): Promise<Written> {
    const desired = withEncodedData(target.definition, stated);
    target.cache.requireWhole(keyOf(desired.metadata));
    const application: Application = { target, part: "object", desired };
    const guarded = { definition: target.definition, desired };
    const verdict = this.#matcher.compare(application, live);
    if (verdict.matches) {
      this.#loops.noteMatch(guarded);
      return { kind: "unchanged", entry: live! };
    }
    const postponedMs = this.#loops.pauseOf(guarded);
    if (postponedMs > 0) return postpone(application, { live, verdict, postponedMs });
    const written = await this.#write(application, { live, verdict, signal });
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

  /** Deletes an object, unless it was made anew meanwhile; tells whether it is gone at once. */
  async delete(target: WriteTarget, live: KubernetesObject): Promise<boolean> {
    const { definition, cache } = target;
    const { name, namespace, uid } = live.metadata;
    try {
      const { isGone } = await this.#client.delete({ definition }, { name, namespace }, { uid });
      if (isGone && uid !== undefined) cache.removeOwn(keyOf(live.metadata), uid);
      this.#matcher.forget(target, live.metadata);
      this.#loops.forget(definition, live.metadata);
      return isGone;
    } catch (error) {
      // Another object has the name by now: ours is gone.
      if (isApiError(error, 409)) return true;
      throw error;
    }
  }

  async #write(application: Application, options: Sending): Promise<Written> {
    if (options.live !== undefined) return this.#send(application, options);
    try {
      return await this.#send(application, options);
    } catch (error) {
      if (!isApiError(error, 409)) throw error;
      return this.#resume(application, { conflict: error, signal: options.signal });
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
        this.#client.apply({ definition }, body, {
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
    { conflict, signal }: { conflict: Error; signal: AbortSignal | undefined },
  ): Promise<Written> {
    const { target, desired } = application;
    const { definition, cache } = target;
    const { name, namespace } = desired.metadata;
    const live = await this.#client.getEntry({ definition }, { name, namespace }, this.#fieldManagers);
    if (live === undefined) throw conflict;
    const wasApplied = this.#matcher.ownedFields(live, "object") !== undefined;
    if (!belongsTogether(desired.metadata, live.object.metadata, { isUnlinkedOurs: wasApplied }))
      throw alreadyExists(definition, desired.metadata, conflict);
    cache.put(live);
    const verdict = this.#matcher.compare(application, live);
    if (verdict.matches) return { kind: "created", entry: live };
    return this.#send(application, { live, verdict, signal });
  }
}

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

// Both are tied to the same primary, by an owner reference or by annotations.
function belongsTogether(
  desired: Partial<ObjectMeta>,
  live: ObjectMeta,
  { isUnlinkedOurs }: { isUnlinkedOurs: boolean },
): boolean {
  const owners = new Set(live.ownerReferences?.map(({ uid }) => uid));
  const link = [PRIMARY_NAME, PRIMARY_NAMESPACE, PRIMARY_TYPE];
  const isAnnotated = desired.annotations?.[PRIMARY_NAME] !== undefined;
  const isOwned = (desired.ownerReferences ?? []).length > 0;
  if (!isAnnotated && !isOwned) return isUnlinkedOurs;
  return (
    (isOwned && desired.ownerReferences!.some(({ uid }) => owners.has(uid))) ||
    (isAnnotated && link.every((name) => desired.annotations![name] === live.annotations?.[name]))
  );
}

function alreadyExists(definition: ResourceDefinition, ref: ObjectRef, cause: unknown): Error {
  const object = describeObject(definition, ref);
  return new Error(
    `${object} exists already and does not belong to this primary; delete it or give the dependent another name`,
    { cause },
  );
}
