// The one place where a controller's writes leave: those of dependents, primaries, finalizers, status, external state and
// `context.resources`. A write that was given up is cancelled, and what it may have done counts as somebody else's change.
import type { LoopListener, PostponedWrite } from "../../base/activity.js";
import type { Clock } from "../../base/clock.js";
import { isApiError, isImmutableError, type ConnectionError } from "../../base/errors.js";
import { describeObject, keyOf, type KubernetesObject, type ObjectRef } from "../../base/kubernetes-object.js";
import { kindNameOf, type ResourceDefinition } from "../../base/resource-definition.js";
import { variantOf, type ApiClient } from "../../client/api-client.js";
import type { DeleteOptions } from "../../client/call-options.js";
import type { RequestObserver } from "../../client/requester.js";
import { takeDeletion } from "../../client/recent-deletions.js";
import { objectPath } from "../../client/resource-path.js";
import type { Applied } from "../../client/write-request.js";
import type { OwnViews } from "../../cache/own-views.js";
import type { Written } from "../../cache/resource-view.js";
import type { DecodedResource, FieldManagers } from "../../base/decoded-resource.js";
import { LoopDetector, type KnownLoop } from "../../match/loop-detector.js";
import { pathText } from "../../match/match.js";
import { ApplyMatcher, NAMED_DIFFERENCES, type WriteTarget } from "./apply-matcher.js";
import { logChange } from "./change-log.js";
import { nameImmutable } from "./immutable-fields.js";
import { applicationOf, isExplained, plannedPaths, type Sending } from "./plan.js";
import type { PrimaryCause, WriteCause } from "./postponed-write.js";
import { findRivals } from "./rivals.js";
import { digestOf, keyOfLoop, observedOf, type WrittenPart } from "./write-loops.js";

/** With what a field manager writes. */
export interface SenderOptions {
  /** The client of the cluster; a function where it is there only while something is watched. */
  readonly client: ApiClient | (() => ApiClient);
  readonly fieldManager: string;
  /** Under which names earlier versions wrote: what these own is its own, too. */
  readonly formerFieldManagers?: readonly string[] | undefined;
  /** Whose managed fields the caches keep. Default: those of `fieldManager` */
  readonly fieldManagers?: FieldManagers | undefined;
  readonly listener?: LoopListener | undefined;
  /** The views of the controller. Default: a write is its own event only in the view through which it is sent. */
  readonly views?: OwnViews | undefined;
  /** By which stored forms hold for a while. Default: that of the machine */
  readonly clock?: Clock | undefined;
}

/** What became of a write; `unchanged`: the server stored nothing new. */
export type Sent<Resource extends KubernetesObject = KubernetesObject> =
  | { readonly kind: "created" | "updated" | "unchanged"; readonly entry: DecodedResource<Resource> }
  | { readonly kind: "postponed"; readonly postponed: PostponedWrite };

/** How an object is deleted. */
export type DeletionSending = Pick<Sending, "cause"> & Pick<DeleteOptions, "propagationPolicy">;

/** What is written over and over. */
type WrittenPlace = Pick<PostponedWrite, "kind" | "object" | "paths">;
type HeldPlace = WrittenPlace & Pick<PostponedWrite, "managers">;

const LOGGED_DIFFERENCES = 5;
const FIND_CREATED_MS = 2_000;
const NO_CAUSE: WriteCause = {};

/** Sends the writes of one field manager. */
export class Sender {
  readonly fieldManager: string;
  readonly fieldManagers: FieldManagers;
  readonly formerFieldManagers: readonly string[];
  readonly matcher: ApplyMatcher;
  readonly #options: SenderOptions;
  readonly #loops = new LoopDetector();
  readonly #elsewhere = new Map<ApiClient, Sender>();
  #edits = 0;

  constructor(options: SenderOptions) {
    const { fieldManager, fieldManagers = [fieldManager], clock } = options;
    this.fieldManager = fieldManager;
    this.fieldManagers = fieldManagers;
    this.formerFieldManagers = options.formerFieldManagers ?? [];
    this.matcher = new ApplyMatcher(fieldManager, clock);
    this.#options = options;
  }

  get client(): ApiClient {
    const { client } = this.#options;
    return typeof client === "function" ? client() : client;
  }

  /** Returns the sender that writes as this one does with a client, which may be that of another cluster. */
  withClient(client: ApiClient): Sender {
    if (client === this.client) return this;
    const sender = this.#elsewhere.get(client) ?? new Sender({ ...this.#options, client });
    this.#elsewhere.set(client, sender);
    return sender;
  }

  /** Reads an object as the caches hold it; undefined if there is none. */
  read(target: WriteTarget, { name, namespace }: ObjectRef, signal?: AbortSignal) {
    const { fieldManagers } = this;
    return this.client.getEntry(target, { name, namespace }, { fieldManagers, signal });
  }

  /** Writes, unless the object is in a loop and has to wait. The next read sees the answer, and no event comes of it. */
  async send<Resource extends KubernetesObject>(sending: Sending): Promise<Sent<Resource>> {
    const { cause = NO_CAUSE, isUrgent = false, plan, before, target, content = plan.body } = sending;
    const key = keyOfLoop(target.definition, plan, cause);
    let digest: string | undefined;
    const input = () => this.#options.listener?.inputOf(cause.primary) ?? `${cause.primary?.metadata.generation ?? 0}`;
    const observed = () => observedOf(sending, (digest ??= digestOf(cause.statement ?? content)), input());
    const pause = isUrgent ? undefined : this.#loops.postponementOf(key, observed);
    if (pause !== undefined) {
      // What is to be created may be there, untied: a watch shows it, and its primary does not find it.
      const place = this.#placeOf({ ...sending, before: before ?? target.cache.get(keyOf(plan.ref)) });
      const isUndone = pause.loop === "undone" && place.paths.length > 0;
      const search = { path: objectPath(target.definition, plan.ref), paths: place.paths, own: this.fieldManager };
      const managers = isUndone ? await findRivals(this.client, search, cause.signal) : [];
      return { kind: "postponed", postponed: this.#postpone({ ...place, managers }, pause, cause) };
    }
    const { wasCreated, ...entry } = await this.#write<Resource>(sending).catch((error: unknown) => {
      throw this.#explain(error, sending);
    });
    const application = applicationOf(target, plan, content);
    if (application !== undefined) this.matcher.learn(application, entry, cause);
    const isChanged = entry.object.metadata.resourceVersion !== (plan.lock ?? before?.object.metadata.resourceVersion);
    const kind = wasCreated ? "created" : isChanged ? "updated" : "unchanged";
    if (kind === "unchanged") return { kind, entry };
    if (kind === "updated") cause.onChange?.((limit) => this.#changedPaths(sending, entry, limit));
    const what = `${plan.isStatus ? "the status of " : ""}${describeObject(target.definition, plan.ref)}`;
    const pathsOf = () => (kind === "created" ? [] : this.#changedPaths(sending, entry, LOGGED_DIFFERENCES));
    logChange(`${kind} ${what}`, { target, cause, pathsOf });
    // An object that this operator deleted itself is not created again because another client undoes the write.
    const isRecreated = wasCreated && takeDeletion(this.client.connection, objectPath(target.definition, plan.ref));
    const write = isRecreated ? { ...observed(), content: `recreated ${this.#edits++}` } : observed();
    const loop = isUrgent ? undefined : this.#loops.noteWrite(key, write);
    if (loop !== undefined) this.#options.listener?.onLoop({ ...this.#placeOf(sending), ...loop }, cause);
    return { kind, entry };
  }

  /** Asks the API server whether it would accept a write, which it does not store; fails as the write would. A creation finds the object (409). */
  async dryRun({ target, plan, cause }: Pick<Sending, "target" | "plan" | "cause">): Promise<void> {
    const { verb, ref, body } = plan;
    const request = { verb, ref, body, dryRun: true, fieldManager: this.fieldManager, signal: cause?.signal };
    await this.client.write({ definition: target.definition }, request);
  }

  /** Returns the client of the user's functions in one reconcile. What they write of the primary is the controller's own; edits of it count. */
  clientFor({ definition }: WriteTarget, cause: PrimaryCause): ApiClient {
    const primaryPath = objectPath(definition, cause.primary.metadata);
    const edits = editsOf(definition, cause);
    const observe: RequestObserver = ({ method, path, status = 500 }) => {
      const [asked, query = ""] = path.split("?");
      if (method === "GET" || status >= 300 || query.includes("dryRun=")) return;
      const part = asked === primaryPath ? "object" : asked === `${primaryPath}/status` ? "status" : undefined;
      if (part !== undefined) cause.onWritten?.({ part, fieldManager: this.fieldManager });
      if (part !== "object") return;
      const loop = this.#loops.noteWrite(edits.key, { content: `${this.#edits++}`, input: "" });
      if (loop !== undefined) this.#options.listener?.onLoop({ ...edits.place, ...loop }, cause);
    };
    return variantOf(this.client, { observe });
  }

  /** Returns what keeps a primary from being reconciled, if its own reconciles edit it over and over. */
  postponementOfEdits({ definition }: WriteTarget, cause: PrimaryCause): PostponedWrite | undefined {
    const { key, place } = editsOf(definition, cause);
    const loop = this.#loops.postponementOf(key, () => ({ content: "", input: "" }));
    return loop && this.#postpone({ ...place, managers: [] }, loop, cause);
  }

  /** Takes note that an object, or its status, was found as desired. */
  noteMatch({ definition }: WriteTarget, part: WrittenPart, cause?: WriteCause): void {
    // Nearly always: a pass over unchanged objects must cost nothing here.
    if (this.#loops.size > 0) this.#loops.noteMatch(keyOfLoop(definition, part, cause));
  }

  /** Forgets what was learnt of an object that is given up on purpose. */
  forget({ definition, cache }: WriteTarget, { metadata: ref }: KubernetesObject, cause?: WriteCause): void {
    this.matcher.forms.forget(cache, ref);
    for (const isStatus of [false, true]) this.#loops.forget(keyOfLoop(definition, { ref, isStatus }, cause));
  }

  /** Deletes an object, unless it was made anew meanwhile; tells whether it is gone at once. */
  async delete(target: WriteTarget, live: KubernetesObject, { cause = NO_CAUSE, ...options }: DeletionSending = {}) {
    const { definition, cache } = target;
    const { name, namespace, uid } = live.metadata;
    const { primary, signal } = cause;
    const views = this.#options.views?.around(cache, primary);
    const end = uid === undefined ? undefined : cache.beginDeletion(keyOf(live.metadata), uid, views);
    let isGone = false;
    try {
      signal?.throwIfAborted();
      const asked = { uid, fieldManagers: this.fieldManagers, signal, ...options };
      const { entry, wasFound, ...ended } = await this.client.delete({ definition }, { name, namespace }, asked);
      ({ isGone } = ended);
      if (wasFound) logChange(`deleted ${describeObject(definition, live.metadata)}`, { target, cause });
      // The next reconcile knows that it is on its way out, and does not ask again.
      if (entry !== undefined && entry.object.metadata.uid === uid) cache.put(entry);
      return isGone;
    } catch (error) {
      // Another object has the name by now: ours is gone.
      if (isApiError(error, 409)) return true;
      throw error;
    } finally {
      end?.({ isGone });
      this.forget(target, live, cause);
    }
  }

  async #write<Resource extends KubernetesObject>(sending: Sending): Promise<Applied<Resource>> {
    const { target, plan, isFiltered = true, cause = NO_CAUSE } = sending;
    const { definition, cache } = target;
    const { verb, ref, body, isStatus } = plan;
    const { fieldManager, fieldManagers } = this;
    const { signal } = cause;
    const key = keyOf(ref);
    signal?.throwIfAborted();
    const request = {
      subresource: isStatus && definition.hasStatusSubresource ? ("status" as const) : undefined,
      // A cache of parts has nothing that a whole answer could be.
      findKnown: cache.isPartial ? undefined : (version: string) => cache.getVersion(key, version),
      ...{ verb, ref, body, fieldManager, fieldManagers, signal },
    };
    const isHeld = isFiltered && !cache.isPartial;
    const end = isHeld ? cache.beginWrite(key, this.#options.views?.around(cache, cause.primary)) : undefined;
    let written: Written | undefined;
    try {
      const answer = await this.client.write<Resource>({ definition: definition as never }, request);
      const { wasCreated, ...entry } = answer;
      cause.onWritten?.({ part: isStatus ? "status" : "object", fieldManager, answer: entry });
      if (end !== undefined && !isGone(entry.object)) {
        // What came during the write is known to be somebody else's, and told as such.
        const states = new Set([sending.before, cache.get(key)]);
        written = { entry, isOwn: wasCreated || [...states].some((state) => this.#isOwn(sending, state, entry)) };
      } else if (!cache.isPartial && !isGone(entry.object)) cache.put(entry);
      // An answer that came with the end of the step counts for nothing but what is known of the object: whoever asked is gone.
      signal?.throwIfAborted();
      return answer;
    } catch (error) {
      // A creation whose answer is lost, or not waited for, may have had an effect.
      if (sending.before === undefined && !hadNoEffect(error)) {
        // What is found there may be somebody else's, and the write may still come when that is gone.
        if (written === undefined && signal?.aborted === true) cause.onGivenUp?.();
        if (end !== undefined) written ??= await this.#findCreated(sending);
      }
      throw error;
    } finally {
      end?.(written);
    }
  }

  // A cleanup that follows has to know of the object, for nobody would look for it afterwards.
  async #findCreated({ target, plan, cause = NO_CAUSE }: Sending): Promise<Written | undefined> {
    if (cause.primary === undefined) return undefined;
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

  // The API server names `spec`, where one of its fields cannot change.
  #explain(error: unknown, { target: { definition }, target, plan, before, content }: Sending): unknown {
    if (before === undefined || !isImmutableError(error)) return error;
    const application = applicationOf(target, plan, content);
    const differences = application && this.matcher.differences(application, before, Infinity);
    const removed = differences?.filter(({ reason }) => reason.endsWith("not desired any more")) ?? [];
    const desired = application?.desired ?? plan.desiredOf(before.object);
    if (desired !== undefined) nameImmutable(error, { definition, live: before.object, desired, removed });
    return error;
  }

  #postpone(written: HeldPlace, { pauseMs, ...loop }: KnownLoop, cause: WriteCause): PostponedWrite {
    const postponed = { ...written, ...loop, retryAfterMs: pauseMs };
    this.#options.listener?.onPostponed(postponed, cause);
    return postponed;
  }

  #placeOf(sending: Sending): WrittenPlace {
    const { target, plan } = sending;
    const paths = this.#pathsOf(sending, NAMED_DIFFERENCES);
    return { kind: kindNameOf(target.definition), object: keyOf(plan.ref), paths };
  }

  /** Returns the places, `limit` at most, that a write changed. */
  #changedPaths(sending: Sending, after: DecodedResource, limit: number): readonly string[] {
    const left = this.matcher.leftBehind(sending, after).map(({ path }) => pathText(path));
    return this.#pathsOf(sending, limit + left.length)
      .filter((path) => !left.includes(path))
      .slice(0, limit);
  }

  /** Returns the places, `limit` at most, where the state before is not as desired; none if the object itself is missing. */
  #pathsOf({ target, plan, before, content }: Sending, limit: number): readonly string[] {
    const application = applicationOf(target, plan, content);
    if (application === undefined) return plannedPaths(plan, target.definition, before?.object).slice(0, limit);
    return this.matcher.differences(application, before, limit).flatMap(({ path }) => path || []);
  }
}

// An answer of the server says what it did; a request that did not leave did nothing.
function hadNoEffect(error: unknown): boolean {
  return isApiError(error) || (error as Partial<ConnectionError>).wasSent === false;
}

// How the loop of what a primary's own reconciles edit of it is named, and told.
function editsOf(definition: ResourceDefinition, cause: PrimaryCause) {
  const ref = cause.primary.metadata;
  const key = `${keyOfLoop(definition, { ref, isStatus: false }, cause)} edits`;
  return { key, place: { kind: kindNameOf(definition), object: keyOf(ref), paths: ["spec"] } };
}

// The last finalizer went: this is the answer of a write, but the object is no more.
function isGone({ metadata }: KubernetesObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = metadata;
  return deletionTimestamp !== undefined && finalizers.length === 0 && deletionGracePeriodSeconds === 0;
}
