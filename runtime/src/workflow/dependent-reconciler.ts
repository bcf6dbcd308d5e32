// The interface of dependents (JOSDK's DependentResource): how their objects are found, written, and deleted. The workflow decides when that happens;
// it handles conditions, order, retries, and the items of bulk dependents.
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

/** Calls a user function. `what` describes the function in messages about functions that do not return. */
export type CallUser = <Result>(what: string, task: () => Result | Promise<Result>) => Promise<Result>;

/** The state of one reconcile of a primary, shared by all workflow runs, steps, and dependents in it. */
export interface Reconcile {
  /** The kind of the primary. */
  readonly definition: ResourceDefinition;
  /** The namespaces that the controller watches; undefined for all. */
  readonly namespaces?: readonly string[] | undefined;
  /** The user's event sources. */
  readonly secondaries?: SecondarySources | undefined;
  readonly notes: ReconcileNotes;
  /** Whether only name, namespace, and UID of the primary are known, so that functions that read its spec fail. Default: false */
  readonly isPrimaryUnknown?: boolean;
  readonly tracing?: Tracing | undefined;
  /** Default: the system clock */
  readonly clock?: Clock;
  readonly track: CallUser;
  /**
   * Adds the finalizer to the primary before the first write of an object that needs cleanup, if the controller uses a finalizer. Throws if the
   * primary is deleted or the finalizer cannot be stored.
   */
  ensureFinalizer?(): Promise<void>;
  /**
   * Called for every aborted write that the API server may still execute, and that may create an object which the garbage collector does not delete.
   */
  readonly onGivenUp?: () => void;
  /** Called with every write that may take longer than the timeout of its step. */
  linger?(write: Promise<unknown>): void;
  /** Called for every completed step. */
  onStep?(step: StepTiming): void;
}

/** A workflow run, as seen by a step and its dependent. */
export interface DependentRun extends DependentArguments<KubernetesObject, object> {
  readonly reconcile: Reconcile;
  /** The name of the dependent in logs. Default: the name in the definition */
  readonly dependent?: string;
}

/** Returns the arguments for user functions. */
export function argumentsOf({
  primary,
  secondary,
  context,
}: DependentRun): DependentArguments<KubernetesObject, object> {
  return { primary, secondary, context };
}

/** A desired object, completed with its namespace and the link to its primary. */
export interface Wanted {
  /** The key of a Kubernetes object, or the ID of an external resource. */
  readonly id: string;
  readonly object: object;
  /** The key of the item in a bulk dependent. */
  readonly item?: string | undefined;
}

/** A live object. User functions receive `object`. */
export interface Live {
  readonly object: object;
}

/** The live items of a bulk dependent by key. */
export interface KnownItems {
  get(key: string): Live | undefined;
}

/** An object that is not in any watch. `isForeign`: it does not belong to the primary yet, and will be adopted. */
interface DiscoveredObject {
  readonly entry: DecodedResource;
  readonly isForeign?: boolean | undefined;
}

/** An object with `mode: once` that was created and no longer exists. */
export interface EndedObject {
  readonly kind: "ended";
  readonly isReady: boolean;
  readonly detail?: string;
}

/** The result of a write that was applied or postponed. */
export type ReachedWrite =
  | { readonly kind: "created" | "updated" | "unchanged" }
  | { readonly kind: "postponed"; readonly postponed: PostponedWrite };

/** The result of a write, or the reason why nothing was written. */
export type WriteOutcome =
  | ReachedWrite
  /** The object is being deleted. */
  | { readonly kind: "terminating" }
  /** The object does not exist, and another client has to create it. */
  | { readonly kind: "absent" }
  /** `desired` has not read the object that the write would replace. */
  | ({ readonly kind: "unseen" } & DiscoveredObject)
  /** Something else has to happen first. `untilEnd`: the existing object has to end. */
  | { readonly kind: "blocked"; readonly because: string; readonly untilEnd?: boolean }
  | EndedObject;

/** The object is as desired. */
export const UNCHANGED: ReachedWrite = { kind: "unchanged" };

/** The primary whose objects are looked up. In a reconcile, objects claimed by other dependents are not found. */
export interface FindRun {
  readonly primary: KubernetesObject;
  readonly reconcile?: Reconcile;
  /** Objects that are not in any watch. Default: those discovered in the reconcile */
  readonly discovered?: DiscoveredObjects;
}

/** Returns the objects that are not in any watch, if the lookup knows any. */
export function discoveredIn({ discovered, reconcile }: FindRun): DiscoveredObjects | undefined {
  return discovered ?? reconcile?.notes.discovered;
}

/** The primary whose held objects are released, in a reconcile or after its deletion. */
export interface HoldRun {
  readonly primary: KubernetesObject;
  readonly context: CleanupContext;
}

/** The signal and the logger of a cleanup, inside or outside of a reconcile. */
export interface CleanupContext {
  readonly signal: AbortSignal;
  readonly logger: Logger;
}

/** The resourceVersions in which one call of `desired` has read objects of its own dependent, by key; undefined if it read none of them. */
export type SeenVersions = ReadonlyMap<ObjectKey, string | undefined>;

/** A primary as referred to by links. */
export interface LinkedPrimary {
  readonly key: ObjectKey;
  readonly uid: string;
}

/** Keeps objects of a dependent until their primary is cleaned up, regardless of which client deletes them. */
export interface CleanupHolds {
  /** Holds an object if the dependent requires it. Releases an object that is being deleted while its primary is not. */
  hold(run: DependentRun, live: Live): Promise<void>;
  /** Returns the objects to hold for a primary. */
  objectsToHold(run: FindRun): readonly KubernetesObject[];
  /** Reports whether the event source has objects that are held for a primary. */
  hasAny(primary: KubernetesObject): boolean;
  /** Releases the objects held for a primary whose UID is not in `needed`, and adds the UIDs of released objects to it. */
  releaseAll(run: HoldRun, needed: Set<string | undefined>): Promise<void>;
}

/** Finds, writes, and deletes the objects of one dependent, for all primaries. It keeps no state of a run. */
export interface DependentReconciler {
  readonly source: ActivatedWatch;
  /**
   * Reports whether objects of a primary may be in a namespace whose watch has not synced; the result of `desired` shows whether they are. Default:
   * no
   */
  isPartlyUnknown?(run: FindRun): boolean;
  /** Describes an unsynced watch that the desired objects need; undefined if all have synced. */
  unknownOf?(run: FindRun, desired: unknown): string | undefined;
  /** Without `write`, the workflow only waits for the object. Without `remove`, it does not delete the object. */
  readonly capabilities: { readonly write: boolean; readonly remove: boolean };
  /** The client for the cluster of its objects; absent for external resources. */
  readonly client?: ApiClient | undefined;
  /** Reports whether a primary names an object (`ref`). Default: yes */
  isNamed?(run: FindRun): boolean;
  /** Reports whether a cleanup leaves the objects to the garbage collector. Default: no */
  isCollected?(run: FindRun): boolean;
  /** Validates and completes the result of `desired`, or one item of it, and claims the object. Throws a TerminalError if it cannot be written. */
  complete(run: DependentRun, desired: unknown, item?: string): Wanted;
  /**
   * Returns the live object: the desired one or, before `desired` was called, the one that belongs to the primary. `items` has the known items of a
   * bulk dependent.
   */
  find(run: FindRun, wanted?: Wanted, items?: KnownItems): Live | undefined;
  /**
   * Before a deletion, discovers objects of the primary that `find` does not know, based on the result of `desire`: another client created them, they
   * have lost their label, or an earlier version of the operator linked them. `isConfirming`: nothing may remain, so it searches as thoroughly as
   * while the primary is being deleted. Default: there are none
   */
  discover?(
    run: DependentRun,
    desire: () => Promise<unknown>,
    options?: { readonly isConfirming?: boolean },
  ): Promise<void>;
  /** Reports whether there is anything to clean up before the primary is deleted. Default: no */
  hasAny?(primary: KubernetesObject): boolean;
  /** Returns the unknown primaries to which its objects are linked. Default: none */
  linkedPrimaries?(isKnown: (key: ObjectKey, uid: string) => boolean): readonly LinkedPrimary[];
  /** Describes the objects of a primary that are not being deleted. Default: none */
  leftOf?(primary: KubernetesObject): readonly string[];
  /** Returns how long objects created by a previous process may still be missing from the known state, in milliseconds. Default: 0 */
  unconfirmedMs?(primary: KubernetesObject): number;
  /** Returns the live items of a bulk dependent by key. */
  findItems(run: FindRun): ReadonlyMap<string, Live>;
  /** Returns the last state of an object that another client deleted, for functions that run while the primary is being deleted. Default: none */
  lastSeen?(run: FindRun): Live | undefined;
  /** Returns the last states of items that other clients deleted, by key. Default: none */
  lastSeenItems?(run: FindRun): ReadonlyMap<string, Live>;
  /** Returns the current state of an item; undefined if it was deleted. Absent if all items have to be looked up again. */
  findAgain?(item: Live, run?: FindRun): Live | undefined;
  /** Creates or updates the object unless it is up to date. `live` is the result of `find`; `seen` is what `desired` has read. */
  write(run: DependentRun, wanted: Wanted, live: Live | undefined, seen?: SeenVersions): Promise<WriteOutcome>;
  /** Records whether the object is ready, if that is needed after its deletion (`mode: once`). Resolves with whether it has ended. */
  remember?(run: DependentRun, wanted: Wanted, live: Live, isReady: boolean): Promise<boolean>;
  /** Requests the deletion of the object, without waiting for it. An object to orphan is released instead, and no longer found. */
  remove(run: DependentRun, live: Live): Promise<void>;
  /** Absent if its objects cannot be held for the cleanup of their primary. */
  readonly holds?: CleanupHolds;
  /** Reports whether an object whose deletion was requested is terminating. Default: no */
  isHeld?(live: Live): boolean;
  /** Completes removals that failed halfway. Called at the end of each successful step. Default: nothing */
  finishRemovals?(run: HoldRun): Promise<void>;
  /** Reports whether to leave an object that could not be deleted, so that it does not block the deletion of its primary. Default: no */
  release?(run: DependentRun, failed: { readonly error: unknown; readonly item?: string | undefined }): boolean;
}

/** Identifies the kind and cluster of objects, within which keys are unique. */
export function placeOf({ cluster = "", resource }: KindInCluster): string {
  return JSON.stringify([cluster, resource.group, resource.kind]);
}

/** The dependent that claims an object, and the item if it is a bulk dependent. */
interface Claim {
  readonly dependent: string;
  readonly item?: string | undefined;
}

/**
 * Live objects of dependents that are not in any watch, because they lack the controller's label. A write that finds one restarts its step, so that
 * conditions, `secondary`, and `desired` see the object before it is replaced.
 */
export class DiscoveredObjects {
  readonly #entries = new Map<string, DecodedResource>();
  readonly #foreign = new Set<string | undefined>();

  /** Adds the object of a dependent or item. `isForeign`: it does not belong to the primary until it is written. */
  add({ dependent, item }: Claim, { entry, isForeign = false }: DiscoveredObject): void {
    this.#entries.set(JSON.stringify([dependent, item]), entry);
    if (isForeign) this.#foreign.add(uidOf(entry));
  }

  /** Drops an object that was deleted or released. */
  forget(uid: string | undefined): void {
    for (const [key, entry] of this.#entries) if (uidOf(entry) === uid) this.#entries.delete(key);
  }

  isForeign(uid: string | undefined): boolean {
    return this.#foreign.has(uid);
  }

  of(dependent: string, item?: string): DecodedResource | undefined {
    return this.#entries.size === 0 ? undefined : this.#entries.get(JSON.stringify([dependent, item]));
  }

  /** Returns the objects of the items of a bulk dependent by key. */
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

/** The objects that dependents claim or have deleted in one reconcile; shared by all runs of the reconcile. */
export class ReconcileNotes {
  /** Deletions of objects, in progress or done, by UID. */
  readonly removals = new Map<string, Promise<unknown>>();
  /** UIDs of objects that a custom `delete` function has kept, so that nothing else deletes them. */
  readonly kept = new Set<string | undefined>();
  readonly discovered = new DiscoveredObjects();
  readonly #claims = new Map<string, Claim>();
  /** The names of dependents with any claim. */
  readonly #claimants = new Set<string>();

  /** Claims an object for a dependent, unless another one has claimed it. Returns the name of the dependent that has the claim. */
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

/** The live items of a bulk dependent in one run. They are looked up together, because a lookup iterates over all items. */
export class LiveItems implements KnownItems {
  readonly #reconciler: DependentReconciler;
  readonly #run: FindRun;
  #known: ReadonlyMap<string, Live> | undefined;
  /** The items written or deleted since the last lookup. */
  readonly #changed = new Set<string>();

  constructor(reconciler: DependentReconciler, run: FindRun) {
    this.#reconciler = reconciler;
    this.#run = run;
  }

  /** All items of the last lookup. */
  get known(): ReadonlyMap<string, Live> {
    return (this.#known ??= this.#reconciler.findItems(this.#run));
  }

  /** Looks up all items again. */
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

  /** Call this after an item was, or may have been, written or deleted. */
  change(key: string): void {
    this.#changed.add(key);
  }
}
