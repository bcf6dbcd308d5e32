// The interface of a dependent (JOSDK DependentResource): how its objects are found, written and removed. The workflow decides when, and knows
// about conditions, order, retries and the items of bulk dependents; a dependent reconciler does not.
import type { PostponedWrite, StepTiming, Tracing } from "../base/activity.js";
import {
  type DecodedResource,
  type KubernetesObject,
  type ObjectKey,
  type ResourceDefinition,
  uidOf,
} from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import type { Clock } from "../base/wait.js";
import type { ApiClient } from "../client/api-client.js";
import type { SecondarySources } from "../sources/controller-sources.js";
import type { ActivatedWatch } from "../sources/dependent-sources.js";
import type { DependentArguments, KindInCluster } from "./workflow-definition.js";

/** Calls a function of the user. A message about a function that does not return has the name `what`. */
export type CallUser = <Result>(what: string, task: () => Result | Promise<Result>) => Promise<Result>;

/** One reconcile of a primary: what all runs of workflows, their steps and dependents share in it. */
export interface Reconcile {
  /** The kind of the primary. */
  readonly definition: ResourceDefinition;
  /** The namespaces that the controller watches; all of them if absent. */
  readonly namespaces?: readonly string[] | undefined;
  /** The event sources of the user. */
  readonly secondaries?: SecondarySources | undefined;
  readonly notes: ReconcileNotes;
  /** Whether only name, namespace and UID of the primary are known, so that functions that read its spec fail. Default: false */
  readonly isPrimaryUnknown?: boolean;
  readonly tracing?: Tracing | undefined;
  /** Default: the clock of the process */
  readonly clock?: Clock;
  readonly track: CallUser;
  /**
   * Adds the finalizer to the primary before the first write of an object that has to be cleaned up, if the controller uses one. Throws if the
   * primary is gone or the finalizer cannot be stored.
   */
  ensureFinalizer?(): Promise<void>;
  /** Called for every aborted write that the API server may still execute, and that may create an object the garbage collector does not delete. */
  readonly onGivenUp?: () => void;
  /** Called with every write that may outlive the timeout of its step. */
  linger?(write: Promise<unknown>): void;
  /** Called for every step that has ended. */
  onStep?(step: StepTiming): void;
}

/** One run of a workflow, as a step and its dependent see it. */
export interface DependentRun extends DependentArguments<KubernetesObject, object> {
  readonly reconcile: Reconcile;
  /** The name of the dependent in the log. Default: that of the definition */
  readonly dependent?: string;
}

/** Returns the arguments of functions of the user. */
export function argumentsOf({
  primary,
  secondary,
  context,
}: DependentRun): DependentArguments<KubernetesObject, object> {
  return { primary, secondary, context };
}

/** A desired object, with the namespace and the link to its primary. */
export interface Wanted {
  /** The key of an object of Kubernetes, or the id of an external resource. */
  readonly id: string;
  readonly object: object;
  /** The key of the item of a bulk dependent. */
  readonly item?: string | undefined;
}

/** A live object. Functions of the user get `object`. */
export interface Live {
  readonly object: object;
}

/** The live items of a bulk dependent by their keys. */
export interface KnownItems {
  get(key: string): Live | undefined;
}

/** An object that no watch shows; `isForeign`: it does not belong to the primary yet and is adopted. */
interface DiscoveredObject {
  readonly entry: DecodedResource;
  readonly isForeign?: boolean | undefined;
}

/** An object with `mode: once` that has been created and is gone. */
export interface EndedObject {
  readonly kind: "ended";
  readonly isReady: boolean;
  readonly detail?: string;
}

/** The result of a write that has reached the object, or will after a pause. */
export type ReachedWrite =
  | { readonly kind: "created" | "updated" | "unchanged" }
  | { readonly kind: "postponed"; readonly postponed: PostponedWrite };

/** The result of a write, or why nothing was written. */
export type WriteOutcome =
  | ReachedWrite
  /** The object is being deleted. */
  | { readonly kind: "terminating" }
  /** The object does not exist, and another client creates it. */
  | { readonly kind: "absent" }
  /** `desired` has not read the object that the write would replace. */
  | ({ readonly kind: "unseen" } & DiscoveredObject)
  /** Something else has to happen first; `untilEnd`: the object that exists has to end. */
  | { readonly kind: "blocked"; readonly because: string; readonly untilEnd?: boolean }
  | EndedObject;

/** The object is as desired. */
export const UNCHANGED: ReachedWrite = { kind: "unchanged" };

/** For which primary objects are looked up; in a reconcile, objects that other dependents claim are not found. */
export interface FindRun {
  readonly primary: KubernetesObject;
  readonly reconcile?: Reconcile;
  /** Objects that the watch does not show. Default: those that were discovered in the reconcile */
  readonly discovered?: DiscoveredObjects;
}

/** Returns the objects that no watch shows, as far as a lookup knows them. */
export function discoveredIn({ discovered, reconcile }: FindRun): DiscoveredObjects | undefined {
  return discovered ?? reconcile?.notes.discovered;
}

/** For which primary held objects are released, in a reconcile or after the deletion of the primary. */
export interface HoldRun {
  readonly primary: KubernetesObject;
  readonly context: CleanupContext;
}

/** Aborts and logs a cleanup, in a reconcile or outside of one. */
export interface CleanupContext {
  readonly signal: AbortSignal;
  readonly logger: Logger;
}

/** The versions in which one call of `desired` read the objects of its own dependent, by key; absent if it read none of them. */
export type SeenVersions = ReadonlyMap<ObjectKey, string | undefined>;

/** A primary as links name it. */
export interface LinkedPrimary {
  readonly key: ObjectKey;
  readonly uid: string;
}

/** Keeps objects of a dependent until their primary is cleaned up, whatever deletes them before. */
export interface CleanupHolds {
  /** Holds an object, if the dependent asks for that; an object that is being deleted while its primary lives is released. */
  hold(run: DependentRun, live: Live): Promise<void>;
  /** Returns the objects that are to be held for a primary. */
  objectsToHold(run: FindRun): readonly KubernetesObject[];
  /** Tells whether the event source knows objects that are held for a primary. */
  hasAny(primary: KubernetesObject): boolean;
  /** Releases the objects that are held for a primary and whose uid is not in `needed`, and adds them to it. */
  releaseAll(run: HoldRun, needed: Set<string | undefined>): Promise<void>;
}

/** Finds, writes and removes the objects of one dependent, for all primaries; it keeps no state of a run. */
export interface DependentReconciler {
  readonly source: ActivatedWatch;
  /** Tells whether objects of a primary may be in a namespace whose watch is not synced; `desired` tells whether they are. Default: no */
  isPartlyUnknown?(run: FindRun): boolean;
  /** Returns which watch that the desired objects need is not synced; undefined if all are. */
  unknownOf?(run: FindRun, desired: unknown): string | undefined;
  /** Without `write` the workflow only waits for the object, without `remove` it leaves the object. */
  readonly capabilities: { readonly write: boolean; readonly remove: boolean };
  /** The client of the cluster of its objects; absent for external resources. */
  readonly client?: ApiClient | undefined;
  /** Tells whether a primary names an object (`ref`). Default: yes */
  isNamed?(run: FindRun): boolean;
  /** Tells whether a cleanup leaves the objects to the garbage collector. Default: no */
  isCollected?(run: FindRun): boolean;
  /** Validates and completes what `desired` returned, or one item of it, and claims the object. Throws a TerminalError if it cannot be written. */
  complete(run: DependentRun, desired: unknown, item?: string): Wanted;
  /**
   * Returns the live object: the desired one, or before `desired` was called the one that belongs to the primary. `items` are the known items of
   * a bulk dependent.
   */
  find(run: FindRun, wanted?: Wanted, items?: KnownItems): Live | undefined;
  /**
   * Before a deletion, discovers objects of the primary that `find` cannot know, by what `desire` returns: another client created them, their
   * label is gone, or an earlier version of the operator linked them. `isConfirming`: nothing may be left, so it looks as thoroughly as while the
   * primary is being deleted. Default: there are none
   */
  discover?(
    run: DependentRun,
    desire: () => Promise<unknown>,
    options?: { readonly isConfirming?: boolean },
  ): Promise<void>;
  /** Tells whether there is anything to clean up before the primary is deleted. Default: no */
  hasAny?(primary: KubernetesObject): boolean;
  /** Returns the primaries that its objects are linked to, without the known ones. Default: none */
  linkedPrimaries?(isKnown: (key: ObjectKey, uid: string) => boolean): readonly LinkedPrimary[];
  /** Describes the objects of a primary that are not being deleted. Default: none */
  leftOf?(primary: KubernetesObject): readonly string[];
  /** Returns how long objects that a previous process created may still be missing in the known state. Default: 0 */
  unconfirmedMs?(primary: KubernetesObject): number;
  /** Returns the live items of a bulk dependent by their keys. */
  findItems(run: FindRun): ReadonlyMap<string, Live>;
  /** Returns the last state of an object that another client deleted, for functions that run while the primary is being deleted. Default: none */
  lastSeen?(run: FindRun): Live | undefined;
  /** Returns the last states of items that other clients deleted, by their keys. Default: none */
  lastSeenItems?(run: FindRun): ReadonlyMap<string, Live>;
  /** Returns the current state of an item; undefined if it is gone. Absent if all items have to be found again. */
  findAgain?(item: Live, run?: FindRun): Live | undefined;
  /** Creates or updates the object if it is not as desired; `live` is what `find` returned, `seen` what `desired` read. */
  write(run: DependentRun, wanted: Wanted, live: Live | undefined, seen?: SeenVersions): Promise<WriteOutcome>;
  /** Records whether the object is ready, if that has to be known when it is gone (`mode: once`); tells whether it has ended. */
  remember?(run: DependentRun, wanted: Wanted, live: Live, isReady: boolean): Promise<boolean>;
  /** Requests the deletion of the object, without waiting for it; an object to be orphaned is released instead, and no longer found. */
  remove(run: DependentRun, live: Live): Promise<void>;
  /** Absent if its objects cannot be held for the cleanup of their primary. */
  readonly holds?: CleanupHolds;
  /** Tells whether a removed object is still being deleted. Default: no */
  isHeld?(live: Live): boolean;
  /** Completes removals that failed halfway; called at the end of each successful step. Default: nothing */
  finishRemovals?(run: HoldRun): Promise<void>;
  /** Tells whether an object that could not be deleted is left, so that it does not block the deletion of its primary. Default: no */
  release?(run: DependentRun, failed: { readonly error: unknown; readonly item?: string | undefined }): boolean;
}

/** Identifies the kind and cluster of objects: a key is unique there. */
export function placeOf({ cluster = "", resource }: KindInCluster): string {
  return JSON.stringify([cluster, resource.group, resource.kind]);
}

/** The dependent that claims an object, and the item of a bulk dependent. */
interface Claim {
  readonly dependent: string;
  readonly item?: string | undefined;
}

/**
 * Live objects of dependents that the watches do not show, because they lack the label of the controller. A write that finds one restarts its
 * step, so that conditions, `secondary` and `desired` see the object before it is replaced.
 */
export class DiscoveredObjects {
  readonly #entries = new Map<string, DecodedResource>();
  readonly #foreign = new Set<string | undefined>();

  /** Adds the object of a dependent, or of an item; `isForeign` if it does not belong to the primary before it is written. */
  add({ dependent, item }: Claim, { entry, isForeign = false }: DiscoveredObject): void {
    this.#entries.set(JSON.stringify([dependent, item]), entry);
    if (isForeign) this.#foreign.add(uidOf(entry));
  }

  /** Forgets an object that was deleted or released. */
  forget(uid: string | undefined): void {
    for (const [key, entry] of this.#entries) if (uidOf(entry) === uid) this.#entries.delete(key);
  }

  isForeign(uid: string | undefined): boolean {
    return this.#foreign.has(uid);
  }

  of(dependent: string, item?: string): DecodedResource | undefined {
    return this.#entries.size === 0 ? undefined : this.#entries.get(JSON.stringify([dependent, item]));
  }

  /** Returns the objects of the items of a bulk dependent, by their keys. */
  itemsOf(dependent: string): ReadonlyMap<string, DecodedResource> {
    const items = new Map<string, DecodedResource>();
    for (const [key, entry] of this.#entries) {
      const [name, item] = JSON.parse(key) as [string, string | null];
      if (name === dependent && item !== null) items.set(item, entry);
    }
    return items;
  }

  get all(): readonly DecodedResource[] {
    return [...this.#entries.values()];
  }

  entriesOf(dependent: string): readonly DecodedResource[] {
    const single = this.of(dependent);
    return [...(single === undefined ? [] : [single]), ...this.itemsOf(dependent).values()];
  }
}

/** Which objects the dependents claim, and which they had deleted, in one reconcile; all runs of the reconcile share it. */
export class ReconcileNotes {
  /** The removals of objects, in flight or done, by UID. */
  readonly removals = new Map<string, Promise<unknown>>();
  /** The UIDs of objects that the own `delete` of a dependent left, so that nothing else deletes them. */
  readonly kept = new Set<string | undefined>();
  readonly discovered = new DiscoveredObjects();
  readonly #claims = new Map<string, Claim>();
  /** The names of the dependents that claim an object. */
  readonly #claimants = new Set<string>();

  /** Claims an object for a dependent, unless another one has claimed it; returns the name of the dependent that has the claim. */
  claim(claim: Claim, place: string, id: string): string {
    const { dependent } = claim;
    const first = this.claimOf(place, id)?.dependent ?? dependent;
    if (first !== dependent) return first;
    this.#claims.set(`${place} ${id}`, claim);
    this.#claimants.add(dependent);
    return dependent;
  }

  claimOf(place: string, id: string): Claim | undefined {
    return this.#claims.get(`${place} ${id}`);
  }

  hasClaim(dependent: string): boolean {
    return this.#claimants.has(dependent);
  }
}

/** The live items of a bulk dependent in one run. They are found together: a lookup takes as long as there are items. */
export class LiveItems implements KnownItems {
  readonly #reconciler: DependentReconciler;
  readonly #run: FindRun;
  #known: ReadonlyMap<string, Live> | undefined;
  /** The items that were written or removed since the last lookup. */
  readonly #changed = new Set<string>();

  constructor(reconciler: DependentReconciler, run: FindRun) {
    this.#reconciler = reconciler;
    this.#run = run;
  }

  /** All items of the last lookup. */
  get known(): ReadonlyMap<string, Live> {
    return (this.#known ??= this.#reconciler.findItems(this.#run));
  }

  /** Finds all items again. */
  findAll(): ReadonlyMap<string, Live> {
    this.#known = undefined;
    this.#changed.clear();
    return this.known;
  }

  get(key: string): Live | undefined {
    const known = this.known.get(key);
    if (known !== undefined && this.#reconciler.findAgain !== undefined)
      return this.#reconciler.findAgain(known, this.#run);
    return this.#changed.has(key) ? this.findAll().get(key) : known;
  }

  /** Call it when an item was, or may have been, written or removed. */
  change(key: string): void {
    this.#changed.add(key);
  }
}
