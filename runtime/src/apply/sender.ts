// Every write of a controller goes through a Sender: dependents, primaries, finalizers, status, external state, and context.resources.
// An aborted write may still take effect; its event is then treated as a change by another client.
import { hash } from "node:crypto";
import type { LoopListener, PostponedWrite } from "../base/activity.js";
import {
  type ApiError,
  type ConnectionError,
  type StatusCause,
  isAboutImmutable,
  isApiError,
  isImmutableError,
} from "../base/errors.js";
import {
  type DecodedResource,
  type FieldManagers,
  type KubernetesObject,
  type ObjectRef,
  type ResourceDefinition,
  describeObject,
  keyOf,
  kindNameOf,
} from "../base/kubernetes-object.js";
import { isWritten } from "../base/logger.js";
import type { Clock } from "../base/wait.js";
import type { OwnViews, Written } from "../cache/resource-view.js";
import { type ApiClient, type Applied, type DeleteOptions, objectPath, variantOf } from "../client/api-client.js";
import { takeDeletion } from "../client/own-writes.js";
import type { RequestObserver } from "../client/transport.js";
import { ApplyMatcher, NAMED_DIFFERENCES } from "./apply-matcher.js";
import { type KnownLoop, LoopDetector, type ObservedWrite } from "./competing-writers.js";
import type { ManagedEntry } from "./field-set.js";
import { genericDifferences } from "./generic-matcher.js";
import { type Difference, pathText } from "./match.js";
import {
  type PrimaryCause,
  type Write,
  type WriteCause,
  type WritePart,
  type WriteResult,
  type WriteTarget,
  changedPathsOf,
  desiredOf,
  isExplained,
  requestOf,
} from "./write.js";

interface SenderOptions {
  /** A function if the client exists only while a watch runs. */
  readonly client: ApiClient | (() => ApiClient);
  readonly fieldManager: string;
  /** Field managers of earlier versions, whose fields are migrated to `fieldManager`. */
  readonly formerFieldManagers?: readonly string[] | undefined;
  /** Field managers whose `managedFields` entries are cached. Default: `fieldManager` */
  readonly fieldManagers?: FieldManagers | undefined;
  readonly listener?: LoopListener | undefined;
  /** The views of the controller, all of which filter the event of a write. Default: only the view through which it is sent */
  readonly views?: OwnViews | undefined;
  readonly clock?: Clock | undefined;
}

/** Options of a deletion. */
export interface Deletion extends Pick<DeleteOptions, "propagationPolicy"> {
  readonly cause?: WriteCause | undefined;
}

type WrittenPlace = Pick<PostponedWrite, "kind" | "object" | "paths">;
type HeldPlace = WrittenPlace & Pick<PostponedWrite, "managers">;

const LOGGED_DIFFERENCES = 5;
const NAMED_FIELDS = 10;
const FIND_CREATED_MS = 2_000;
const NO_CAUSE: WriteCause = {};

/** Sends the writes of one field manager to one cluster. */
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

  /** Returns the sender of the same field manager for another client, such as that of another cluster. */
  withClient(client: ApiClient): Sender {
    if (client === this.client) return this;
    const sender = this.#elsewhere.get(client) ?? new Sender({ ...this.#options, client });
    this.#elsewhere.set(client, sender);
    return sender;
  }

  /** Reads an object in the form of the caches. Returns undefined if it does not exist. */
  read(target: WriteTarget, { name, namespace }: ObjectRef, signal?: AbortSignal) {
    const { fieldManagers } = this;
    return this.client.getEntry(target, { name, namespace }, { fieldManagers, signal });
  }

  /**
   * Sends a write, unless its object backs off because of a write loop. The next read returns the response, and the event of the write is filtered.
   */
  async send<Resource extends KubernetesObject>(write: Write): Promise<WriteResult<Resource>> {
    const { cause = NO_CAUSE, isUrgent = false, ref, before, target, desired } = write;
    const { definition, cache } = target;
    const key = loopKey(definition, ref, write.part, cause);
    let digest: string | undefined;
    const input = () => this.#options.listener?.inputOf(cause.primary) ?? `${cause.primary?.metadata.generation ?? 0}`;
    const observed = () => observedOf(write, (digest ??= digestOf(cause.statement ?? desired)), input());
    const pause = isUrgent ? undefined : this.#loops.postponementOf(key, observed);
    if (pause !== undefined) {
      // An object to create may exist without its link: the watch contains it, but its primary does not find it.
      const place = this.#placeOf({ ...write, before: before ?? cache.get(keyOf(ref)) });
      const isUndone = pause.loop === "undone" && place.paths.length > 0;
      const search = { path: objectPath(definition, ref), paths: place.paths, own: this.fieldManager };
      const managers = isUndone ? await findOtherManagers(this.client, search, cause.signal) : [];
      return { kind: "postponed", postponed: this.#postpone({ ...place, managers }, pause, cause) };
    }
    const { wasCreated, ...entry } = await this.#write<Resource>(write).catch((error: unknown) => {
      throw this.#explain(error, write);
    });
    this.matcher.learn(write, entry);
    const isChanged = entry.object.metadata.resourceVersion !== (write.lock ?? before?.object.metadata.resourceVersion);
    const kind = wasCreated ? "created" : isChanged ? "updated" : "unchanged";
    if (kind === "unchanged") return { kind, entry };
    if (kind === "updated") cause.onChange?.((limit) => this.#changedPaths(write, entry, limit));
    const what = `${write.part === "status" ? "the status of " : ""}${describeObject(definition, ref)}`;
    const pathsOf = () => (kind === "created" ? [] : this.#changedPaths(write, entry, LOGGED_DIFFERENCES));
    logChange(`${kind} ${what}`, { target, cause, pathsOf });
    // An object that this operator deleted itself is not recreated because another client reverts the write.
    const isRecreated = wasCreated && takeDeletion(this.client.connection, objectPath(definition, ref));
    const made = isRecreated ? { ...observed(), content: `recreated ${this.#edits++}` } : observed();
    // An urgent write is never postponed, and reported only if it has write loops of its own.
    const loop = isUrgent && cause.loop === undefined ? undefined : this.#loops.noteWrite(key, made);
    if (loop !== undefined) this.#options.listener?.onLoop({ ...this.#placeOf(write), ...loop, isUrgent }, cause);
    return { kind, entry };
  }

  /** Sends a write as a dry run. Fails like the write would; a creation fails with 409 if the object exists. */
  async dryRun(write: Write): Promise<void> {
    await this.client.write({ definition: write.target.definition }, { ...requestOf(write, this), dryRun: true });
  }

  /**
   * Returns the client for user functions in one reconcile. It records their writes of the primary as own writes, and detects loops of such edits.
   */
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

  /** Returns why a primary backs off if its own reconciles edit it in a loop. */
  postponementOfEdits({ definition }: WriteTarget, cause: PrimaryCause): PostponedWrite | undefined {
    const { key, place } = editsOf(definition, cause);
    const loop = this.#loops.postponementOf(key, () => ({ content: "", input: "" }));
    return loop && this.#postpone({ ...place, managers: [] }, loop, cause);
  }

  /** Records that a write was not sent because the object or its status already matched. */
  noteMatch({ target, ref, part }: Write, cause?: WriteCause): void {
    // Usually, there are no write loops, and unchanged objects cost nothing here.
    if (this.#loops.size > 0) this.#loops.noteMatch(loopKey(target.definition, ref, part, cause));
  }

  /** Drops everything that was learned about an object, because the controller deletes or releases it. */
  forget({ definition, cache }: WriteTarget, { metadata: ref }: KubernetesObject, cause?: WriteCause): void {
    this.matcher.mutations.forget(cache, ref);
    for (const part of ["object", "status"] as const) this.#loops.forget(loopKey(definition, ref, part, cause));
  }

  /** Deletes an object, unless it has been recreated under the same name. Returns whether it no longer exists. */
  async delete(target: WriteTarget, live: KubernetesObject, { cause = NO_CAUSE, ...options }: Deletion = {}) {
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
      // The next reconcile sees that the object is being deleted, and does not send a second request.
      if (entry !== undefined && entry.object.metadata.uid === uid) cache.put(entry);
      return isGone;
    } catch (error) {
      // Another object has the name, so this one has been deleted.
      if (isApiError(error, 409)) return true;
      throw error;
    } finally {
      end?.({ isGone });
      this.forget(target, live, cause);
    }
  }

  async #write<Resource extends KubernetesObject>(write: Write): Promise<Applied<Resource>> {
    const { target, ref, part, before, isFiltered = true, cause = NO_CAUSE } = write;
    const { definition, cache } = target;
    const { fieldManager } = this;
    const { signal } = cause;
    const key = keyOf(ref);
    signal?.throwIfAborted();
    // A partial cache contains no whole object that could equal the response.
    const findKnown = cache.isPartial ? undefined : (version: string) => cache.getVersion(key, version);
    const request = { ...requestOf(write, this), findKnown };
    const isHeld = isFiltered && !cache.isPartial;
    const end = isHeld ? cache.beginWrite(key, this.#options.views?.around(cache, cause.primary)) : undefined;
    let written: Written | undefined;
    try {
      const answer = await this.client.write<Resource>({ definition: definition as never }, request);
      const { wasCreated, ...entry } = answer;
      cause.onWritten?.({ part, fieldManager, answer: entry });
      if (end !== undefined && !isGone(entry.object)) {
        // The cache may have received a change by another client during the write.
        const states = new Set([before, cache.get(key)]);
        written = { entry, isOwn: wasCreated || [...states].some((state) => this.#isOwn(write, state, entry)) };
      } else if (!cache.isPartial && !isGone(entry.object)) cache.put(entry);
      // A response after the abort still updates the cache, but its caller has ended.
      signal?.throwIfAborted();
      return answer;
    } catch (error) {
      const mayHaveCreated = before === undefined && !wasNotExecuted(error);
      if (mayHaveCreated) {
        // The API server may execute it later, even if another client's object exists now.
        if (written === undefined && signal?.aborted === true) cause.onGivenUp?.();
        if (end !== undefined) written ??= await this.#readCreated(write);
      }
      throw error;
    } finally {
      end?.(written);
    }
  }

  // A subsequent cleanup must know of the object, because no later reconcile would find it.
  async #readCreated({ target, ref, cause = NO_CAUSE }: Write): Promise<Written | undefined> {
    if (cause.primary === undefined) return undefined;
    const signal = AbortSignal.timeout(FIND_CREATED_MS);
    const entry = await this.read(target, ref, signal).catch(() => undefined);
    return entry === undefined ? undefined : { entry, isOwn: false };
  }

  // A resourceVersion belongs to the write only if all of the object was in the previous state or is in the write. The response to a write that
  // changes nothing has the resourceVersion of an earlier change, whose event may not have arrived yet.
  #isOwn(write: Write, before: DecodedResource | undefined, after: DecodedResource): boolean {
    if (write.lock !== undefined) return after.object.metadata.resourceVersion !== write.lock;
    if (before === undefined) return false;
    if (write.verb === "apply") return this.matcher.isOwn(write, before, after);
    return isExplained(write, before.object, after.object);
  }

  // If a field of the spec is immutable, the API server often names only `spec`.
  #explain(error: unknown, write: Write): unknown {
    const { before, target, verb } = write;
    if (before === undefined || !isImmutableError(error)) return error;
    const isApply = verb === "apply";
    const differences = isApply ? this.matcher.differences(write, before, Infinity) : [];
    const removed = differences.filter(({ reason }) => reason.endsWith("not desired any more"));
    const desired = isApply ? write.desired : desiredOf(write, before.object);
    const { definition } = target;
    if (desired !== undefined) nameImmutable(error, { definition, live: before.object, desired, removed });
    return error;
  }

  #postpone(written: HeldPlace, { pauseMs, ...loop }: KnownLoop, cause: WriteCause): PostponedWrite {
    const postponed = { ...written, ...loop, retryAfterMs: pauseMs };
    this.#options.listener?.onPostponed(postponed, cause);
    return postponed;
  }

  #placeOf(write: Write): WrittenPlace {
    const paths = this.#pathsOf(write, NAMED_DIFFERENCES);
    return { kind: kindNameOf(write.target.definition), object: keyOf(write.ref), paths };
  }

  /** Returns at most `limit` paths that a write changed. */
  #changedPaths(write: Write, after: DecodedResource, limit: number): readonly string[] {
    const left = this.matcher.leftBehind(write, after).map(({ path }) => pathText(path));
    return this.#pathsOf(write, limit + left.length)
      .filter((path) => !left.includes(path))
      .slice(0, limit);
  }

  /** Returns at most `limit` paths in which the live object differs from the desired one; none if it does not exist. */
  #pathsOf(write: Write, limit: number): readonly string[] {
    if (write.verb !== "apply") return changedPathsOf(write).slice(0, limit);
    return this.matcher.differences(write, write.before, limit).flatMap(({ path }) => path || []);
  }
}

// The API server rejected the write, or it was not sent.
function wasNotExecuted(error: unknown): boolean {
  return isApiError(error) || (error as Partial<ConnectionError>).wasSent === false;
}

/** Returns the key under which loops of reconciles that edit their own primary are detected, and how to report them. */
function editsOf(definition: ResourceDefinition, cause: PrimaryCause) {
  const ref = cause.primary.metadata;
  const key = `${loopKey(definition, ref, "object", cause)} edits`;
  return { key, place: { kind: kindNameOf(definition), object: keyOf(ref), paths: ["spec"] } };
}

// The response to a write that removed the last finalizer: the object no longer exists.
function isGone({ metadata }: KubernetesObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = metadata;
  return deletionTimestamp !== undefined && finalizers.length === 0 && deletionGracePeriodSeconds === 0;
}

/**
 * Returns the key under which write loops of an object are detected. It contains the primary, so that two primaries that revert each other are a loop
 * each, and the name instead of the UID of the object, so that an object which is deleted each time is also a loop.
 */
function loopKey(definition: ResourceDefinition, ref: ObjectRef, part: WritePart, cause?: WriteCause): string {
  const { uid = "" } = cause?.primary?.metadata ?? {};
  return `${kindNameOf(definition)} ${keyOf(ref)}${part === "status" ? " status" : ""} ${cause?.loop ?? ""} ${uid}`;
}

/** Returns a write in the form that the loop detector compares. `input` identifies the input of the write, such as the generation of the primary. */
export function observedOf({ target, part, before, cause }: Write, content: string, input: string): ObservedWrite {
  const { uid } = cause?.primary?.metadata ?? {};
  const isStatus = part === "status";
  // A write of the primary itself increments its generation, and so does a write of its status without a status subresource.
  const isCounted = !isStatus || !target.definition.hasStatusSubresource;
  const isPrimary = isCounted && before !== undefined && before.object.metadata.uid === uid;
  return {
    content,
    input: isPrimary ? "" : input,
    isFollowing: isStatus && cause?.followsEvent === true,
    isStatus,
  };
}

/** Returns a digest of an object without its resourceVersion. */
export function digestOf(content: object): string {
  const { metadata } = content as Partial<KubernetesObject>;
  const hasVersion = metadata?.resourceVersion !== undefined;
  const unversioned = hasVersion ? { ...content, metadata: { ...metadata, resourceVersion: undefined } } : content;
  return hash("sha1", JSON.stringify(unversioned), "base64");
}

/** Reads the managed fields of the object at `path`, which the caches do not keep. */
export async function readManagedFields(client: ApiClient, path: string, signal?: AbortSignal) {
  const { metadata } = JSON.parse((await client.readPath(path, { signal })) ?? "{}");
  return (metadata?.managedFields ?? []) as readonly ManagedEntry[];
}

/** Returns the field managers other than `own` that own one of `paths`, such as `data.text`; none if the object cannot be read. */
async function findOtherManagers(
  client: ApiClient,
  { path, paths, own }: { readonly path: string; readonly paths: readonly string[]; readonly own: string },
  signal?: AbortSignal,
): Promise<readonly string[]> {
  try {
    const managedFields = await readManagedFields(client, path, signal);
    // Up to the first list: managed fields identify list items by key, not by index.
    const names = paths.map((each) => each.replace(/\[.*$/, "").split("."));
    const others = managedFields.flatMap(({ manager, fieldsV1 = {} }) =>
      manager !== own && names.some((each) => ownsPath(fieldsV1, each)) ? (manager ?? []) : [],
    );
    return [...new Set(others)];
  } catch {
    // In this case, the message just does not name the managers.
    return [];
  }
}

function ownsPath(fields: object, [name, ...rest]: readonly string[]): boolean {
  if (name === undefined) return true;
  const inner = (fields as { readonly [key: string]: object | undefined })[`f:${name}`];
  return inner !== undefined && (Object.keys(inner).length === 0 || ownsPath(inner, rest));
}

// The error of a write that changes an immutable field often names only `spec`, and quotes the sent value.

interface ImmutableChange {
  readonly definition: ResourceDefinition;
  readonly live: KubernetesObject;
  readonly desired: object;
  /** Fields that the write removes. */
  readonly removed: readonly Difference[];
}

/** Returns the paths of the immutable fields that a rejected write would change. If none is found, returns those in the error of the API server. */
function immutablePaths(
  { causes }: Pick<ApiError, "causes">,
  { removed, ...states }: ImmutableChange,
): readonly string[] {
  const all = [...genericDifferences(states), ...removed].map(({ path }) => path);
  const found = causes.filter(isAboutImmutable).flatMap((cause) => {
    const { field = "" } = cause;
    const changeable = changeableFields(cause);
    const inside = all.filter(
      (path) => (isWithin(path, field) || isWithin(field, path)) && !changeable.some((each) => isWithin(path, each)),
    );
    return inside.length > 0 ? inside : [field];
  });
  return [...new Set(found)].filter((path) => path !== "");
}

/** Adds the paths of the immutable fields that would change to the message of an error. */
function nameImmutable(error: ApiError, change: ImmutableChange): void {
  const paths = immutablePaths(error, change);
  const more = paths.length - NAMED_FIELDS;
  if (paths.length === 0) return;
  error.message += `; immutable fields that would change: ${paths.slice(0, NAMED_FIELDS).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function isWithin(path: string, outer: string): boolean {
  const text = outer.includes("[*]") ? path.replace(/\[\d+\]/g, "[*]") : path;
  return text === outer || text.startsWith(`${outer}.`) || text.startsWith(`${outer}[`);
}

// "updates to statefulset spec for fields other than 'replicas' and 'template' are forbidden", "may not change fields other than `spec.tolerations`"
function changeableFields({ message = "", field = "" }: StatusCause): readonly string[] {
  const [, list = ""] = /\b(?:other than|except)\b(.*)/s.exec(message) ?? [];
  return [...list.matchAll(/['`]([\w.[\]*]+)['`]/g)].map(([, name]) =>
    name!.startsWith(`${field}.`) ? name! : `${field}.${name}`,
  );
}

/** Logs a change with the object and the paths. Values are never logged, because they may be secret. */
function logChange(
  what: string,
  { target, cause, pathsOf }: { target: WriteTarget; cause: WriteCause; pathsOf?: () => readonly string[] },
): void {
  const { logger, dependent } = cause;
  // Determining the paths is as expensive as matching.
  if (logger === undefined || !isWritten(logger, "info")) return;
  const paths = pathsOf?.() ?? [];
  const fields = { dependent, resource: kindNameOf(target.definition), ...(paths.length > 0 && { paths }) };
  logger.info(fields, paths.length === 0 ? what : `${what}: ${paths.join(", ")}`);
}
