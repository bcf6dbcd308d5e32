// The one place where a controller's writes leave: those of dependents, primaries, finalizers, status, external state and
// `context.resources`. A write that was given up is cancelled, and what it may have done counts as somebody else's change.
import { isApiError, type ConnectionError } from "../../base/errors.js";
import { keyOf, type KubernetesObject, type ObjectMeta } from "../../base/kubernetes-object.js";
import { kindNameOf } from "../../base/resource-definition.js";
import type { ApiClient } from "../../client/api-client.js";
import type { Applied } from "../../client/write-request.js";
import type { Clock } from "../../base/clock.js";
import type { DecodedResource } from "../../decode/decode-resource.js";
import type { Difference } from "../../match/match.js";
import { ApplyMatcher, type WriteTarget } from "./apply-matcher.js";
import { logChange } from "./log-change.js";
import { applicationOf, isExplained, type PlannedWrite } from "./plan.js";
import type { LoopListener, PostponedWrite, WriteCause } from "./postponed-write.js";
import { findRivals } from "./rivals.js";
import { WriteLoops, type GuardedWrite } from "./write-loops.js";

/** With what a field manager writes. */
export interface SenderOptions {
  /** The client of the cluster; a function where it is there only while something is watched. */
  readonly client: ApiClient | (() => ApiClient);
  readonly fieldManager: string;
  /** Whose managed fields the caches keep. Default: those of `fieldManager` */
  readonly fieldManagers?: Iterable<string> | undefined;
  readonly listener?: LoopListener | undefined;
  readonly clock?: Clock | undefined;
}

/** One write, and the state that it was made from. */
export interface Sending {
  readonly target: WriteTarget;
  readonly plan: PlannedWrite;
  /** Absent if the object is not known. */
  readonly before: DecodedResource | undefined;
  readonly cause?: WriteCause | undefined;
  /** What is written as loop detection compares it. Default: the body of the plan */
  readonly content?: object;
  /** False: the event of the write causes a reconcile, as that of anybody's write does. Default: true */
  readonly isFiltered?: boolean;
  /** True: the write is never postponed. Default: false */
  readonly isUrgent?: boolean;
  /** Returns the places where `before` is not as desired, `limit` at most. */
  differences?(limit: number): readonly Difference[];
}

/** What became of a write; `unchanged`: the server stored nothing new. */
export type Sent<Resource extends KubernetesObject = KubernetesObject> =
  | { readonly kind: "created" | "updated" | "unchanged"; readonly entry: DecodedResource<Resource> }
  | { readonly kind: "postponed"; readonly postponed: PostponedWrite };

/** How an object is deleted. */
export interface DeletionSending {
  readonly cause?: WriteCause | undefined;
  readonly propagationPolicy?: "Background" | "Foreground" | "Orphan" | undefined;
}

const NAMED_DIFFERENCES = 10;
const FIND_CREATED_MS = 2_000;
const NO_CAUSE: WriteCause = {};

/** Sends the writes of one field manager. */
export class Sender {
  readonly fieldManager: string;
  readonly fieldManagers: Iterable<string>;
  readonly matcher: ApplyMatcher;
  readonly #options: SenderOptions;
  readonly #loops: WriteLoops;

  constructor(options: SenderOptions) {
    const { fieldManager, fieldManagers = [fieldManager], clock } = options;
    this.fieldManager = fieldManager;
    this.fieldManagers = fieldManagers;
    this.matcher = new ApplyMatcher(fieldManager);
    this.#options = options;
    this.#loops = new WriteLoops(clock);
  }

  get client(): ApiClient {
    const { client } = this.#options;
    return typeof client === "function" ? client() : client;
  }

  /** Reads an object as the caches hold it; undefined if there is none. */
  read(
    target: WriteTarget,
    { name, namespace }: Pick<ObjectMeta, "name" | "namespace">,
    signal?: AbortSignal,
  ): Promise<DecodedResource | undefined> {
    const { fieldManagers } = this;
    return this.client.getEntry(target, { name, namespace }, { fieldManagers, ...(signal && { signal }) });
  }

  /** Writes, unless the object is in a loop and has to wait. The next read sees the answer, and no event comes of it. */
  async send<Resource extends KubernetesObject>(sending: Sending): Promise<Sent<Resource>> {
    const { cause = NO_CAUSE, isUrgent = false, plan, before } = sending;
    const guarded = guardedOf(sending);
    const loop = isUrgent ? undefined : this.#loops.postponementOf(guarded);
    if (loop !== undefined) return { kind: "postponed", postponed: await this.#postpone(sending, loop) };
    const { wasCreated, ...entry } = await this.#write<Resource>(sending);
    const version = entry.object.metadata.resourceVersion;
    const isChanged = version !== (plan.lock ?? before?.object.metadata.resourceVersion);
    const kind = wasCreated ? "created" : isChanged ? "updated" : "unchanged";
    if (kind !== "unchanged") {
      logChange(kind, sending);
      if (!isUrgent) this.#noteLoop(sending, guarded, cause);
    }
    return { kind, entry };
  }

  /** Takes note that an object, or its status, was found as desired. */
  noteMatch({ definition }: WriteTarget, ref: Pick<ObjectMeta, "name" | "namespace">, isStatus = false): void {
    this.#loops.noteMatch({ definition, ref, isStatus });
  }

  /** Forgets what was learnt of an object that is given up on purpose. */
  forget(target: WriteTarget, { metadata }: KubernetesObject): void {
    this.matcher.forget(target, metadata);
    this.#loops.forget(target.definition, metadata);
  }

  /** Deletes an object, unless it was made anew meanwhile; tells whether it is gone at once. */
  async delete(
    target: WriteTarget,
    live: KubernetesObject,
    { cause = NO_CAUSE, propagationPolicy }: DeletionSending = {},
  ): Promise<boolean> {
    const { definition, cache } = target;
    const { name, namespace, uid } = live.metadata;
    const { signal } = cause;
    const end = uid === undefined ? undefined : cache.beginDeletion(keyOf(live.metadata), uid);
    let isGone = false;
    try {
      signal?.throwIfAborted();
      const options = {
        uid,
        fieldManagers: this.fieldManagers,
        ...(signal && { signal }),
        ...(propagationPolicy && { propagationPolicy }),
      };
      const deletion = await this.client.delete({ definition }, { name, namespace }, options);
      ({ isGone } = deletion);
      const { entry } = deletion;
      if (deletion.wasFound) logChange("deleted", { target, plan: { ref: live.metadata }, cause });
      // The next reconcile knows that it is on its way out, and does not ask again.
      if (entry !== undefined && entry.object.metadata.uid === uid) cache.put(entry);
      return isGone;
    } catch (error) {
      // Another object has the name by now: ours is gone.
      if (isApiError(error, 409)) return true;
      throw error;
    } finally {
      end?.({ isGone });
      this.forget(target, live);
    }
  }

  async #write<Resource extends KubernetesObject>(sending: Sending): Promise<Applied<Resource>> {
    const { target, plan, isFiltered = true, cause = NO_CAUSE } = sending;
    const { cache } = target;
    const key = keyOf(plan.ref);
    cause.signal?.throwIfAborted();
    if (!isFiltered || cache.isPartial) {
      const answer = await this.#request<Resource>(sending);
      if (!isGone(answer.object) && !cache.isPartial) cache.put(entryOf(answer));
      cause.signal?.throwIfAborted();
      return answer;
    }
    cache.beginWrite(key);
    let written: { readonly entry: DecodedResource; readonly isOwn: boolean } | undefined;
    try {
      const answer = await this.#request<Resource>(sending);
      const entry = entryOf(answer);
      // What came during the write is known to be somebody else's, and told as such.
      const states = new Set([sending.before, cache.get(key)]);
      const isOwn = answer.wasCreated || [...states].some((state) => this.#isOwn(sending, state, entry));
      if (!isGone(answer.object)) written = { entry, isOwn };
      // An answer that came with the end of the step counts for nothing but what is known of the object: whoever asked is gone.
      cause.signal?.throwIfAborted();
      return answer;
    } catch (error) {
      written ??= await this.#findCreated(sending, error);
      throw error;
    } finally {
      cache.endWrite(key, written);
    }
  }

  async #request<Resource extends KubernetesObject>({
    target,
    plan,
    cause = NO_CAUSE,
  }: Sending): Promise<Applied<Resource>> {
    const { definition, cache } = target;
    const { verb, ref, body, isStatus } = plan;
    const { signal } = cause;
    const { fieldManager, fieldManagers } = this;
    const findKnown = (version: string) => cache.getVersion(keyOf(ref), version);
    const subresource = isStatus && definition.hasStatusSubresource ? { subresource: "status" as const } : {};
    const request = { verb, ref, body, fieldManager, fieldManagers, ...subresource, ...(signal && { signal }) };
    // A cache of parts has nothing that a whole answer could be.
    return this.client.write<Resource>(
      { definition: definition as never },
      cache.isPartial ? request : { ...request, findKnown },
    );
  }

  // A creation whose answer is lost, or not waited for, may have had an effect. A cleanup that follows has to know of the object, for nobody
  // would look for it afterwards.
  async #findCreated(
    { target, plan, before, cause = NO_CAUSE }: Sending,
    error: unknown,
  ): Promise<{ readonly entry: DecodedResource; readonly isOwn: boolean } | undefined> {
    if (before !== undefined || cause.primary === undefined || !mayHaveHadEffect(error)) return undefined;
    const signal = AbortSignal.timeout(FIND_CREATED_MS);
    const entry = await this.read(target, plan.ref, signal).catch(() => undefined);
    return entry === undefined ? undefined : { entry, isOwn: false };
  }

  // The one proof that a version is the write's own: nothing is in it that was not in the state before, or in the write. A write that
  // changes nothing answers with the version of a change that the watch may not have brought yet.
  #isOwn({ target, plan }: Sending, before: DecodedResource | undefined, after: DecodedResource): boolean {
    if (plan.lock !== undefined) return after.object.metadata.resourceVersion !== plan.lock;
    if (before === undefined) return false;
    const application = applicationOf(target, plan);
    if (application !== undefined) return this.matcher.isOwn(application, before, after);
    return isExplained(plan, { before: before.object, after: after.object, definition: target.definition });
  }

  #noteLoop(sending: Sending, guarded: GuardedWrite, cause: WriteCause): void {
    const loop = this.#loops.noteWrite(guarded);
    if (loop === undefined) return;
    const { kind, ...facts } = loop;
    this.#options.listener?.onLoop({ ...this.#placeOf(sending), loop: kind, ...facts }, cause);
  }

  async #postpone(
    sending: Sending,
    { kind, writes, pauseMs }: NonNullable<ReturnType<WriteLoops["postponementOf"]>>,
  ): Promise<PostponedWrite> {
    const { cause = NO_CAUSE, target, plan } = sending;
    const place = this.#placeOf(sending);
    const { paths } = place;
    const managers =
      kind === "undone" && paths.length > 0
        ? await findRivals(this.client, {
            target,
            ref: plan.ref,
            paths,
            own: this.fieldManager,
            ...(cause.signal && { signal: cause.signal }),
          })
        : [];
    const postponed = { ...place, loop: kind, writes, managers, retryAfterMs: pauseMs };
    this.#options.listener?.onPostponed(postponed, cause);
    return postponed;
  }

  #placeOf({ target, plan, differences }: Sending): Pick<PostponedWrite, "kind" | "object" | "paths"> {
    const paths = differences?.(NAMED_DIFFERENCES).flatMap(({ path }) => (path === "" ? [] : path)) ?? [];
    return { kind: kindNameOf(target.definition), object: keyOf(plan.ref), paths };
  }
}

// An answer of the server says what it did; a request that did not leave did nothing.
function mayHaveHadEffect(error: unknown): boolean {
  if (isApiError(error)) return false;
  return (error as Partial<ConnectionError>).wasSent !== false;
}

function guardedOf({ target, plan, content = plan.body, cause }: Sending): GuardedWrite {
  const { ref, isStatus } = plan;
  return { definition: target.definition, ref, isStatus, content, primary: cause?.primary };
}

function entryOf<Resource extends KubernetesObject>(answer: Applied<Resource>): DecodedResource<Resource> {
  const { wasCreated: _wasCreated, ...entry } = answer;
  return entry;
}

// The last finalizer went: this is the answer of a write, but the object is no more.
function isGone({ metadata }: KubernetesObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = metadata;
  return deletionTimestamp !== undefined && finalizers.length === 0 && deletionGracePeriodSeconds === 0;
}
