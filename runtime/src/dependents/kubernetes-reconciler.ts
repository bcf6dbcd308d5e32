import { isDeepStrictEqual } from "node:util";
import type { PrimaryCause } from "../apply/write.js";
import type { Writer } from "../apply/writer.js";
import { type ApiError, TerminalError, isImmutableError } from "../base/errors.js";
import {
  type DecodedResource,
  type Draft,
  type KubernetesObject,
  type ObjectBody,
  type ObjectKey,
  type ObjectMeta,
  type ResourceDefinition,
  describeObject,
  isTerminating,
  keyOf,
  uidOf,
} from "../base/kubernetes-object.js";
import { messageOf } from "../base/logger.js";
import {
  CONTROLLER_LABEL,
  DEPENDENT_ITEM,
  DEPENDENT_NAME,
  HELD_INDEX,
  LINK_PROOF,
  OBJECT_KEY,
  factsOf,
  hasLink,
  holdFinalizerOf,
  isOwnedBy,
  isWrittenBy,
  labelValueOf,
  linksTo,
  needsProof,
} from "../base/primary-link.js";
import type { ProofKeys } from "../base/proof-key.js";
import { userCalls } from "../base/user-calls.js";
import type { ApiClient, DeleteOptions } from "../client/api-client.js";
import type { KnownObjects } from "../sources/dependent-sources.js";
import { desiredItemsOf } from "../workflow/bulk.js";
import {
  type CleanupHolds,
  type DependentReconciler,
  type DependentRun,
  type FindRun,
  type HoldRun,
  type LinkedPrimary,
  type Live,
  type SeenVersions,
  UNCHANGED,
  type Wanted,
  type WriteOutcome,
  argumentsOf,
  discoveredIn,
} from "../workflow/dependent-reconciler.js";
import {
  type DependentArguments,
  type KubernetesDependent,
  deletionOf,
  hasName,
  isHeldForCleanup,
  ownsData,
} from "../workflow/workflow-definition.js";
import type { RememberedState } from "./external-state.js";
import {
  LiveObjects,
  type LiveObjectsOptions,
  UnlabelledObjects,
  isUnserved,
  referencedKeyOf,
} from "./live-objects.js";
import { OnceRuns } from "./once.js";

const MOST_LOOKED_UP = 1_000;
const TERMINATING: WriteOutcome = { kind: "terminating" };

interface KubernetesReconcilerOptions extends LiveObjectsOptions {
  readonly writer: Writer;
  /** The finalizer that the controller adds to its primaries. */
  readonly finalizer: string;
  readonly proofKeys?: ProofKeys | undefined;
  /** The recorded runs; required for `mode: once`. */
  readonly memory?: RememberedState | undefined;
  /** A function if the client exists only while a watch runs. */
  readonly client: ApiClient | (() => ApiClient);
}

/** Finds, writes and deletes the objects of one Kubernetes dependent. */
export class KubernetesReconciler implements DependentReconciler {
  readonly source: KnownObjects;
  readonly capabilities: DependentReconciler["capabilities"];
  readonly objects: LiveObjects;
  readonly holds: FinalizerHolds;
  readonly #unlabelled: UnlabelledObjects;
  readonly #once: OnceRuns | undefined;
  readonly #options: KubernetesReconcilerOptions;
  readonly #label: string;
  readonly #isGarbageCollected: boolean;
  /** UIDs of primaries whose cleanup looked up objects by name and found none. */
  readonly #lookedUp = new Set<string>();
  /** UIDs of objects whose deletion the operator has requested. */
  readonly #deleted = new Set<string>();

  constructor(options: KubernetesReconcilerOptions) {
    const { definition, memory } = options;
    const { mode, operations } = definition;
    const isWritten = mode !== "readOnly";
    this.#isGarbageCollected = deletionOf(definition) === "garbageCollected";
    this.capabilities = { write: isWritten, remove: isWritten && operations?.delete !== false };
    this.source = options.source;
    this.#options = options;
    this.#label = labelValueOf(options.controller);
    this.objects = new LiveObjects(options);
    this.#unlabelled = new UnlabelledObjects({ ...options, client: () => this.client });
    const { objects } = this;
    this.holds = new FinalizerHolds({ ...options, objects, causeOf: (run) => this.#causeOf(run) });
    this.#once = mode === "once" ? new OnceRuns({ definition, memory: memory!, objects }) : undefined;
  }

  get client(): ApiClient {
    const { client } = this.#options;
    return typeof client === "function" ? client() : client;
  }

  isNamed({ primary }: FindRun): boolean {
    const { definition } = this.#options;
    return definition.ref === undefined || referencedKeyOf(definition, primary) !== undefined;
  }

  isCollected({ primary }: FindRun): boolean {
    const { definition } = this.#options;
    // An earlier version of the operator may have linked an object by annotations.
    const isAnnotated = ({ name, live }: { name: string; live: KubernetesObject }) =>
      hasName(definition, name) && !isOwnedBy(live.metadata, primary.metadata);
    const isDeleted = () => this.capabilities.remove && this.objects.leftovers(primary, () => false).some(isAnnotated);
    return this.#isGarbageCollected && !isDeleted();
  }

  isPartlyUnknown({ primary }: FindRun): boolean {
    const { resource, namespace } = this.#options.definition;
    // In all other cases, the watch is synced before the primary is reconciled.
    if (this.#isGarbageCollected || namespace !== undefined || resource.scope === "Cluster") return false;
    return this.source.unknownIn?.(keyOf(primary.metadata)) !== undefined;
  }

  unknownOf(run: FindRun, desired: unknown): string | undefined {
    if (!this.isPartlyUnknown(run)) return undefined;
    const { metadata } = run.primary;
    const isBulk = this.#options.definition.bulk !== undefined;
    const ofItems = (): unknown[] => (desired instanceof Map ? [...desired.values()] : Object.values(desired ?? {}));
    const items = isBulk ? ofItems() : [desired];
    for (const item of items) {
      const { namespace = metadata.namespace } = (item as Partial<KubernetesObject> | undefined)?.metadata ?? {};
      const unknown = this.source.unknownIn?.(keyOf(metadata), namespace);
      if (unknown !== undefined) return unknown;
    }
    return undefined;
  }

  complete(run: DependentRun, desired: unknown, item?: string): Wanted {
    const { definition: dependent } = this.#options;
    const wanted = this.#complete(run, desired, item);
    const rival = run.reconcile.notes.claim({ dependent: dependent.name, item }, this.objects.place, wanted.id);
    if (rival === dependent.name) return wanted;
    throw new TerminalError(
      `desired() of dependent "${dependent.name}" returned ${dependent.resource.kind} "${wanted.id}", which dependent "${rival}" also returns; ` +
        "give one of them another name",
    );
  }

  #complete({ primary, reconcile }: DependentRun, desired: unknown, item: string | undefined): Wanted {
    const { definition: dependent } = this.#options;
    const { definition } = reconcile;
    const { namespaces: known = reconcile.namespaces } = this.source;
    const ofSource = known === "all" ? undefined : known;
    const namespaces = dependent.namespace === undefined ? ofSource : [dependent.namespace];
    const hold = isHeldForCleanup(dependent) && !isTerminating(primary) ? this.holds.finalizerOf(primary) : undefined;
    const facts = { dependent, primary, definition, namespaces, item, label: this.#label, hold };
    const object = completeDesired(desired, facts);
    return { id: keyOf(object.metadata), object, item };
  }

  find(run: FindRun, wanted?: Wanted): DecodedResource | undefined {
    if (wanted === undefined) return this.objects.single(run);
    const discovered = this.objects.discovered(run, wanted.item);
    if (discovered !== undefined && keyOf(discovered.object.metadata) === wanted.id) return discovered;
    const tied = this.objects.linked(run.primary, wanted.id);
    // With `mode: once`, the existing object is used even if desired() now returns another name.
    return tied === undefined && this.#once !== undefined && wanted.item === undefined
      ? this.objects.single(run)
      : tied;
  }

  async discover(run: DependentRun, desire: () => Promise<unknown>, { isConfirming = false } = {}): Promise<void> {
    const { operations, bulk } = this.#options.definition;
    const { primary } = run;
    const { notes } = run.reconcile;
    const nameless = operations?.create !== undefined && bulk === undefined ? this.objects.unnamed(primary) : [];
    const { uid = "" } = primary.metadata;
    const isDeleted = isTerminating(primary);
    const isOver = isDeleted ? !this.#lookedUp.has(uid) : isConfirming;
    const isCleanup = isOver && !this.#isGarbageCollected;
    if (nameless.length === 0 && !isCleanup) return;
    const stated = await this.#statedBy(run, { desire, isCleanup });
    const { name } = this.#options.definition;
    let isFound = false;
    for (const { id, item, object } of stated ?? []) {
      if (notes.claimOf(this.objects.place, id) !== undefined) continue;
      const { metadata } = object as ObjectBody;
      const linked = isCleanup ? this.objects.linked(primary, id) : undefined;
      const named = nameless.includes(id) ? this.source.cache.get(id as ObjectKey) : undefined;
      const entry = linked ?? named ?? (isCleanup ? await this.#read(run, metadata) : undefined);
      if (entry === undefined) continue;
      isFound = true;
      notes.discovered.add({ dependent: name, item }, { entry });
    }
    if (isCleanup && (await this.#discoverUnlabelled(run, { isFresh: stated === undefined }))) isFound = true;
    if (!isDeleted || isFound) return;
    if (this.#lookedUp.size >= MOST_LOOKED_UP) this.#lookedUp.clear();
    this.#lookedUp.add(uid);
  }

  /** Returns the desired objects, or undefined if `desired` throws in a cleanup. */
  async #statedBy(
    run: DependentRun,
    { desire, isCleanup }: { readonly desire: () => Promise<unknown>; readonly isCleanup: boolean },
  ): Promise<readonly Wanted[] | undefined> {
    try {
      return this.#completeAll(run, await desire());
    } catch (error) {
      if (!isCleanup) throw error;
      // Its inputs may already be deleted, which must not block the deletion of the primary.
      const { name } = this.#options.definition;
      const text = `desired() cannot determine the object of dependent "${name}": ${messageOf(error)}`;
      run.context.logger.debug({ dependent: name }, text);
      return undefined;
    }
  }

  /** Discovers the objects of the primary whose label was removed by another client. Returns whether there are any. */
  async #discoverUnlabelled(run: DependentRun, { isFresh }: { readonly isFresh: boolean }): Promise<boolean> {
    const { definition } = this.#options;
    const { primary } = run;
    const { notes, isPrimaryUnknown } = run.reconcile;
    let isFound = false;
    // If the primary was deleted before the operator started, only its links are known, so desired() usually throws.
    const found = await this.#unlabelled.find(run, { isFresh: isFresh && isPrimaryUnknown !== true });
    for (const { name, namespace, annotations } of found) {
      if (notes.claimOf(this.objects.place, keyOf({ name, namespace })) !== undefined) continue;
      const { annotations: link } = linksTo(primary);
      const entry = await this.#read(run, {
        name,
        ...(namespace === undefined ? {} : { namespace }),
        annotations: link,
      });
      if (entry === undefined || !(await this.#unlabelled.isLinked(run, entry.object))) continue;
      isFound = true;
      const claim = { dependent: definition.name, item: annotations?.[DEPENDENT_ITEM] };
      const other = notes.discovered.of(claim.dependent, claim.item);
      if (other === undefined) notes.discovered.add(claim, { entry });
      // The dependent previously used another name for its object.
      else if (uidOf(other) !== uidOf(entry)) await this.remove(run, entry);
    }
    return isFound;
  }

  async #read(run: DependentRun, desired: ObjectBody["metadata"]): Promise<DecodedResource | undefined> {
    const { writer, definition } = this.#options;
    try {
      return await writer.findOwn(this.#target, desired, this.#causeOf(run));
    } catch (error) {
      if (await isUnserved(definition.resource, { error, client: this.client })) return undefined;
      throw error;
    }
  }

  // The objects need not exist, so they are not claimed. Items in the watch need no lookup.
  #completeAll(run: DependentRun, desired: unknown): readonly Wanted[] {
    if (this.#options.definition.bulk === undefined) return [this.#complete(run, desired, undefined)];
    const known = this.findItems(run);
    return [...desiredItemsOf(desired)].flatMap(([item, each]) =>
      known.has(item) ? [] : this.#complete(run, each, item),
    );
  }

  findItems(run: FindRun): ReadonlyMap<string, Live> {
    return this.objects.items(run);
  }

  lastSeen(run: FindRun): Live | undefined {
    const isItem = (object: KubernetesObject) => this.objects.keyOfItem(run.primary, object) !== undefined;
    const isSingle = (object: KubernetesObject) => !this.capabilities.write || !isItem(object);
    const object = this.#lastSeen(run).find(isSingle);
    return object && { object };
  }

  lastSeenItems(run: FindRun): ReadonlyMap<string, Live> {
    const items = new Map<string, Live>();
    for (const object of this.#lastSeen(run)) {
      const key = this.objects.keyOfItem(run.primary, object);
      if (key !== undefined && !items.has(key)) items.set(key, { object });
    }
    return items;
  }

  // Excludes objects that the operator deleted: user functions may wait until they no longer exist.
  #lastSeen(run: FindRun): readonly KubernetesObject[] {
    return this.objects.lastSeen(run).filter(({ metadata: { uid = "" } }) => !this.#deleted.has(uid));
  }

  findAgain({ object }: Live, run?: FindRun): DecodedResource | undefined {
    const { metadata } = object as KubernetesObject;
    const entry = this.source.cache.get(keyOf(metadata));
    if (entry?.object.metadata.uid === metadata.uid) return entry;
    return (run && discoveredIn(run))?.all.find((each) => uidOf(each) === metadata.uid);
  }

  async write(run: DependentRun, wanted: Wanted, found: Live | undefined, seen?: SeenVersions): Promise<WriteOutcome> {
    const proven = await this.#prove(run, wanted);
    const outcome = await this.#write(run, proven, { found: found as DecodedResource | undefined, seen });
    if (!this.#isGarbageCollected && outcome.kind !== "unseen") await this.#disown(run, proven);
    return outcome;
  }

  // Users of the namespace could write the same annotations, so the link needs a proof.
  async #prove(run: DependentRun, wanted: Wanted): Promise<Wanted> {
    const { definition, proofKeys } = this.#options;
    const { metadata } = wanted.object as ObjectBody;
    const { primary, context } = run;
    if (!needsProof(metadata, { primary, stated: definition.namespace }) || proofKeys === undefined) return wanted;
    const key = await proofKeys.load(context.signal);
    const annotations = {
      ...metadata.annotations,
      [LINK_PROOF]: key.sign(factsOf(metadata, primary.metadata.uid ?? "")),
    };
    return { ...wanted, object: { ...wanted.object, metadata: { ...metadata, annotations } } };
  }

  // After a change of the deletion policy, the object may still have an owner reference, because of which the garbage collector would delete it.
  async #disown(run: DependentRun, { id, object }: Wanted): Promise<void> {
    const { primary } = run;
    const { metadata: desired } = object as ObjectBody;
    const live = this.objects.linked(primary, id);
    if (!live || !isOwnedBy(live.object.metadata, primary.metadata) || isOwnedBy(desired, primary.metadata)) return;
    // Without the annotations, the owner reference is the only link of an object that another client created.
    if (isTerminating(live.object) || !hasLink(live.object.metadata, desired)) return;
    await this.#options.writer.disown(this.#target, live, this.#causeOf(run));
  }

  async #write(
    run: DependentRun,
    wanted: Wanted,
    { found, seen }: { found: DecodedResource | undefined; seen: SeenVersions | undefined },
  ): Promise<WriteOutcome> {
    const { mode, operations, released } = this.#options.definition;
    const desired = wanted.object as ObjectBody;
    const known = await this.#afterRemoval(found, wanted, run);
    const live = known?.object;
    if (live !== undefined && isTerminating(live))
      return this.#once?.nextOfTerminating(run, wanted, live) ?? TERMINATING;
    const isLeft = mode === "createOnly" || mode === "once" || operations?.update !== undefined;
    const isNamed = live === undefined || keyOf(live.metadata) === wanted.id;
    if (known !== undefined && isLeft && isNamed) await this.#restoreLink(desired, known, run);
    if (this.#once !== undefined) {
      const next = await this.#once.next(run, wanted, live);
      if (next.kind === "recreate") return this.#recreate(run, known!);
      if (next.kind !== "create") return next;
    }
    if (live !== undefined && mode === "createOnly") return UNCHANGED;
    const isMatch = live && (await this.#matches(desired, live, run));
    if (isMatch === true) return UNCHANGED;
    const apply = async (): Promise<WriteOutcome> => {
      try {
        return await this.#options.writer.apply(this.#target, desired, {
          live: known,
          existing: (object) => this.#decideExisting(object, run),
          // An adopted object that is never updated keeps its content.
          isLeft: mode === "createOnly" || mode === "once" || operations?.update === false,
          basis: seen && { version: known && this.#isOtherItem(known, wanted, run) ? undefined : seen.get(wanted.id) },
          isForced: isMatch === false,
          released,
          cause: this.#causeOf(run),
        });
      } catch (error) {
        if (known === undefined || !isImmutableError(error)) throw error;
        return this.#replace(run, { error, desired, live: known, isLiveRead: seen !== undefined });
      }
    };
    const name = live === undefined ? "create" : "update";
    const call = operations?.[name];
    if (call === undefined) return apply();
    const done =
      call !== false && (await callOperation({ name, call, args: { ...argumentsOf(run), desired, live } }, apply));
    // An operation that catches the error of a write, for example because of an immutable field, deletes the object to recreate it.
    if (done === "failed") return TERMINATING;
    // The update operation of the user did not write the adopted object, which still needs a link.
    if (done === "notCalled" && known !== undefined && run.reconcile.notes.discovered.isForeign(uidOf(known)))
      await this.#options.writer.tie(this.#target, known, { desired: desired.metadata, cause: this.#causeOf(run) });
    if (done === false || done === "notCalled") return live === undefined ? { kind: "absent" } : UNCHANGED;
    return done;
  }

  // `desired` saw the object as another item, so the item that it returned was missing.
  #isOtherItem({ object }: DecodedResource, { item }: Wanted, { reconcile }: DependentRun): boolean {
    const { metadata } = object;
    if (item === undefined || metadata.annotations?.[DEPENDENT_ITEM] === item) return false;
    return uidOf(reconcile.notes.discovered.of(this.#options.definition.name, item)) !== metadata.uid;
  }

  async remember(run: DependentRun, wanted: Wanted, live: Live, isReady: boolean): Promise<boolean> {
    if (this.#once === undefined) return false;
    return this.#once.remember(run, wanted, { object: live.object as KubernetesObject, isReady });
  }

  async #recreate(run: DependentRun, live: DecodedResource): Promise<WriteOutcome> {
    await this.#prepareDeletion(run, live);
    const options = { cause: this.#causeOf(run), propagationPolicy: "Foreground" } as const;
    await this.#options.writer.delete(this.#target, live.object, options);
    return TERMINATING;
  }

  // Deletes the object. A later reconcile creates it again when the deletion is complete.
  async #replace(run: DependentRun, { error, desired, live, isLiveRead }: ImmutableChange): Promise<WriteOutcome> {
    const { onImmutable = "fail", resource, name, mode } = this.#options.definition;
    const problem = (text: string) => {
      error.message += `; ${text}`;
      return error;
    };
    const advice =
      "revert the change, give the object another name, or set onImmutable: recreate to delete it and create it again";
    if (onImmutable !== "recreate" || mode === "createOnly") throw ownsData(resource) ? error : problem(advice);
    const { metadata } = live.object;
    const isOwn = isOwnedBy(metadata, run.primary.metadata) || this.objects.isProven(run.primary, keyOf(metadata));
    if (!isOwn || run.reconcile.notes.discovered.isForeign(metadata.uid))
      throw problem(
        "it is not deleted, because it was created by another client and does not belong to this primary yet",
      );
    if (isLiveRead)
      throw problem(`it is not deleted, because desired() of dependent "${name}" reads what would be lost with it`);
    if (leavesPods(resource, desired, live.object))
      throw problem("it is not deleted, because a StatefulSet with another selector cannot adopt the Pods of this one");
    const { writer } = this.#options;
    const deletion = await writer.checkReplacement(this.#target, desired, { cause: this.#causeOf(run), error });
    await this.#prepareDeletion(run, live);
    await writer.delete(this.#target, live.object, deletion);
    return TERMINATING;
  }

  async #decideExisting(live: KubernetesObject, run: DependentRun): Promise<"refuse" | "adopt"> {
    const { existing = "refuse", name, resource } = this.#options.definition;
    if (typeof existing === "string") return existing;
    const args = { ...argumentsOf(run), dependent: { name, definition: resource, client: this.client }, live };
    const call = { what: `existing of dependent "${name}"`, primary: keyOf(run.primary.metadata) };
    const result: unknown = await userCalls.track(call, () => (existing as (args: object) => unknown)(args));
    const isMet = typeof result === "boolean" ? result : (Object(result) as { isMet?: unknown }).isMet;
    if (typeof isMet !== "boolean")
      throw new TerminalError(`existing of dependent "${name}" returned ${typeof result} instead of true or false`);
    return isMet ? "adopt" : "refuse";
  }

  async remove(run: DependentRun, live: Live): Promise<void> {
    const { metadata } = live.object as KubernetesObject;
    const { notes } = run.reconcile;
    // The object was not adopted, so it is kept.
    if (notes.discovered.isForeign(metadata.uid)) return;
    const removal = this.#remove(run, live as DecodedResource);
    if (metadata.uid !== undefined) notes.removals.set(metadata.uid, removal);
    await removal;
  }

  linkedPrimaries(isKnown: (key: ObjectKey, uid: string) => boolean): readonly LinkedPrimary[] {
    return this.objects.linkedPrimaries(isKnown);
  }

  leftOf(primary: KubernetesObject): readonly string[] {
    const { definition } = this.#options;
    return this.objects
      .leftovers(primary, () => false)
      .filter(({ name, live }) => hasName(definition, name) && !isTerminating(live))
      .map(({ live }) => describeObject(definition.resource, live.metadata));
  }

  hasAny(primary: KubernetesObject): boolean {
    const { definition } = this.#options;
    const isOwn = ({ name, live }: { name: string; live: KubernetesObject }) =>
      hasName(definition, name) && (!this.#isGarbageCollected || !isOwnedBy(live.metadata, primary.metadata));
    const isLeft = this.capabilities.remove && this.objects.leftovers(primary, () => false).some(isOwn);
    return isLeft || this.holds.hasAny(primary);
  }

  isHeld(live: Live): boolean {
    const now = this.findAgain(live);
    return now !== undefined && isTerminating(now.object);
  }

  async #remove(run: DependentRun, live: DecodedResource): Promise<void> {
    const { definition, writer } = this.#options;
    const { notes } = run.reconcile;
    const cause = this.#causeOf(run);
    const remove = async (options?: DeleteOptions) => {
      await this.#prepareDeletion(run, live);
      if (definition.deletion === "orphan") await writer.untie(this.#target, live, cause);
      else if (!(await writer.delete(this.#target, live.object, { ...options, cause }))) return;
      notes.discovered.forget(live.object.metadata.uid);
    };
    const call = definition.operations?.delete;
    if (isTerminating(live.object)) return this.holds.release(run, live);
    if (call === false) return;
    if (call === undefined) return remove();
    const args = { ...argumentsOf(run), live: live.object };
    const done = await callOperation({ name: "delete", call, args }, remove);
    if (done !== undefined) notes.kept.add(live.object.metadata.uid);
  }

  async #prepareDeletion(run: DependentRun, live: DecodedResource): Promise<void> {
    const { uid = "" } = live.object.metadata;
    if (this.#deleted.size >= MOST_LOOKED_UP)
      for (const oldest of [...this.#deleted].slice(0, 1)) this.#deleted.delete(oldest);
    this.#deleted.add(uid);
    await this.holds.release(run, live);
  }

  // A step that times out aborts its write.
  #causeOf(run: DependentRun): PrimaryCause {
    const { primary, context, dependent = this.#options.definition.name } = run;
    const { tracing, onGivenUp } = run.reconcile;
    const { signal, logger } = context;
    const cause = { signal, logger, primary, dependent, onChange: tracing?.changed };
    return this.#isGarbageCollected ? cause : { ...cause, onGivenUp };
  }

  // Another dependent, to which the object belonged before, may be deleting it.
  async #afterRemoval(
    found: DecodedResource | undefined,
    { id }: Wanted,
    { primary, reconcile }: DependentRun,
  ): Promise<DecodedResource | undefined> {
    const removal = reconcile.notes.removals.get(uidOf(found) ?? "");
    if (removal === undefined) return found;
    await Promise.allSettled([removal]);
    return this.objects.linked(primary, id);
  }

  /** Calls the matcher of the user. Returns undefined if there is none, so that the writer compares. */
  async #matches(
    desired: ObjectBody,
    live: KubernetesObject,
    { context, primary }: DependentRun,
  ): Promise<boolean | undefined> {
    const { matcher, resource, name } = this.#options.definition;
    if (matcher === undefined) return undefined;
    // The matcher does not compare the link.
    if (!hasLink(live.metadata, desired.metadata)) return false;
    const { apiVersion, kind } = resource;
    const call = { what: `the matcher of dependent "${name}"`, primary: keyOf(primary.metadata) };
    const stated = { apiVersion, kind, ...desired };
    const isMatch: unknown = await userCalls.track(call, () =>
      matcher(stated as never, live as never, context as never),
    );
    if (typeof isMatch === "boolean") return isMatch;
    throw new TerminalError(`the matcher of dependent "${name}" returned ${typeof isMatch} instead of a boolean`);
  }

  // Restores the link of an object that is not updated: missing parts, and the new name of a renamed dependent.
  async #restoreLink({ metadata }: ObjectBody, live: DecodedResource, run: DependentRun): Promise<void> {
    const { definition, writer, controller, formerNames = [] } = this.#options;
    const { annotations } = live.object.metadata;
    const isRenamed =
      annotations?.[DEPENDENT_NAME] !== definition.name && hasName(definition, annotations?.[DEPENDENT_NAME]);
    const { discovered } = run.reconcile.notes;
    const isOwn = discovered.all.some((each) => uidOf(each) === uidOf(live)) && !discovered.isForeign(uidOf(live));
    if (!isRenamed && !isOwn && isWrittenBy(live.object.metadata, controller, ...formerNames) !== true) return;
    await writer.tie(this.#target, live, { desired: metadata, cause: this.#causeOf(run) });
  }

  get #target() {
    return { definition: this.#options.definition.resource, cache: this.source.cache };
  }
}

interface ImmutableChange {
  readonly error: ApiError;
  readonly desired: ObjectBody;
  readonly live: DecodedResource;
  readonly isLiveRead: boolean;
}

// Pods that the new StatefulSet does not select would still use the names of its Pods.
function leavesPods({ group, kind }: ResourceDefinition, desired: object, live: object): boolean {
  type Selecting = { readonly spec?: { readonly selector?: object } };
  const [wanted, known] = [desired, live].map((each) => (each as Selecting).spec?.selector);
  return group === "apps" && kind === "StatefulSet" && !isDeepStrictEqual(wanted, known);
}

interface OperationArguments extends DependentArguments<KubernetesObject, object> {
  readonly [name: string]: unknown;
}

// Calls an operation of the user. Its `next` calls `work` at most once, and only while the operation runs. Returns the result of `work`, or `failed`
// if the operation caught the error of `work`. Throws that error if the operation did not await `next`.
async function callOperation<Result>(
  { name, call, args }: { name: string; call: (args: never) => unknown; args: OperationArguments },
  work: (options?: DeleteOptions) => Promise<Result>,
): Promise<Result | "notCalled" | "failed"> {
  let done: Promise<Result> | undefined;
  let isOver = false;
  let wasAwaited = false;
  const pass = async (options?: DeleteOptions): Promise<void> => {
    if (isOver) {
      const problem = `next() was called after ${name}() returned; await it there`;
      args.context.logger.warn({}, problem);
      throw new Error(problem);
    }
    await (done ??= work(options).finally(() => (wasAwaited = !isOver)));
  };
  const next = (options?: DeleteOptions): Promise<void> => {
    const passed = pass(options);
    // If the operation does not await next(), its rejection must not end the process.
    passed.catch(() => {});
    return passed;
  };
  try {
    const what = `the ${name} operation of a dependent`;
    const own = { what, primary: keyOf(args.primary.metadata) };
    await userCalls.track(own, () => call({ ...args, next } as never));
  } finally {
    isOver = true;
    // The work must end before the step does.
    await Promise.allSettled([done]);
  }
  if (done === undefined) return "notCalled";
  return wasAwaited ? (done as Promise<Result>).catch(() => "failed" as const) : done;
}

/** The primary and dependent for which an object is written. */
interface DesiredOwner {
  readonly dependent: KubernetesDependent;
  readonly primary: KubernetesObject;
  /** The kind of the primary. */
  readonly definition: ResourceDefinition;
  /** The watched namespaces, which the object must be in. Absent if all namespaces are watched. */
  readonly namespaces?: readonly string[] | undefined;
  readonly item?: string | undefined;
  /** The value of the controller label. */
  readonly label: string;
  /** The finalizer that holds the object for the cleanup of its primary; undefined if it is not held. */
  readonly hold?: string | undefined;
}

const BASE64_FIELDS: { readonly [kind: string]: string } = { Secret: "data", ConfigMap: "binaryData" };
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Completes the result of `desired` with the namespace and the link to the primary. Throws a TerminalError if the result cannot be applied. */
export function completeDesired(
  desired: unknown,
  { dependent, primary, definition, namespaces, item, label, hold }: DesiredOwner,
): ObjectBody {
  const { resource, name, namespace: stated, labelSelector } = dependent;
  const isOwned = deletionOf(dependent) === "garbageCollected";
  const { name: ownerName, namespace: home, uid = "" } = primary.metadata;
  const which = item === undefined ? "" : ` for its item "${item}"`;
  const fail = (problem: string) => new TerminalError(`desired() of dependent "${name}"${which} ${problem}`);
  if (typeof desired !== "object" || desired === null)
    throw fail(`returned ${desired === null ? "null" : typeof desired}`);
  const { apiVersion = resource.apiVersion, kind = resource.kind, ...rest } = desired as Partial<KubernetesObject>;
  if (apiVersion !== resource.apiVersion || kind !== resource.kind)
    throw fail(
      `returned a ${kind} of ${apiVersion}, and the dependent is a ${resource.kind} of ${resource.apiVersion}`,
    );
  const metadata = rest.metadata;
  if (typeof metadata?.name !== "string" || metadata.name === "") throw fail("returned no metadata.name");
  const invalid = invalidBase64In(rest, resource);
  if (invalid !== undefined)
    throw fail(
      `returned invalid base64 in ${invalid}; encode the value, or use ${kind === "Secret" ? "stringData" : "data"}`,
    );
  const isNamespaced = resource.scope === "Namespaced";
  const namespace = isNamespaced ? (metadata.namespace ?? stated ?? home) : undefined;
  if (isNamespaced && namespace === undefined) throw fail("returned no metadata.namespace, and its primary has none");
  if (namespace !== undefined && namespaces !== undefined && !namespaces.includes(namespace))
    throw fail(
      `puts the object into namespace "${namespace}", and the controller watches ${namespaces.join(", ")} only`,
    );
  if (isOwned && definition.scope === "Namespaced" && namespace !== home)
    throw fail(
      `puts the object into ${namespace === undefined ? "no namespace" : `namespace "${namespace}"`}, where no owner reference to its ` +
        "primary is allowed; state deletion: ordered in the workflow spec",
    );
  if (labelSelector !== undefined && !isSelected(metadata.labels ?? {}, labelSelector))
    throw fail(`lacks the labels that its labelSelector "${labelSelector}" asks for`);
  const other = metadata.labels?.[CONTROLLER_LABEL] ?? label;
  if (other !== label)
    throw fail(`sets the label ${CONTROLLER_LABEL} to "${other}", which the runtime sets itself; leave it out`);
  const annotations = {
    [DEPENDENT_NAME]: name,
    [OBJECT_KEY]: keyOf({ name: metadata.name, namespace }),
    ...(item !== undefined && { [DEPENDENT_ITEM]: item }),
    ...(!isOwned && linksTo(primary).annotations),
  };
  const link: Draft<Partial<ObjectMeta>> = {
    labels: Object.assign({}, metadata.labels, { [CONTROLLER_LABEL]: label }),
    annotations: Object.assign({}, metadata.annotations, annotations),
  };
  if (namespace !== undefined) link.namespace = namespace;
  if (hold !== undefined) link.finalizers = [...new Set([...(metadata.finalizers ?? []), hold])];
  if (isOwned) {
    const { apiVersion, kind } = definition;
    const others = metadata.ownerReferences?.filter((each) => each.uid !== uid) ?? [];
    const owner = { apiVersion, kind, name: ownerName, uid, controller: true, blockOwnerDeletion: true };
    link.ownerReferences = [...others, owner];
  }
  return { ...rest, metadata: Object.assign({}, metadata, link) };
}

// The API server rejects invalid base64 without naming the field.
function invalidBase64In(object: object, { group, kind }: ResourceDefinition): string | undefined {
  const field = group === "" ? BASE64_FIELDS[kind] : undefined;
  const values = field && (object as { readonly [member: string]: unknown })[field];
  for (const [key, value] of Object.entries(Object(values) as object))
    if (typeof value === "string" && !BASE64.test(value.replace(/[\r\n]/g, ""))) return `${field}.${key}`;
  return undefined;
}

// Only equality requirements are checked, because others would need a parser.
function isSelected(labels: { [key: string]: string }, selector: string): boolean {
  return selector.split(",").every((requirement) => {
    const [, key, value] = /^\s*([^=!<>\s()]+)\s*==?\s*([^=!<>\s()]*)\s*$/.exec(requirement) ?? [];
    return key === undefined || labels[key] === value;
  });
}

interface FinalizerHoldsOptions {
  readonly definition: KubernetesDependent;
  readonly source: KnownObjects;
  readonly objects: LiveObjects;
  readonly writer: Writer;
  /** The finalizer that the controller adds to its primaries. */
  readonly finalizer: string;
  causeOf(run: DependentRun): PrimaryCause;
}

/** Holds objects of one dependent until their primary has been cleaned up (`heldForCleanup`), with a separate finalizer per primary. */
class FinalizerHolds implements CleanupHolds {
  readonly #options: FinalizerHoldsOptions;

  constructor(options: FinalizerHoldsOptions) {
    this.#options = options;
  }

  finalizerOf({ metadata }: KubernetesObject): string {
    return holdFinalizerOf(this.#options.finalizer, metadata);
  }

  async hold(run: DependentRun, live: Live): Promise<void> {
    const { definition, writer, causeOf } = this.#options;
    const entry = live as DecodedResource;
    const finalizer = this.finalizerOf(run.primary);
    const isHeld = entry.object.metadata.finalizers?.includes(finalizer) === true;
    if (isTerminating(entry.object)) {
      // The deletion of the primary may have caused that of the object, and the event of the primary may not have arrived yet.
      if (isHeld && (await isAlive(run))) await writer.release(this.#target, entry, finalizer, causeOf(run));
    } else if (!isHeld && isHeldForCleanup(definition))
      await writer.hold(this.#target, entry, finalizer, causeOf(run)).catch((error: unknown) => {
        // An aborted patch may still be executed, after which the cleanup has to release the object.
        if (run.context.signal.aborted) run.reconcile.onGivenUp?.();
        throw error;
      });
  }

  /** Removes the hold finalizer from an object that is being deleted, or is about to be, because it is no longer needed. */
  async release(run: DependentRun, live: DecodedResource): Promise<void> {
    const finalizer = this.finalizerOf(run.primary);
    if (live.object.metadata.finalizers?.includes(finalizer) !== true) return;
    await this.#options.writer.release(this.#target, live, finalizer, this.#options.causeOf(run));
  }

  objectsToHold(run: FindRun): readonly KubernetesObject[] {
    const { definition, objects } = this.#options;
    if (!isHeldForCleanup(definition)) return [];
    if (definition.bulk !== undefined) return [...objects.items(run).values()].map(({ object }) => object);
    return [objects.single(run)].flatMap((entry) => entry?.object ?? []);
  }

  hasAny(primary: KubernetesObject): boolean {
    const { cache } = this.#options.source;
    // Few controllers hold objects, and the name of the finalizer is a hash.
    return cache.hasIndexed(HELD_INDEX) && cache.keysByIndex(HELD_INDEX, this.finalizerOf(primary)).size > 0;
  }

  async releaseAll({ primary, context }: HoldRun, needed: Set<string | undefined>): Promise<void> {
    const { definition, source, writer } = this.#options;
    const finalizer = this.finalizerOf(primary);
    const { signal, logger } = context;
    const cause = { signal, logger, primary, dependent: definition.name };
    const { cache } = source;
    const keys = [...cache.keysByIndex(HELD_INDEX, finalizer)];
    // A bounded cache may have evicted the object.
    if (keys.some((key) => cache.get(key) === undefined)) await cache.load(keys, { signal });
    for (const entry of cache.byIndex(HELD_INDEX, finalizer)) {
      if (needed.has(uidOf(entry))) continue;
      needed.add(uidOf(entry));
      await writer.release(this.#target, entry, finalizer, cause);
    }
  }

  get #target() {
    const { definition, source } = this.#options;
    return { definition: definition.resource, cache: source.cache };
  }
}

async function isAlive({ primary: { metadata }, reconcile, context }: DependentRun): Promise<boolean> {
  const { name, namespace, uid } = metadata;
  const { definition } = reconcile;
  const now = await context.client.get({ definition }, { name, namespace });
  return now?.metadata.uid === uid && now !== undefined && !isTerminating(now);
}
