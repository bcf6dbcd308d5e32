import {
  type Creatable,
  type DecodedResource,
  type Draft,
  type KubernetesObject,
  type NewResource,
  type ObjectBody,
  type ObjectRef,
  type PartialResource,
  type ResourceDefinition,
  type Unstored,
  type WholeObject,
  type WithConditions,
  describeObject,
  hasType,
  keyOf,
  kindNameOf,
  nameOfType,
} from "../base/kubernetes-object.js";
import { deepFreeze } from "../base/lazy-object.js";
import type { Logger } from "../base/logger.js";
import { type ResourceView, viewOf } from "../cache/resource-view.js";
import type { ApiClient } from "../client/api-client.js";
import { type Matcher, patchMatcher, updateMatcher } from "./generic-matcher.js";
import { appliedFinalizers } from "./owned-fields.js";
import { latestOf, retryOnConflict } from "./retry-on-conflict.js";
import type { Sender } from "./sender.js";
import {
  type JsonPatchChange,
  type Write,
  type WriteCause,
  type WriteTarget,
  applyOf,
  createOf,
  createPostponedError,
  desiredOf,
  jsonPatchOf,
  locked,
  mergePatchOf,
  updateOf,
  withBody,
} from "./write.js";

/** The properties of an event source that are needed to write through it. */
interface NamedSource {
  readonly name: string;
  readonly type?: ResourceDefinition | string | undefined;
  readonly client?: ApiClient | undefined;
}

/** The event sources of the controller. */
interface NamedSources {
  names(): readonly string[];
  get(name: string): NamedSource | undefined;
  find(type: ResourceDefinition): readonly NamedSource[];
}

interface ResourceOperationsOptions {
  /** The sender of the controller, which also sends its other writes. */
  readonly sender: Sender;
  readonly primary: WriteTarget;
  readonly finalizer: string;
  /** The types of the conditions that the runtime manages in the status of primaries. */
  readonly conditionTypes?: ReadonlySet<string> | undefined;
  readonly sources: NamedSources;
  readonly logger: Logger;
}

/** Options of finalizer writes. Default: the finalizer of the controller */
export interface FinalizerOptions {
  readonly finalizer?: string;
  readonly mode?: "matchAndFilter" | "cacheOnly";
}

/**
 * Writes watched objects so that the next read of the controller returns the new state and the event of the write triggers no reconcile
 * (ResourceOperations in JOSDK). Use `context.client` for other objects.
 */
export class ResourceOperations {
  readonly #options: ResourceOperationsOptions;
  readonly #cause: WriteCause | undefined;
  /** The kinds for which a warning about several event sources was logged. */
  readonly #warned: Set<string>;

  constructor(options: ResourceOperationsOptions, cause?: WriteCause, warned = new Set<string>()) {
    this.#options = options;
    this.#cause = cause;
    this.#warned = warned;
  }

  /** Returns the operations for one reconcile. They are aborted together with the reconcile. */
  within(cause: WriteCause): ResourceOperations {
    return new ResourceOperations(this.#options, cause, this.#warned);
  }

  /**
   * Returns the operations for a watched kind: the primaries, or the objects of the event source with the given name, by default the first one of the
   * kind. Throws if there is none.
   */
  of<Resource extends KubernetesObject, Input = WholeObject<Resource>>(
    { definition }: Creatable<Resource, Input>,
    { source }: { readonly source?: string } = {},
  ): KindOperations<Resource, Input> {
    const isPrimary = source === undefined && hasType({ type: this.#options.primary.definition }, definition);
    if (isPrimary) return this.#ofPrimaries<Resource, Input>();
    const { view, client } = source === undefined ? this.#firstOf(definition) : this.#named(definition, source);
    const { sender: own } = this.#options;
    const sender = client === undefined ? own : own.withClient(client);
    return new KindOperations({ definition, cache: view }, { sender, cause: this.#cause });
  }

  /**
   * Adds a finalizer to a primary with a JSON patch, unless it has the finalizer or is being deleted. Returns undefined if the primary no longer
   * exists.
   */
  addFinalizer<Primary extends KubernetesObject>(
    primary: Primary,
    { finalizer = this.#options.finalizer, ...options }: FinalizerOptions = {},
  ): Promise<ResourceWrite<Primary> | undefined> {
    return this.#ofPrimaries<Primary>({ added: finalizer }).patchOnLatest(primary, {
      ...options,
      isNeeded: (live) => live.metadata.deletionTimestamp === undefined && !hasFinalizer(live, finalizer),
      change: (draft) => changeFinalizers(draft, (present) => [...present, finalizer]),
    });
  }

  /**
   * Adds a finalizer to a primary with server-side apply, unless it has the finalizer or is being deleted. An apply contains all fields that the
   * controller owns, so any other field of the primary that it applied before is given up.
   */
  async applyFinalizer<Primary extends KubernetesObject>(
    primary: Primary,
    { finalizer = this.#options.finalizer, ...options }: FinalizerOptions = {},
  ): Promise<ResourceWrite<Primary>> {
    const object = latestOf(this.#options.primary.cache, primary);
    const { name, namespace, uid, deletionTimestamp } = object.metadata;
    if (deletionTimestamp !== undefined || hasFinalizer(object, finalizer)) return { kind: "unchanged", object };
    const metadata = { name, namespace, uid, finalizers: [finalizer] };
    return this.#ofPrimaries<Primary>({ added: finalizer }).apply(
      { metadata } as unknown as PartialResource<Primary>,
      options,
    );
  }

  /**
   * Removes a finalizer from a primary. A primary that is being deleted is removed with its last finalizer. Returns undefined if the primary no
   * longer exists.
   */
  removeFinalizer<Primary extends KubernetesObject>(
    primary: Primary,
    { finalizer = this.#options.finalizer, ...options }: FinalizerOptions = {},
  ): Promise<ResourceWrite<Primary> | undefined> {
    return this.removeFinalizers(primary, [finalizer], options);
  }

  /** Removes finalizers from a primary with a single patch. Returns undefined if the primary no longer exists. */
  removeFinalizers<Primary extends KubernetesObject>(
    primary: Primary,
    finalizers: readonly string[],
    options: Pick<FinalizerOptions, "mode"> = {},
  ): Promise<ResourceWrite<Primary> | undefined> {
    return this.#ofPrimaries<Primary>({ removed: finalizers }).patchOnLatest(primary, {
      ...options,
      isNeeded: (live) => finalizers.some((each) => hasFinalizer(live, each)),
      change: (draft) => changeFinalizers(draft, (present) => present.filter((name) => !finalizers.includes(name))),
    });
  }

  /**
   * Changes a primary with a JSON patch. After a conflict, computes the patch again from a fresh read. Returns undefined if the primary no longer
   * exists.
   */
  patchWithConflictRetry<Primary extends KubernetesObject>(primary: Primary, patch: RetriedPatch<Primary>) {
    return this.#ofPrimaries<Primary>().patchOnLatest(primary, patch);
  }

  // The class of the primaries determines the type. A finalizer is urgent and never postponed: even if another client reverts it, the next reconcile
  // depends on it. Its patches contain a different resourceVersion each time.
  #ofPrimaries<Primary extends KubernetesObject, Input = WholeObject<Primary>>(
    finalizers?: object,
  ): KindOperations<Primary, Input> {
    const { primary, finalizer, conditionTypes, sender } = this.#options;
    const isUrgent = finalizers !== undefined;
    const cause = isUrgent ? { ...this.#cause, loop: "finalizers", statement: finalizers } : this.#cause;
    return new KindOperations(primary, { sender, cause, finalizer, conditionTypes, isUrgent });
  }

  #firstOf(definition: ResourceDefinition): WritableSource {
    const candidates = this.#options.sources.find(definition);
    const first = candidates.find(isWritable);
    if (first === undefined) throw this.#unwatched(definition, candidates[0]);
    const kind = kindNameOf(definition);
    if (candidates.length > 1 && !this.#warned.has(kind)) {
      this.#warned.add(kind);
      const names = candidates.map(({ name }) => name).join(", ");
      const advice = `${first.name} is used; state the source to write through another one`;
      this.#options.logger.warn({ kind, sources: names }, `several event sources watch ${kind}: ${advice}`);
    }
    return first;
  }

  #named(definition: ResourceDefinition, name: string): WritableSource {
    const { sources } = this.#options;
    const kind = kindNameOf(definition);
    const found = sources.get(name);
    if (found === undefined) {
      const names = sources.names().join(", ") || "none";
      throw new Error(`there is no event source "${name}" to write ${kind} through; the event sources are ${names}`);
    }
    if (!hasType(found, definition))
      throw new Error(
        `event source "${name}" is of ${nameOfType(found.type)}, so ${kind} cannot be written through it`,
      );
    if (!isWritable(found)) throw this.#unwatched(definition, found);
    return found;
  }

  #unwatched(definition: ResourceDefinition, unsuitable: NamedSource | undefined): Error {
    const kind = kindNameOf(definition);
    const advice = `register an informer source for ${kind}, or write it with context.client`;
    if (unsuitable !== undefined) {
      const isPart = viewOf(unsuitable) !== undefined;
      const why = isPart ? `keeps only a part of each ${kind}, so none can` : `is no informer, so ${kind} cannot`;
      return new Error(`event source "${unsuitable.name}" ${why} be written through it; ${advice}`);
    }
    const { sources, primary } = this.#options;
    const types = sources.names().flatMap((name) => nameOfType(sources.get(name)?.type) ?? []);
    const watched = [...new Set([kindNameOf(primary.definition), ...types])].join(", ");
    return new Error(`no event source watches ${kind}, only ${watched}; ${advice}`);
  }
}

function changeFinalizers(draft: unknown, change: (finalizers: readonly string[]) => string[]): void {
  const { metadata } = draft as Draft<KubernetesObject>;
  metadata.finalizers = change(metadata.finalizers ?? []);
}

/** Returns whether an object has a finalizer. */
export function hasFinalizer({ metadata }: KubernetesObject, finalizer: string): boolean {
  return metadata.finalizers?.includes(finalizer) === true;
}

type WritableSource = NamedSource & { readonly view: ResourceView };

function isWritable(source: NamedSource): source is WritableSource {
  return viewOf(source)?.isPartial === false;
}

/**
 * How to send a write and handle its event.
 *
 * - `matchAndFilter`: skips the write if it would change nothing. Its event triggers no reconcile.
 * - `filterWithOptimisticLocking`: the same, and the write fails with a conflict (409) unless the object has the given resourceVersion.
 * - `forceFilter`: sends the write without comparing. Its event triggers no reconcile.
 * - `cacheOnly`: the next read returns the response. Its event triggers a reconcile, like that of any other client's write.
 *
 * An event is filtered only if the response proves that it is the write's own. Changes by other clients always trigger a reconcile.
 */
export type WriteMode = "matchAndFilter" | "filterWithOptimisticLocking" | "forceFilter" | "cacheOnly";

/** Options of a write. */
export interface OperationOptions<Resource extends KubernetesObject = KubernetesObject> {
  readonly mode?: WriteMode;
  /** Returns whether the write would change nothing. Default: the matcher for the verb of the write. False: nothing is compared */
  readonly matcher?: false | Matcher<Resource>;
}

/** The result of a write. The object is frozen, like the objects of the cache. */
export interface ResourceWrite<Resource extends KubernetesObject = KubernetesObject> {
  readonly kind: "created" | "updated" | "unchanged";
  readonly object: Resource;
}

/** Some fields of a value. null removes a field of the live object. */
export type MergePatchOf<Value> = Value extends readonly unknown[]
  ? Value
  : Value extends object
    ? { readonly [Name in keyof Value]?: MergePatchOf<Value[Name]> | null | undefined }
    : Value;

/** A JSON merge patch of the object that its metadata names. */
export type MergePatchResource<Resource extends KubernetesObject> = MergePatchOf<Omit<Resource, "metadata">> & {
  readonly metadata: ObjectRef & MergePatchOf<Omit<Resource["metadata"], "name" | "namespace">>;
};

/** An object without apiVersion and kind, which the class defines. */
export type WholeResource<Resource extends KubernetesObject> = WholeObject<Resource>;

/** A change that is computed again from a fresh read after each conflict. */
export interface RetriedPatch<Resource extends KubernetesObject> {
  /** Modifies a copy of the object, or returns a modified one. */
  readonly change: (draft: Draft<Resource>) => Resource | void;
  /** Returns whether an object needs the change. Default: every object does */
  readonly isNeeded?: (object: Resource) => boolean;
  readonly mode?: "matchAndFilter" | "cacheOnly";
}

interface OperationDependencies {
  readonly sender: Sender;
  readonly cause?: WriteCause | undefined;
  /** The finalizer that the runtime manages on these objects. An apply without finalizers does not remove it. */
  readonly finalizer?: string | undefined;
  /** The types of the conditions that the runtime applies. An apply of the status without them does not remove them. */
  readonly conditionTypes?: ReadonlySet<string> | undefined;
  readonly isUrgent?: boolean;
}

/**
 * Writes objects of one kind so that the next read returns the new state and no reconcile is triggered. Methods ending in Status write only the
 * status.
 */
export class KindOperations<Resource extends KubernetesObject, Input = WholeObject<Resource>> {
  readonly #target: WriteTarget;
  readonly #dependencies: OperationDependencies;

  constructor(target: WriteTarget, dependencies: OperationDependencies) {
    this.#target = target;
    this.#dependencies = dependencies;
  }

  /**
   * Writes some fields of an object with server-side apply, taking ownership of them from other field managers. Creates the object if it does not
   * exist.
   */
  async apply(desired: PartialResource<Resource>, options?: OperationOptions<Resource>) {
    return this.#write(applyOf(this.#target, desired as ObjectBody), options);
  }

  /** Writes the status of an object with server-side apply. */
  async applyStatus(desired: PartialResource<Resource>, options?: OperationOptions<Resource>) {
    return this.#write(applyOf(this.#target, desired as ObjectBody, "status"), options);
  }

  /** Returns whether an apply of the status would change nothing. */
  isStatusApplied(desired: PartialResource<Resource>): boolean {
    const write = this.#withKept(applyOf(this.#target, desired as ObjectBody, "status"));
    return this.#dependencies.sender.matcher.matches(write, this.#target.cache.get(keyOf(desired.metadata)));
  }

  /** Replaces an object with a PUT. In the default mode, it must contain the resourceVersion from which it was computed. */
  async update(desired: WholeResource<Resource>, options?: OperationOptions<Resource>) {
    return this.#write(updateOf(this.#target, desired as ObjectBody), {
      mode: "filterWithOptimisticLocking",
      ...options,
    });
  }

  /** Replaces the status of an object with a PUT. */
  async updateStatus(desired: WholeResource<Resource>, options?: OperationOptions<Resource>) {
    return this.#write(updateOf(this.#target, desired as ObjectBody, "status"), {
      mode: "filterWithOptimisticLocking",
      ...options,
    });
  }

  /** Creates an object. Throws an ApiError with code 409 if it already exists. */
  async create(
    desired: NewResource<Input, Resource> | WholeResource<Resource>,
    options: { readonly mode?: "forceFilter" | "cacheOnly" } = {},
  ) {
    return this.#write(createOf(this.#target, desired as ObjectBody), { mode: "forceFilter", ...options });
  }

  /**
   * Changes an object with a JSON patch: a list of operations, or the difference between `object`, as the caller read it, and the result of a
   * function that modifies a copy of it.
   */
  async jsonPatch(object: Resource, change: JsonPatchChange<Resource>, options?: OperationOptions<Resource>) {
    return this.#write(jsonPatchOf(this.#target, object, change), options);
  }

  /** Changes the status of an object with a JSON patch. */
  async jsonPatchStatus(object: Resource, change: JsonPatchChange<Resource>, options?: OperationOptions<Resource>) {
    return this.#write(jsonPatchOf(this.#target, object, change, "status"), options);
  }

  /** Changes an object with a JSON merge patch. Fields that it does not contain are kept; null removes a field. */
  async mergePatch(patch: MergePatchResource<Resource>, options?: OperationOptions<Resource>) {
    return this.#write(mergePatchOf(this.#target, patch as unknown as ObjectBody), options);
  }

  /** Changes the status of an object with a JSON merge patch. */
  async mergePatchStatus(patch: MergePatchResource<Resource>, options?: OperationOptions<Resource>) {
    return this.#write(mergePatchOf(this.#target, patch as unknown as ObjectBody, "status"), options);
  }

  /**
   * Changes an object with a JSON patch. After a conflict or a lost response, computes it again from a fresh read. Returns undefined if the object no
   * longer exists.
   */
  async patchOnLatest(
    object: Resource,
    { change, isNeeded = () => true, mode = "matchAndFilter" }: RetriedPatch<Resource>,
  ): Promise<ResourceWrite<Resource> | undefined> {
    const patch = async ({ object }: DecodedResource): Promise<ResourceWrite<Resource>> => {
      const current = object as Resource;
      if (!isNeeded(current)) return { kind: "unchanged", object: current };
      return this.#write(locked(jsonPatchOf(this.#target, current, change)), { mode });
    };
    const latest = latestOf(this.#target.cache, object);
    // If another client has reverted the change, the object may not exist at all any more, which only the server can tell.
    const { sender } = this.#dependencies;
    return retryOnConflict({ object: isNeeded(latest) ? latest : object }, patch, { sender, target: this.#target });
  }

  // An apply gives up fields that it does not contain: the finalizer and, in a status without a status subresource, all finalizers.
  #withKept(write: Write): Write {
    if (write.verb !== "apply") return write;
    const { finalizer, sender } = this.#dependencies;
    const { definition, cache } = this.#target;
    const { ref, body } = write;
    const isStatus = write.part === "status";
    const { metadata } = body as ObjectBody;
    if (isStatus && definition.hasStatusSubresource) return this.#withConditions(write);
    if (metadata.finalizers !== undefined) return write;
    const live = cache.get(keyOf(ref));
    const applied = appliedFinalizers((live && sender.matcher.ownedFields(live, "object"))?.fieldsV1 ?? "");
    const { finalizers = [] } = live?.object.metadata ?? {};
    const kept = applied.filter((each) => (isStatus ? finalizers.includes(each) : each === finalizer));
    return kept.length === 0 ? write : withBody(write, { ...body, metadata: { ...metadata, finalizers: kept } });
  }

  // An apply of the status gives up conditions that it does not contain.
  #withConditions(write: Write): Write {
    const { conditionTypes, sender } = this.#dependencies;
    const live = conditionTypes && this.#target.cache.get(keyOf(write.ref));
    if (live === undefined) return write;
    const applied = sender.matcher.extract(this.#target, "status", live) as Partial<WithConditions>;
    const body = write.body as Pick<WithConditions, "status">;
    const stated = body.status?.conditions ?? [];
    const kept = (applied?.status?.conditions ?? []).filter(
      ({ type }) => conditionTypes!.has(type) && !stated.some((each) => each.type === type),
    );
    if (kept.length === 0) return write;
    return withBody(write, { ...body, status: { ...body.status, conditions: [...stated, ...kept] } });
  }

  async #write(
    stated: Write,
    { mode = "matchAndFilter", matcher }: OperationOptions<Resource> = {},
  ): Promise<ResourceWrite<Resource>> {
    const { cache } = this.#target;
    const { sender, cause, isUrgent = false } = this.#dependencies;
    this.#check(stated, mode, matcher);
    const kept = this.#withKept(stated);
    const write = mode === "filterWithOptimisticLocking" ? locked(kept) : kept;
    const key = keyOf(write.ref);
    cache.requireWhole(key);
    // An evicted object is loaded, so that it can be compared.
    if (cache.has(key) && cache.get(key) === undefined) await cache.load([key]);
    const before = cache.get(key);
    const live = (write.given ?? before?.object) as Resource | undefined;
    const isCompared = matcher !== false && mode !== "forceFilter" && write.verb !== "create" && live !== undefined;
    if (isCompared && this.#matches(write, { stated, live, before }, matcher)) {
      sender.noteMatch(write, cause);
      return { kind: "unchanged", object: (before?.object as Resource | undefined) ?? live };
    }
    const sent = await sender.send<Resource>({ ...write, before, cause, isUrgent, isFiltered: mode !== "cacheOnly" });
    // The caller must know. Its reconcile is retried after the backoff.
    if (sent.kind === "postponed") throw createPostponedError(sent.postponed);
    deepFreeze(sent.entry.object);
    return { kind: sent.kind, object: sent.entry.object };
  }

  // A matcher of the user compares the object of the user, without a lock and without the fields that an apply repeats.
  #matches(
    write: Write,
    { stated, live, before }: { stated: Write; live: Resource; before: DecodedResource | undefined },
    matcher: Matcher<Resource> | undefined,
  ): boolean {
    const { verb } = write;
    if (matcher === undefined && verb === "apply") return this.#dependencies.sender.matcher.matches(write, before);
    const desired = desiredOf(stated, live) as Partial<Unstored<Resource>> | undefined;
    const usual = (verb === "update" ? updateMatcher : patchMatcher) as unknown as Matcher<Resource>;
    const { definition } = this.#target;
    const isStatus = write.part === "status";
    return desired !== undefined && (matcher ?? usual)({ definition, verb, isStatus, desired, live });
  }

  #check({ verb, part, ref, version }: Write, mode: WriteMode, matcher: unknown): void {
    const { definition } = this.#target;
    const what = `${verb}${part === "status" ? "Status" : ""} of ${describeObject(definition, ref)}`;
    if (verb === "create" && (matcher !== undefined || (mode !== "forceFilter" && mode !== "cacheOnly")))
      throw new Error(`${what} has nothing to compare with; use mode forceFilter or cacheOnly, without a matcher`);
    if (mode === "forceFilter" && matcher)
      throw new Error(`${what} compares with nothing in mode forceFilter; leave the matcher out`);
    if (mode === "matchAndFilter" && matcher === false)
      throw new Error(`${what} needs a matcher in mode matchAndFilter; choose forceFilter to write without comparing`);
    if (mode === "filterWithOptimisticLocking" && version === undefined)
      throw new Error(
        `${what} states no metadata.resourceVersion; write the object as it was read, or in another mode`,
      );
  }
}
