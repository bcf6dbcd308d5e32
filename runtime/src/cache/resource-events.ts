import {
  type KubernetesObject,
  type ManagedWrite,
  type ObjectKey,
  type OwnedFields,
  isNewerVersion,
  keyOf,
} from "../base/kubernetes-object.js";

/** A change of an object. */
export interface ResourceChange {
  readonly kind: "added" | "updated" | "deleted";
  readonly key: ObjectKey;
  /** The state after the change; the last state of a deleted object. */
  readonly object: KubernetesObject;
  /** What the controllers of the operator applied to the object in this state. */
  readonly owned?: readonly OwnedFields[] | undefined;
  /** The state before the change, as the watch had it; absent if there was none. */
  readonly old?: KubernetesObject | undefined;
  /** The latest write of the field managers of the operator, if the watch brought the change. */
  readonly written?: ManagedWrite | undefined;
  /** Whether a list brought the change, and not the watch. */
  readonly isInitial: boolean;
  /** The primary whose reconcile alone made the change: it needs no event. Absent if another client, or another reconcile, took part. */
  readonly madeFor?: ObjectKey | undefined;
  /** Whether the deletion went unseen, so that `object` may not be the last state. */
  readonly isFinalStateUnknown?: boolean;
}

/** Returns the event that the change of a reconcile is for all other primaries; undefined if it was for no primary, so that none needs it. */
export function changeMadeFor(change: ResourceChange, madeFor: ObjectKey | undefined): ResourceChange | undefined {
  return madeFor === undefined ? undefined : { ...change, madeFor };
}

/** Returns the event of a deletion that no watch brought, with the last known state of the object. */
export function unseenDeletionOf(object: KubernetesObject, isInitial = true): ResourceChange {
  return { kind: "deleted", key: keyOf(object.metadata), object, old: object, isInitial, isFinalStateUnknown: true };
}

/** Notified of what a cache learns, in the same turn of the event loop. */
export interface CacheListener {
  /** `version` is the version of the event. */
  onChange(change: ResourceChange, version: string): void;
  /** The watch has reached `version`, by a bookmark or a list. */
  onVersion(version: string): void;
  /** The store of the API server was restored: no event of an own write will come. */
  onReset(): void;
}

/** Tells whether a new resource is worth a reconcile. */
export type OnAddFilter<Resource = KubernetesObject> = (resource: Resource) => boolean;

/** Tells whether a change is worth a reconcile. */
export type OnUpdateFilter<Resource = KubernetesObject> = (resource: Resource, old: Resource) => boolean;

/** Tells whether a deletion is worth a reconcile; `isFinalStateUnknown` if no watch was running when it happened. */
export type OnDeleteFilter<Resource = KubernetesObject> = (resource: Resource, isFinalStateUnknown: boolean) => boolean;

/** Tells whether anything that happens to a resource is worth a reconcile. */
export type GenericFilter<Resource = KubernetesObject> = (resource: Resource) => boolean;

/** What an event has to pass to cause a reconcile: `generic` and the filter of its kind. Default: all passes. Caches and indexes see all. */
export interface EventFilters<Resource = KubernetesObject> {
  readonly onAdd?: OnAddFilter<Resource> | undefined;
  readonly onUpdate?: OnUpdateFilter<Resource> | undefined;
  readonly onDelete?: OnDeleteFilter<Resource> | undefined;
  readonly generic?: GenericFilter<Resource> | undefined;
}

type Versioned = Pick<HeldChange, "version">;

/** An own write, for the reconcile of a primary if there is one. */
interface OwnVersion extends Versioned {
  readonly madeFor: ObjectKey | undefined;
}

interface HeldChange {
  readonly version: string;
  readonly change: ResourceChange;
}

/**
 * Tells the events of own writes to one object from changes by other clients (JOSDK EventFilterWindow).
 *
 * The version of a write in flight is unknown, so changes are held until `check` returns or drops them. When the version is known, the changes up to it
 * are either the own event alone, which is none for the primary of the reconcile that wrote, or merged into one. A deletion is never dropped, nor is
 * a change that a list brings: changes by other clients may have gone unseen before it.
 */
export class EventWindow {
  #activeWrites = 0;
  /** The versions of own writes whose event has not arrived, oldest first. */
  readonly #own: OwnVersion[] = [];
  /** At most one change per version, oldest first. */
  readonly #held: HeldChange[] = [];

  /** Whether no write is in flight, no change is held, and no own event is awaited. */
  get isDone(): boolean {
    return this.#activeWrites === 0 && this.#own.length === 0 && this.#held.length === 0;
  }

  open(): void {
    this.#activeWrites++;
  }

  close(): void {
    if (this.#activeWrites > 0) this.#activeWrites--;
  }

  recordOwn(version: string, madeFor?: ObjectKey): void {
    insertByVersion(this.#own, { version, madeFor });
  }

  add(change: ResourceChange, version: string): void {
    insertByVersion(this.#held, { change, version });
  }

  /** Returns the held deletion of an object when another object with its name appears. The reconcile that created that one needs no event of it. */
  endBefore({ object }: ResourceChange, version: string): ResourceChange | undefined {
    const last = this.#held.at(-1);
    if (last?.change.kind !== "deleted" || last.change.object.metadata.uid === object.metadata.uid) return undefined;
    const maker = this.#own.find((own) => own.version === version);
    this.#settle(this.#held.length, countUpTo(this.#own, last.version));
    return maker === undefined ? last.change : { ...last.change, madeFor: maker.madeFor };
  }

  /** Returns the change to notify now, if there is one, and forgets what is settled. */
  check(): ResourceChange | undefined {
    const last = this.#held.at(-1);
    if (last === undefined) return undefined;
    if (this.#own.length === 0) {
      const isFree = this.#activeWrites === 0 || this.#held[0]!.change.kind === "deleted";
      return isFree ? this.#settle(this.#held.length, 0) : undefined;
    }
    const arrived = countUpTo(this.#own, last.version);
    if (arrived === 0) return undefined;
    // A change after the last own version may be the event of the write in flight.
    const mayBeOwn = arrived === this.#own.length && this.#activeWrites > 0;
    return this.#settle(mayBeOwn ? countUpTo(this.#held, this.#own.at(-1)!.version) : this.#held.length, arrived);
  }

  /** Forgets own versions up to `version`, which the watch has passed; tells whether there were any. */
  forgetOwnUpTo(version: string): boolean {
    return this.#own.splice(0, countUpTo(this.#own, version)).length > 0;
  }

  /** Ends all writes; returns the held change, unless it is known to be an own event. */
  drain(): ResourceChange | undefined {
    this.#activeWrites = 0;
    return this.#settle(this.#held.length, this.#own.length);
  }

  /** Forgets held changes and awaited own events up to `version`; writes in flight go on. */
  forgetUpTo(version: string): void {
    this.forgetOwnUpTo(version);
    this.#held.splice(0, countUpTo(this.#held, version));
  }

  #settle(changes: number, versions: number): ResourceChange | undefined {
    if (changes === 0) return undefined;
    const settled = this.#held.splice(0, changes);
    const own = this.#own.splice(0, versions);
    const last = settled.at(-1)!;
    if (last.change.kind === "deleted") return last.change;
    const isFromList = settled.some(({ change }) => change.isInitial);
    // The object was re-created: its new state says all.
    if (settled.length > 1 && settled[0]!.change.kind === "deleted") settled.shift();
    const isOwn = settled.length === own.length && settled.every(({ version }, at) => version === own[at]!.version);
    const change = settled.length === 1 ? last.change : mergeChanges(settled);
    return isOwn && !isFromList ? ownEventOf(change, own) : change;
  }
}

// A change by the reconcile of one primary is an event for every other primary of the object.
function ownEventOf(change: ResourceChange, own: readonly OwnVersion[]): ResourceChange | undefined {
  const [madeFor, ...others] = new Set(own.map((each) => each.madeFor));
  if (others.length > 0) return change;
  return changeMadeFor(change, madeFor);
}

function mergeChanges(changes: readonly HeldChange[]): ResourceChange {
  const first = changes[0]!.change;
  const { key, object, owned, written } = changes.at(-1)!.change;
  const isInitial = changes.every(({ change }) => change.isInitial);
  const change: ResourceChange = { kind: "updated", key, object, owned, old: first.old ?? first.object, isInitial };
  return written === undefined ? change : { ...change, written };
}

function countUpTo(sorted: readonly Versioned[], version: string): number {
  let count = sorted.length;
  while (count > 0 && isNewerVersion(sorted[count - 1]!.version, version)) count--;
  return count;
}

// Replaces an item of the same version.
function insertByVersion<Item extends Versioned>(sorted: Item[], item: Item): void {
  const behind = countUpTo(sorted, item.version);
  const known = sorted[behind - 1]?.version === item.version ? 1 : 0;
  sorted.splice(behind - known, known, item);
}

/** The own deletions of one object that are in flight. */
interface DeletionsUnderWay {
  count: number;
  /** Whether one that has ended did delete the object. */
  isOwn: boolean;
  madeFor?: ObjectKey | undefined;
  /** The deletion that the watch brought meanwhile. */
  held?: { readonly change: ResourceChange; readonly version: string } | undefined;
}

/** Filters the events of one controller's own writes (JOSDK EventFilterSupport), and of its deletions, which JOSDK notifies. */
export class OwnEvents {
  readonly #windows = new Map<ObjectKey, EventWindow>();
  /** By uid: the name may belong to a re-created object already. */
  readonly #deletions = new Map<string, DeletionsUnderWay>();

  get size(): number {
    return this.#windows.size + this.#deletions.size;
  }

  openDeletion(uid: string): void {
    const known = this.#deletions.get(uid) ?? { count: 0, isOwn: false };
    this.#deletions.set(uid, known);
    known.count++;
  }

  /** Ends an own deletion, which deleted the object or did not; the last one in flight returns a held change to notify now. */
  closeDeletion(uid: string, isGone: boolean, madeFor?: ObjectKey): ResourceChange | undefined {
    const known = this.#deletions.get(uid);
    if (known === undefined) return undefined;
    known.isOwn ||= isGone;
    known.madeFor ??= madeFor;
    if (--known.count > 0) return undefined;
    this.#deletions.delete(uid);
    if (!known.isOwn) return this.#release(known);
    if (known.held === undefined) return undefined;
    this.forget(known.held.change.key, known.held.version);
    return changeMadeFor(known.held.change, known.madeFor);
  }

  /** Takes a change from the watch; returns what to notify now. */
  take(change: ResourceChange, version: string): readonly (ResourceChange | undefined)[] {
    const uid = change.object.metadata.uid ?? "";
    const own = change.kind === "deleted" ? this.#deletions.get(uid) : undefined;
    if (own !== undefined) {
      own.held = { change, version };
      return [];
    }
    // The held deletion of an earlier object of this name comes first: what is kept of that one has to go before.
    const earlier = [...this.#deletions.values()].find(({ held }) => held?.change.key === change.key);
    const released = earlier && this.#release(earlier);
    return [released, this.#windows.get(change.key)?.endBefore(change, version), this.filter(change, version)];
  }

  open(key: ObjectKey): void {
    const window = this.#windows.get(key) ?? new EventWindow();
    this.#windows.set(key, window);
    window.open();
  }

  /** Takes the version of an own write. Ignored without a window. */
  recordOwn(key: ObjectKey, version: string, madeFor?: ObjectKey): void {
    this.#windows.get(key)?.recordOwn(version, madeFor);
  }

  /** Ends an own write while the watch is at `watchVersion`; returns a held change that is to be notified now. */
  close(key: ObjectKey, watchVersion = "0"): ResourceChange | undefined {
    const window = this.#windows.get(key);
    if (window === undefined) return undefined;
    window.close();
    const change = this.#check(key, window);
    // The own event came before the answer and was checked, or it will never come.
    return window.forgetOwnUpTo(watchVersion) ? (this.#check(key, window) ?? change) : change;
  }

  /** Takes a change from the watch; returns the change to notify now: this one, a held one, or both merged. */
  filter(change: ResourceChange, version: string): ResourceChange | undefined {
    const window = this.#windows.get(change.key);
    if (window === undefined) return change;
    window.add(change, version);
    return this.#check(change.key, window);
  }

  /** Takes the version that the watch has reached; returns the changes that were held for own events that will not come. */
  passTo(version: string): ResourceChange[] {
    // JOSDK keeps such a window until the next event of the object, which may never come.
    const passed = [...this.#windows].filter(([, window]) => window.forgetOwnUpTo(version));
    return passed.flatMap(([key, window]) => this.#check(key, window) ?? []);
  }

  /** Ends all windows; returns the changes that were held. */
  drain(): ResourceChange[] {
    const changes = [...this.#windows.values()].flatMap((window) => window.drain() ?? []);
    const deletions = [...this.#deletions.values()].flatMap(({ held }) => held?.change ?? []);
    this.#windows.clear();
    this.#deletions.clear();
    return [...changes, ...deletions];
  }

  /** Forgets the held changes and awaited own events of a deleted object up to `version`; writes in flight go on. */
  forget(key: ObjectKey, version: string): void {
    const window = this.#windows.get(key);
    if (window === undefined) return;
    window.forgetUpTo(version);
    if (window.isDone) this.#windows.delete(key);
  }

  #release(deletions: DeletionsUnderWay): ResourceChange | undefined {
    const { held } = deletions;
    deletions.held = undefined;
    return held && this.filter(held.change, held.version);
  }

  #check(key: ObjectKey, window: EventWindow): ResourceChange | undefined {
    const change = window.check();
    if (window.isDone) this.#windows.delete(key);
    return change;
  }
}
