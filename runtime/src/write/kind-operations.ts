import {
  keyOf,
  type KubernetesObject,
  type ObjectRef,
  type PartialResource,
  type Draft,
  describeObject,
} from "../base/kubernetes-object.js";
import type { NewResource, Unstored, WholeObject } from "../base/resource-definition.js";
import { deepFreeze } from "../cache/deep-freeze.js";
import type { DecodedResource } from "../base/decoded-resource.js";
import { patchMatcher, updateMatcher, type Matcher } from "../match/matchers.js";
import { appliedFinalizers } from "../match/owned-fields.js";
import type { WriteTarget } from "./send/apply-matcher.js";
import { latestOf, onLatest } from "./send/on-latest.js";
import {
  applicationOf,
  locked,
  planApply,
  planCreate,
  planJsonPatch,
  planMergePatch,
  planUpdate,
  type JsonPatchChange,
  type PlannedWrite,
  type Stated,
} from "./send/plan.js";
import { createPostponedError, type WriteCause } from "./send/postponed-write.js";
import type { Sender } from "./send/send.js";

/**
 * What is made of the event that a write causes.
 *
 * - `matchAndFilter`: nothing is sent if the write would change nothing; its event does not cause a reconcile.
 * - `filterWithOptimisticLocking`: the same, and the write fails with a conflict (409) unless the object has the version that is stated.
 * - `forceFilter`: sent without comparing; its event does not cause a reconcile.
 * - `cacheOnly`: the next read sees the answer; its event causes a reconcile like that of anybody's write.
 *
 * An event is kept from the controller only if the answer proves that it is the write's own: what others do is always told.
 */
export type WriteMode = "matchAndFilter" | "filterWithOptimisticLocking" | "forceFilter" | "cacheOnly";

/** How a write is made. */
export interface OperationOptions<Resource extends KubernetesObject = KubernetesObject> {
  readonly mode?: WriteMode;
  /** Tells whether the write would change nothing; there is one for each way to write. False: nothing is compared. */
  readonly matcher?: false | Matcher<Resource>;
}

/** The outcome of a write. The object is frozen, like the objects of the cache. */
export interface ResourceWrite<Resource extends KubernetesObject = KubernetesObject> {
  readonly kind: "created" | "updated" | "unchanged";
  readonly object: Resource;
}

/** Some of the fields of a value; null removes a field that live has. */
export type MergePatchOf<Value> = Value extends readonly unknown[]
  ? Value
  : Value extends object
    ? { readonly [Name in keyof Value]?: MergePatchOf<Value[Name]> | null | undefined }
    : Value;

/** A JSON merge patch of the object that its metadata name. */
export type MergePatchResource<Resource extends KubernetesObject> = MergePatchOf<Omit<Resource, "metadata">> & {
  readonly metadata: ObjectRef & MergePatchOf<Omit<Resource["metadata"], "name" | "namespace">>;
};

/** An object without what the class says anyway. */
export type WholeResource<Resource extends KubernetesObject> = WholeObject<Resource>;

/** A change that is made anew on what is there, until it meets no conflict. */
export interface RetriedPatch<Resource extends KubernetesObject> {
  /** Changes a copy of the object, or returns a changed one. */
  readonly change: (draft: Draft<Resource>) => Resource | void;
  /** Tells whether an object has to be changed; without it every object has. */
  readonly isNeeded?: (object: Resource) => boolean;
  readonly mode?: "matchAndFilter" | "cacheOnly";
}

interface OperationDependencies {
  readonly sender: Sender;
  readonly cause?: WriteCause | undefined;
  /** The finalizer that the runtime itself puts on these objects; an apply that states no finalizers does not take it away. */
  readonly finalizer?: string | undefined;
  readonly isUrgent?: boolean;
}

/** Writes the objects of one kind so that the next read sees it and no reconcile comes of it. What ends in Status writes that and nothing else. */
export class KindOperations<Resource extends KubernetesObject, Input = WholeObject<Resource>> {
  readonly #target: WriteTarget;
  readonly #dependencies: OperationDependencies;

  constructor(target: WriteTarget, dependencies: OperationDependencies) {
    this.#target = target;
    this.#dependencies = dependencies;
  }

  /** Applies some fields of an object server-side, taking them over from others; it is created if there is none. */
  async apply(desired: PartialResource<Resource>, options?: OperationOptions<Resource>) {
    return this.#write(this.#planApply(desired, false), options);
  }

  /** Applies the status of an object server-side. */
  async applyStatus(desired: PartialResource<Resource>, options?: OperationOptions<Resource>) {
    return this.#write(this.#planApply(desired, true), options);
  }

  /** Replaces an object by a PUT; unless another mode is given, it has to state the version from which it was made. */
  async update(desired: WholeResource<Resource>, options?: OperationOptions<Resource>) {
    const plan = planUpdate(this.#target.definition, desired as Stated, false);
    return this.#write(plan, { mode: "filterWithOptimisticLocking", ...options });
  }

  /** Replaces the status of an object by a PUT. */
  async updateStatus(desired: WholeResource<Resource>, options?: OperationOptions<Resource>) {
    const plan = planUpdate(this.#target.definition, desired as Stated, true);
    return this.#write(plan, { mode: "filterWithOptimisticLocking", ...options });
  }

  /** Creates an object; throws an ApiError with code 409 if it exists. */
  async create(
    desired: NewResource<Input, Resource> | WholeResource<Resource>,
    options: { readonly mode?: "forceFilter" | "cacheOnly" } = {},
  ) {
    return this.#write(planCreate(this.#target.definition, desired as Stated), { mode: "forceFilter", ...options });
  }

  /** Changes an object by a JSON patch: operations, or what a function makes of a copy of `object`, which is what the caller read. */
  async jsonPatch(object: Resource, change: JsonPatchChange<Resource>, options?: OperationOptions<Resource>) {
    return this.#write(planJsonPatch(object, change, false), options);
  }

  /** Changes the status of an object by a JSON patch. */
  async jsonPatchStatus(object: Resource, change: JsonPatchChange<Resource>, options?: OperationOptions<Resource>) {
    return this.#write(planJsonPatch(object, change, true), options);
  }

  /** Changes an object by a JSON merge patch; fields that it does not mention stay, null removes a field. */
  async mergePatch(patch: MergePatchResource<Resource>, options?: OperationOptions<Resource>) {
    return this.#write(planMergePatch(patch as unknown as Stated, false), options);
  }

  /** Changes the status of an object by a JSON merge patch. */
  async mergePatchStatus(patch: MergePatchResource<Resource>, options?: OperationOptions<Resource>) {
    return this.#write(planMergePatch(patch as unknown as Stated, true), options);
  }

  /** Changes an object by a JSON patch, made anew on what is there after a conflict or a lost answer; undefined if the object is gone. */
  async patchOnLatest(
    object: Resource,
    { change, isNeeded = () => true, mode = "matchAndFilter" }: RetriedPatch<Resource>,
  ): Promise<ResourceWrite<Resource> | undefined> {
    const patch = async ({ object }: DecodedResource): Promise<ResourceWrite<Resource>> => {
      const current = object as Resource;
      if (!isNeeded(current)) return { kind: "unchanged", object: current };
      return this.#write(locked(planJsonPatch(current, change, false)), { mode });
    };
    const latest = latestOf(this.#target.cache, object);
    // What others took back may be gone altogether, which only the server can tell.
    const { sender } = this.#dependencies;
    return onLatest({ object: isNeeded(latest) ? latest : object }, patch, { sender, target: this.#target });
  }

  // An apply of the object gives up what it does not repeat: the finalizer, and with a status without subresource all finalizers.
  #planApply(desired: PartialResource<Resource>, isStatus: boolean): PlannedWrite {
    const { finalizer, sender } = this.#dependencies;
    const { definition, cache } = this.#target;
    const plan = planApply(definition, desired as Stated, isStatus);
    const { metadata } = plan.body as Stated;
    if ((isStatus && definition.hasStatusSubresource) || metadata.finalizers !== undefined) return plan;
    const live = cache.get(keyOf(plan.ref));
    const applied = appliedFinalizers((live && sender.matcher.ownedFields(live, "object"))?.fieldsV1 ?? "");
    const { finalizers = [] } = live?.object.metadata ?? {};
    const kept = applied.filter((each) => (isStatus ? finalizers.includes(each) : each === finalizer));
    return kept.length === 0 ? plan : { ...plan, body: { ...plan.body, metadata: { ...metadata, finalizers: kept } } };
  }

  async #write(
    stated: PlannedWrite,
    { mode = "matchAndFilter", matcher }: OperationOptions<Resource> = {},
  ): Promise<ResourceWrite<Resource>> {
    const { cache } = this.#target;
    const { sender, cause, isUrgent = false } = this.#dependencies;
    this.#check(stated, mode, matcher);
    const plan = mode === "filterWithOptimisticLocking" ? locked(stated) : stated;
    const key = keyOf(plan.ref);
    cache.requireWhole(key);
    // What had to make room is compared, too.
    if (cache.has(key) && cache.get(key) === undefined) await cache.load([key]);
    const before = cache.get(key);
    const live = (plan.given ?? before?.object) as Resource | undefined;
    const isCompared = matcher !== false && mode !== "forceFilter" && plan.verb !== "create" && live !== undefined;
    if (isCompared && this.#matches(plan, { live, before }, matcher)) {
      sender.noteMatch(this.#target, plan, cause);
      return { kind: "unchanged", object: (before?.object as Resource | undefined) ?? live };
    }
    const write = { target: this.#target, plan, before, cause, isUrgent, isFiltered: mode !== "cacheOnly" };
    const sent = await sender.send<Resource>(write);
    // The caller has to know; its reconcile is tried again when the pause is over.
    if (sent.kind === "postponed") throw createPostponedError(sent.postponed);
    deepFreeze(sent.entry.object);
    return { kind: sent.kind, object: sent.entry.object };
  }

  #matches(
    plan: PlannedWrite,
    { live, before }: { live: Resource; before: DecodedResource | undefined },
    matcher: Matcher<Resource> | undefined,
  ): boolean {
    const { verb, isStatus } = plan;
    const { definition } = this.#target;
    const application = applicationOf(this.#target, plan);
    if (matcher === undefined && application !== undefined)
      return this.#dependencies.sender.matcher.matches(application, before);
    const desired = plan.desiredOf(live) as Partial<Unstored<Resource>> | undefined;
    const usual = (verb === "update" ? updateMatcher : patchMatcher) as unknown as Matcher<Resource>;
    return desired !== undefined && (matcher ?? usual)({ definition, verb, isStatus, desired, live });
  }

  #check({ verb, isStatus, ref, version }: PlannedWrite, mode: WriteMode, matcher: unknown): void {
    const { definition } = this.#target;
    const what = `${verb}${isStatus ? "Status" : ""} of ${describeObject(definition, ref)}`;
    if (verb === "create" && (matcher !== undefined || (mode !== "forceFilter" && mode !== "cacheOnly")))
      throw new Error(`${what} is compared with nothing, so its mode is forceFilter or cacheOnly, without a matcher`);
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
