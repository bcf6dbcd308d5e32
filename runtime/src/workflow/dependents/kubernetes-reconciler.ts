import { isDeepStrictEqual } from "node:util";
import { isImmutableError, TerminalError, type ApiError } from "../../base/errors.js";
import {
  describeObject,
  isTerminating,
  keyOf,
  type KubernetesObject,
  type ObjectKey,
} from "../../base/kubernetes-object.js";
import { messageOf } from "../../base/logger.js";
import { userCalls } from "../../base/user-calls.js";
import {
  DEPENDENT_ITEM,
  DEPENDENT_NAME,
  factsOf,
  hasLink,
  HELD_INDEX,
  holdFinalizerOf,
  isOwnedBy,
  isWrittenBy,
  labelValueOf,
  LINK_PROOF,
  linksTo,
  needsProof,
} from "../../base/primary-link.js";
import type { ProofKeys } from "../../base/proof-key.js";
import type { ResourceDefinition } from "../../base/resource-definition.js";
import type { ApiClient } from "../../client/api-client.js";
import type { DeleteOptions } from "../../client/call-options.js";
import { uidOf, type DecodedResource } from "../../base/decoded-resource.js";
import type { Stated } from "../../write/send/plan.js";
import type { PrimaryCause } from "../../write/send/postponed-write.js";
import type { Writer } from "../../write/writer.js";
import { deletionOf, hasName, ownsData } from "../definition/workflow-definition.js";
import { completeDesired, desiredItemsOf } from "./desired-object.js";
import { argumentsOf, type DependentReconciler, type DependentRun, type FindRun } from "./dependent-reconciler.js";
import type { HoldRun, Live, Wanted, WriteOutcome } from "./dependent-reconciler.js";
import { isUnserved, UnlabelledObjects } from "./unlabelled-objects.js";
import { againOf, readinessOf, resultOf, unprovenRun, type OnceMemory, type OnceRun } from "./once.js";
import { referencedKeyOf } from "./referenced-object.js";
import type { SeenVersions } from "../live-reads.js";
import { ReconcileNotes } from "../reconcile-notes.js";
import { LiveObjects, type KnownObjects, type LinkedPrimary, type LiveObjectsOptions } from "./live-objects.js";

const MOST_LOOKED_UP = 1_000;

interface KubernetesReconcilerOptions extends LiveObjectsOptions {
  readonly writer: Writer;
  /** The finalizer of the primaries of the controller. */
  readonly finalizer: string;
  /** Where the key is that proves links. */
  readonly proofKeys?: ProofKeys | undefined;
  /** What is remembered of objects that are created once; there for `mode: once`. */
  readonly memory?: OnceMemory | undefined;
  client(): ApiClient;
}

/** Finds, writes and removes the objects of one dependent in Kubernetes. */
export class KubernetesReconciler implements DependentReconciler {
  readonly source: KnownObjects;
  readonly capabilities: DependentReconciler["capabilities"];
  readonly objects: LiveObjects;
  readonly #unlabelled: UnlabelledObjects;
  readonly #options: KubernetesReconcilerOptions;
  readonly #label: string;
  readonly #isGarbageCollected: boolean;
  /** The primaries, by uid, of which a cleanup found no object by its name. */
  readonly #lookedUp = new Set<string>();
  /** The objects, by uid, that the operator deleted or asked to be deleted. */
  readonly #deleted = new Set<string>();

  constructor(options: KubernetesReconcilerOptions) {
    const { mode, operations } = options.definition;
    const isWritten = mode !== "readOnly";
    this.#isGarbageCollected = deletionOf(options.definition) === "garbageCollected";
    this.capabilities = { write: isWritten, remove: isWritten && operations?.delete !== false };
    this.source = options.source;
    this.#options = options;
    this.#label = labelValueOf(options.controller);
    this.objects = new LiveObjects(options);
    this.#unlabelled = new UnlabelledObjects(options);
  }

  get #isOnce(): boolean {
    return this.#options.definition.mode === "once";
  }

  get client(): ApiClient {
    return this.#options.client();
  }

  isNamed({ primary }: FindRun): boolean {
    const { definition } = this.#options;
    return definition.ref === undefined || referencedKeyOf(definition, primary) !== undefined;
  }

  isCollected({ primary }: FindRun): boolean {
    const { definition } = this.#options;
    // An earlier version of the operator may have tied an object by annotations.
    const isAnnotated = ({ name, live }: { name: string; live: KubernetesObject }) =>
      hasName(definition, name) && !isOwnedBy(live.metadata, primary.metadata);
    const isDeleted = () => this.capabilities.remove && this.objects.leftovers(primary, () => false).some(isAnnotated);
    return this.#isGarbageCollected && !isDeleted();
  }

  isPartlyUnknown({ primary }: FindRun): boolean {
    const { resource, namespace } = this.#options.definition;
    // Otherwise the primary would not be reconciled.
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
    const { primary, definition } = run;
    const { namespaces: known = run.namespaces } = this.source;
    const ofSource = known === "all" ? undefined : known;
    const namespaces = dependent.namespace === undefined ? ofSource : [dependent.namespace];
    const hold = dependent.heldForCleanup === true && !isTerminating(primary) ? this.#holdOf(primary) : undefined;
    const facts = { dependent, primary, definition, namespaces, item, label: this.#label, hold };
    const object = completeDesired(desired, facts);
    const id = keyOf(object.metadata);
    const rival = run.notes.want({ dependent: dependent.name, item }, this.objects.place, id);
    if (rival === dependent.name) return { id, object, item };
    throw new TerminalError(
      `desired() of dependent "${dependent.name}" returned ${describeObject(dependent.resource, object.metadata)}, which dependent ` +
        `"${rival}" wants as well; give one of them another name`,
    );
  }

  find(run: FindRun, wanted?: Wanted): DecodedResource | undefined {
    if (wanted === undefined) return this.objects.single(run);
    const discovered = this.objects.discovered(run, wanted.item);
    if (discovered !== undefined && keyOf(discovered.object.metadata) === wanted.id) return discovered;
    const tied = this.objects.tied(run.primary, wanted.id);
    // An object that was created once stays the one, whatever its name would be now.
    return tied === undefined && this.#isOnce && wanted.item === undefined ? this.objects.single(run) : tied;
  }

  async discover(run: DependentRun, desire: () => Promise<unknown>): Promise<void> {
    const { operations, bulk } = this.#options.definition;
    const { primary, notes } = run;
    const nameless = operations?.create !== undefined && bulk === undefined ? this.objects.nameless(primary) : [];
    const { uid = "", deletionTimestamp } = primary.metadata;
    const isOver = deletionTimestamp !== undefined ? !this.#lookedUp.has(uid) : run.isConfirming === true;
    const isCleanup = isOver && !this.#isGarbageCollected;
    if (nameless.length === 0 && !isCleanup) return;
    const stated = await this.#statedBy(run, { desire, isCleanup });
    const { name } = this.#options.definition;
    let isFound = false;
    for (const { id, item, object } of stated ?? []) {
      if (notes.wishFor(this.objects.place, id) !== undefined) continue;
      const { metadata } = object as Stated;
      const linked = isCleanup ? this.objects.tied(primary, id) : undefined;
      const named = nameless.includes(id) ? this.source.cache.get(id as ObjectKey) : undefined;
      const entry = linked ?? named ?? (isCleanup ? await this.#read(run, metadata) : undefined);
      if (entry === undefined) continue;
      isFound = true;
      notes.discovered.add({ dependent: name, item }, { unseen: entry });
    }
    if (isCleanup && (await this.#discoverUnlabelled(run, { isFresh: stated === undefined }))) isFound = true;
    if (deletionTimestamp === undefined || isFound) return;
    if (this.#lookedUp.size >= MOST_LOOKED_UP) this.#lookedUp.clear();
    this.#lookedUp.add(uid);
  }

  /** Returns the objects that `desired` states; undefined if it throws in a cleanup. */
  async #statedBy(
    run: DependentRun,
    { desire, isCleanup }: { readonly desire: () => Promise<unknown>; readonly isCleanup: boolean },
  ): Promise<readonly Wanted[] | undefined> {
    try {
      return this.#completeAll(run, await desire());
    } catch (error) {
      if (!isCleanup) throw error;
      // Its inputs may be gone, which must not keep the primary.
      const { name } = this.#options.definition;
      const text = `desired() does not tell where the object of dependent "${name}" would be: ${messageOf(error)}`;
      run.context.logger.debug({ dependent: name }, text);
      return undefined;
    }
  }

  /** Notes the objects of the primary that nothing names any more, and whose label is gone; tells whether there are any. */
  async #discoverUnlabelled(run: DependentRun, { isFresh }: { readonly isFresh: boolean }): Promise<boolean> {
    const { definition } = this.#options;
    const { primary, notes } = run;
    let isFound = false;
    // Of a primary that is gone since before the start nothing is known but its links, so that desired() throws as a rule.
    const found = await this.#unlabelled.find(run, { isFresh: isFresh && run.isPrimaryUnknown !== true });
    for (const { name, namespace, annotations } of found) {
      if (notes.wishFor(this.objects.place, keyOf({ name, namespace })) !== undefined) continue;
      const { annotations: link } = linksTo(primary);
      const entry = await this.#read(run, {
        name,
        ...(namespace === undefined ? {} : { namespace }),
        annotations: link,
      });
      if (entry === undefined || !(await this.#unlabelled.isLinked(run, entry.object))) continue;
      isFound = true;
      const wish = { dependent: definition.name, item: annotations?.[DEPENDENT_ITEM] };
      const other = notes.discovered.of(wish.dependent, wish.item);
      if (other === undefined) notes.discovered.add(wish, { unseen: entry });
      // Under an earlier name of the object.
      else if (uidOf(other) !== uidOf(entry)) await this.remove(run, entry);
    }
    return isFound;
  }

  async #read(run: DependentRun, desired: Stated["metadata"]): Promise<DecodedResource | undefined> {
    const { writer, definition } = this.#options;
    try {
      return await writer.findOwn(this.#target, desired, this.#causeOf(run));
    } catch (error) {
      if (await isUnserved(definition.resource, { error, client: this.client })) return undefined;
      throw error;
    }
  }

  // The objects must not exist, so the run does not note that they are wanted. Those that the watch shows are known.
  #completeAll(run: DependentRun, desired: unknown): readonly Wanted[] {
    const apart = { ...run, notes: new ReconcileNotes() };
    if (this.#options.definition.bulk === undefined) return [this.complete(apart, desired)];
    const known = this.findItems(run);
    return [...desiredItemsOf(desired)].flatMap(([item, each]) =>
      known.has(item) ? [] : this.complete(apart, each, item),
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

  // What the operator itself deleted is over: code may wait for its end.
  #lastSeen(run: FindRun): readonly KubernetesObject[] {
    return this.objects.lastSeen(run).filter(({ metadata: { uid = "" } }) => !this.#deleted.has(uid));
  }

  findAgain({ object }: Live, run?: FindRun): DecodedResource | undefined {
    const { metadata } = object as KubernetesObject;
    const entry = this.source.cache.get(keyOf(metadata));
    if (entry?.object.metadata.uid === metadata.uid) return entry;
    const discovered = run?.discovered ?? run?.notes?.discovered;
    return discovered?.all.find((each) => uidOf(each) === metadata.uid);
  }

  async write(run: DependentRun, wanted: Wanted, found: Live | undefined, seen?: SeenVersions): Promise<WriteOutcome> {
    const proven = await this.#prove(run, wanted);
    const outcome = await this.#write(run, proven, { found: found as DecodedResource | undefined, seen });
    const isUnseen = typeof outcome === "object" && "unseen" in outcome;
    if (!this.#isGarbageCollected && !isUnseen) await this.#disown(run, proven);
    return outcome;
  }

  // Where others could write the same link, the operator proves its own.
  async #prove(run: DependentRun, wanted: Wanted): Promise<Wanted> {
    const { definition, proofKeys } = this.#options;
    const { metadata } = wanted.object as Stated;
    const { primary, context } = run;
    if (!needsProof(metadata, { primary, stated: definition.namespace }) || proofKeys === undefined) return wanted;
    const key = await proofKeys.load(context.signal);
    const annotations = {
      ...metadata.annotations,
      [LINK_PROOF]: key.sign(factsOf(metadata, primary.metadata.uid ?? "")),
    };
    return { ...wanted, object: { ...wanted.object, metadata: { ...metadata, annotations } } };
  }

  // An object that was written otherwise before may still have its primary as an owner, with which it would be collected.
  async #disown(run: DependentRun, { id, object }: Wanted): Promise<void> {
    const { primary } = run;
    const { metadata: desired } = object as Stated;
    const live = this.objects.tied(primary, id);
    if (!live || !isOwnedBy(live.object.metadata, primary.metadata) || isOwnedBy(desired, primary.metadata)) return;
    // Without the annotations, nothing but the owner ties an object that somebody else made.
    if (live.object.metadata.deletionTimestamp !== undefined || !hasLink(live.object.metadata, desired)) return;
    await this.#options.writer.disown(this.#target, live, this.#causeOf(run));
  }

  async #write(
    run: DependentRun,
    wanted: Wanted,
    { found, seen }: { found: DecodedResource | undefined; seen: SeenVersions | undefined },
  ): Promise<WriteOutcome> {
    const { mode, operations, released } = this.#options.definition;
    const desired = wanted.object as Stated;
    const known = await this.#afterRemoval(found, wanted, run);
    const live = known?.object;
    if (live?.metadata.deletionTimestamp !== undefined) {
      await this.#rememberEnd(run, wanted, live);
      return "waiting";
    }
    const isLeft = mode === "createOnly" || this.#isOnce || operations?.update !== undefined;
    const isNamed = live === undefined || keyOf(live.metadata) === wanted.id;
    if (known !== undefined && isLeft && isNamed) await this.#restoreLink(desired, known, run);
    const outcome = this.#isOnce ? await this.#recall(run, wanted, known) : undefined;
    if (outcome !== undefined) return outcome;
    if (live !== undefined && mode === "createOnly") return "unchanged";
    const isMatch = live && (await this.#matches(desired, live, run));
    if (isMatch === true) return "unchanged";
    const apply = async (): Promise<WriteOutcome> => {
      const attempt = this.#options.writer.apply(this.#target, desired, {
        live: known,
        existing: (object) => this.#decideExisting(object, run),
        // An object that is never updated has its content from whoever made it.
        isLeft: mode === "createOnly" || this.#isOnce || operations?.update === false,
        basis: seen && { version: seen.get(wanted.id) },
        isForced: isMatch === false,
        released,
        cause: this.#causeOf(run),
      });
      const written = await attempt.catch((error: unknown) => {
        if (known === undefined || !isImmutableError(error)) throw error;
        return this.#replace(run, { error, desired, live: known, isLiveRead: seen !== undefined });
      });
      if (written === undefined) return "waiting";
      if (written.kind === "postponed") return written;
      if (written.kind === "unseen") return { unseen: written.entry, isForeign: written.isForeign };
      return written.kind === "terminating" ? "waiting" : written.kind;
    };
    const name = live === undefined ? "create" : "update";
    const call = operations?.[name];
    if (call === undefined) return apply();
    const done = call !== false && (await callOwn({ name, call, args: { ...argumentsOf(run), desired, live } }, apply));
    // An operation that catches the error of a write, such as a change of an immutable field, deletes the object to create it again.
    if (done === "failed") return "waiting";
    // An adopted object that its own update leaves as it is has to be linked all the same.
    if (done === "notCalled" && known !== undefined && run.notes.discovered.isForeign(uidOf(known)))
      await this.#options.writer.tie(this.#target, known, { desired: desired.metadata, cause: this.#causeOf(run) });
    if (done === false || done === "notCalled") return live === undefined ? "absent" : "unchanged";
    return done;
  }

  /** Decides what to do about an object that is created once; undefined if it is to be created now. */
  async #recall(
    run: DependentRun,
    wanted: Wanted,
    live: DecodedResource | undefined,
  ): Promise<WriteOutcome | undefined> {
    const { definition, memory } = this.#options;
    const { primary, context, notes } = run;
    const key = wanted.item ?? "";
    if (live === undefined) await memory!.lookUp(primary, key, { signal: context.signal });
    let last = memory!.read(primary).get(key) as OnceRun | undefined;
    const unproven = last === undefined ? memory!.unprovenOf(primary, key) : undefined;
    const again = await againOf(definition, primary);
    const gone = live === undefined && last !== undefined && this.objects.lastSeen(run).find(hasUid(last.id));
    if (gone) {
      await this.#rememberEnd(run, wanted, gone);
      last = memory!.read(primary).get(key) as OnceRun;
    }
    if (live === undefined) {
      if (unproven !== undefined) throw unprovenRun(definition.name, unproven);
      if (last === undefined || last.again !== again) return undefined;
      await this.#keep(primary, key, last);
      return { ended: readinessOf(last) };
    }
    const { metadata } = live.object;
    // Under the name of an earlier version it would be pruned.
    if (keyOf(metadata) !== wanted.id)
      notes.want({ dependent: definition.name, item: wanted.item }, this.objects.place, keyOf(metadata));
    const { uid = "" } = metadata;
    // The operator may have ended between the creation and its record.
    const begun: OnceRun = last?.id === uid ? last : { id: uid, again };
    await this.#keep(primary, key, begun);
    if (begun.again === again) return "unchanged";
    if (begun.result === undefined) {
      const because = `it is created again when ${describeObject(live.object, metadata)} has ended`;
      return { because, untilEnd: true };
    }
    await this.#prepareDeletion(run, live);
    const options = { cause: this.#causeOf(run), propagationPolicy: "Foreground" } as const;
    await this.#options.writer.delete(this.#target, live.object, options);
    return "waiting";
  }

  // ttlSecondsAfterFinished may delete a Job as soon as it has ended.
  async #rememberEnd({ primary }: DependentRun, { item: key = "" }: Wanted, object: KubernetesObject): Promise<void> {
    const { memory } = this.#options;
    const last = memory?.read(primary).get(key) as OnceRun | undefined;
    if (last === undefined || last.id !== object.metadata.uid || last.result !== undefined) return;
    const ended = { ...last, ...resultOf(object, false) };
    if (ended.result !== undefined) await memory!.set(primary, key, ended);
  }

  async remember(run: DependentRun, wanted: Wanted, live: Live, isReady: boolean): Promise<boolean> {
    const { definition, memory } = this.#options;
    if (!this.#isOnce) return false;
    const { primary } = run;
    const key = wanted.item ?? "";
    const object = live.object as KubernetesObject;
    const last = memory!.read(primary).get(key) as OnceRun | undefined;
    const { uid = "" } = object.metadata;
    const isNew = last?.id !== uid;
    const result = resultOf(object, isReady);
    if (!isNew && (result === undefined || last?.result !== undefined)) return last?.result !== undefined;
    const again = isNew ? await againOf(definition, primary) : last!.again;
    const begun: OnceRun = { id: uid, again, ...result };
    await memory!.set(primary, key, begun);
    return result !== undefined;
  }

  // Also where another client deleted what was kept, or an earlier version kept it elsewhere.
  async #keep(primary: KubernetesObject, key: string, run: OnceRun): Promise<void> {
    const { memory } = this.#options;
    if (!memory!.isKept(primary, key, run.id)) await memory!.set(primary, key, run);
  }

  // The object is deleted, and created again by a later reconcile that sees that it is gone.
  async #replace(run: DependentRun, { error, desired, live, isLiveRead }: ImmutableChange): Promise<undefined> {
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
    if (!isOwn || run.notes.discovered.isForeign(metadata.uid))
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
    return undefined;
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
    // It was to be adopted, and is not.
    if (run.notes.discovered.isForeign(metadata.uid)) return;
    const removal = this.#remove(run, live as DecodedResource);
    if (metadata.uid !== undefined) run.notes.removals.set(metadata.uid, removal);
    await removal;
  }

  async hold(run: DependentRun, live: Live): Promise<void> {
    const { definition, writer } = this.#options;
    const entry = live as DecodedResource;
    const finalizer = this.#holdOf(run.primary);
    const isHeld = entry.object.metadata.finalizers?.includes(finalizer) === true;
    if (isTerminating(entry.object)) {
      // The deletion of the primary may have caused that of the object, and its event may be still to come.
      if (isHeld && (await this.#isAlive(run)))
        await writer.release(this.#target, entry, finalizer, this.#causeOf(run));
    } else if (!isHeld && definition.heldForCleanup === true)
      await writer.hold(this.#target, entry, finalizer, this.#causeOf(run)).catch((error: unknown) => {
        // A patch that was aborted may still be executed, after which the cleanup has to release the object.
        if (run.context.signal.aborted) run.onGivenUp?.();
        throw error;
      });
  }

  objectsToHold(run: FindRun): readonly KubernetesObject[] {
    const { heldForCleanup, bulk } = this.#options.definition;
    if (heldForCleanup !== true) return [];
    if (bulk !== undefined) return [...this.objects.items(run).values()].map(({ object }) => object);
    return [this.objects.single(run)].flatMap((entry) => entry?.object ?? []);
  }

  linkedPrimaries(isKnown: (key: ObjectKey, uid: string) => boolean): readonly LinkedPrimary[] {
    return this.objects.linkedPrimaries(isKnown);
  }

  leftOf({ primary }: Pick<FindRun, "primary">): readonly string[] {
    const { definition } = this.#options;
    return this.objects
      .leftovers(primary, () => false)
      .filter(({ name, live }) => hasName(definition, name) && !isTerminating(live))
      .map(({ live }) => describeObject(definition.resource, live.metadata));
  }

  hasAny({ primary }: Pick<FindRun, "primary">): boolean {
    const { definition } = this.#options;
    const isOwn = ({ name, live }: { name: string; live: KubernetesObject }) =>
      hasName(definition, name) && (!this.#isGarbageCollected || !isOwnedBy(live.metadata, primary.metadata));
    const isLeft = this.capabilities.remove && this.objects.leftovers(primary, () => false).some(isOwn);
    return isLeft || this.isAnyHeld({ primary });
  }

  isAnyHeld({ primary }: Pick<HoldRun, "primary">): boolean {
    const { cache } = this.source;
    // Few controllers hold objects, and the name of the finalizer is a hash.
    return cache.hasIndexed(HELD_INDEX) && cache.keysByIndex(HELD_INDEX, this.#holdOf(primary)).size > 0;
  }

  async releaseHeld({ primary, context }: HoldRun, needed: Set<string | undefined>): Promise<void> {
    const finalizer = this.#holdOf(primary);
    const { signal, logger } = context;
    const cause = { signal, logger, primary, dependent: this.#options.definition.name };
    const { cache } = this.source;
    const keys = [...cache.keysByIndex(HELD_INDEX, finalizer)];
    // A bounded cache may have evicted it.
    if (keys.some((key) => cache.get(key) === undefined)) await cache.load(keys, { signal });
    for (const entry of cache.byIndex(HELD_INDEX, finalizer)) {
      if (needed.has(uidOf(entry))) continue;
      needed.add(uidOf(entry));
      await this.#options.writer.release(this.#target, entry, finalizer, cause);
    }
  }

  async #isAlive({ primary: { metadata }, definition, context }: DependentRun): Promise<boolean> {
    const { name, namespace, uid } = metadata;
    const now = await context.client.get({ definition: definition as ResourceDefinition }, { name, namespace });
    return now?.metadata.uid === uid && now !== undefined && !isTerminating(now);
  }

  #holdOf({ metadata }: KubernetesObject): string {
    return holdFinalizerOf(this.#options.finalizer, metadata);
  }

  // Its own deletion ends the need for the object.
  async #releaseFor(run: DependentRun, live: DecodedResource): Promise<void> {
    const finalizer = this.#holdOf(run.primary);
    if (live.object.metadata.finalizers?.includes(finalizer) !== true) return;
    await this.#options.writer.release(this.#target, live, finalizer, this.#causeOf(run));
  }

  isHeld(live: Live): boolean {
    return this.findAgain(live)?.object.metadata.deletionTimestamp !== undefined;
  }

  async #remove(run: DependentRun, live: DecodedResource): Promise<void> {
    const { definition, writer } = this.#options;
    const cause = this.#causeOf(run);
    const remove = async (options?: DeleteOptions) => {
      await this.#prepareDeletion(run, live);
      if (definition.deletion === "orphan") await writer.untie(this.#target, live, cause);
      else if (!(await writer.delete(this.#target, live.object, { ...options, cause }))) return;
      run.notes.discovered.forget(live.object.metadata.uid);
    };
    const call = definition.operations?.delete;
    if (isTerminating(live.object)) return this.#releaseFor(run, live);
    if (call === false) return;
    if (call === undefined) return remove();
    const args = { ...argumentsOf(run), live: live.object };
    const done = await callOwn({ name: "delete", call, args }, remove);
    if (done !== undefined) run.notes.kept.add(live.object.metadata.uid);
  }

  async #prepareDeletion(run: DependentRun, live: DecodedResource): Promise<void> {
    const { uid = "" } = live.object.metadata;
    if (this.#deleted.size >= MOST_LOOKED_UP)
      for (const oldest of [...this.#deleted].slice(0, 1)) this.#deleted.delete(oldest);
    this.#deleted.add(uid);
    await this.#releaseFor(run, live);
  }

  // A step that runs out of time cancels its write.
  #causeOf(run: DependentRun): PrimaryCause {
    const { primary, tracing, context, onGivenUp, dependent = this.#options.definition.name } = run;
    const { signal, logger } = context;
    const cause = { signal, logger, primary, dependent, onChange: tracing?.changed };
    return this.#isGarbageCollected ? cause : { ...cause, onGivenUp };
  }

  // Another dependent may have had the object, and delete it just now.
  async #afterRemoval(
    found: DecodedResource | undefined,
    { id }: Wanted,
    { primary, notes }: DependentRun,
  ): Promise<DecodedResource | undefined> {
    const removal = notes.removals.get(uidOf(found) ?? "");
    if (removal === undefined) return found;
    await Promise.allSettled([removal]);
    return this.objects.tied(primary, id);
  }

  /** Returns what the matcher of the user says; `undefined` if there is none, so that the writer compares. */
  async #matches(
    desired: Stated,
    live: KubernetesObject,
    { context, primary }: DependentRun,
  ): Promise<boolean | undefined> {
    const { matcher, resource, name } = this.#options.definition;
    if (matcher === undefined) return undefined;
    // The matcher does not know of the link, which is needed in any case.
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

  // An object that is not written as desired gets back what somebody took off of its link, and the name of its dependent if that has another.
  async #restoreLink({ metadata }: Stated, live: DecodedResource, run: DependentRun): Promise<void> {
    const { definition, writer, controller, formerNames = [] } = this.#options;
    const { annotations } = live.object.metadata;
    const isRenamed =
      annotations?.[DEPENDENT_NAME] !== definition.name && hasName(definition, annotations?.[DEPENDENT_NAME]);
    const { discovered } = run.notes;
    const isOwn = discovered.all.some((each) => uidOf(each) === uidOf(live)) && !discovered.isForeign(uidOf(live));
    if (!isRenamed && !isOwn && isWrittenBy(live.object.metadata, controller, ...formerNames) !== true) return;
    await writer.tie(this.#target, live, { desired: metadata, cause: this.#causeOf(run) });
  }

  get #target() {
    return { definition: this.#options.definition.resource, cache: this.source.cache };
  }
}

function hasUid(uid: string): (object: KubernetesObject) => boolean {
  return ({ metadata }) => metadata.uid === uid;
}

interface ImmutableChange {
  readonly error: ApiError;
  readonly desired: Stated;
  readonly live: DecodedResource;
  readonly isLiveRead: boolean;
}

// They would hold the names of the Pods of the new one.
function leavesPods({ group, kind }: ResourceDefinition, desired: object, live: object): boolean {
  type Selecting = { readonly spec?: { readonly selector?: object } };
  const [wanted, known] = [desired, live].map((each) => (each as Selecting).spec?.selector);
  return group === "apps" && kind === "StatefulSet" && !isDeepStrictEqual(wanted, known);
}

type OwnArguments = Pick<DependentRun, "context" | "primary"> & { readonly [name: string]: unknown };

// Calls an own operation, whose `next` does `work` at most once, and only while the operation runs. Returns what `work` did; `failed` if the
// operation caught the error of `work`. Throws that error if the operation did not wait for `next`.
async function callOwn<Result>(
  { name, call, args }: { name: string; call: (args: never) => unknown; args: OwnArguments },
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
    // An operation that does not wait must not end the process by a rejection that nobody catches.
    passed.catch(() => {});
    return passed;
  };
  try {
    const what = `the ${name} operation of a dependent`;
    const own = { what, primary: keyOf(args.primary.metadata) };
    await userCalls.track(own, () => call({ ...args, next } as never));
  } finally {
    isOver = true;
    // What is under way ends before the step does.
    await Promise.allSettled([done]);
  }
  if (done === undefined) return "notCalled";
  return wasAwaited ? (done as Promise<Result>).catch(() => "failed" as const) : done;
}
