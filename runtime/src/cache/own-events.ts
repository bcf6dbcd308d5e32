import type { ObjectKey } from "../base/kubernetes-object.js";
import { EventWindow } from "./event-window.js";
import { changeMadeFor, type ResourceChange } from "./resource-change.js";

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
    // The echo came before the answer and was checked, or it will never come.
    return window.forgetOwnUpTo(watchVersion) ? (this.#check(key, window) ?? change) : change;
  }

  /** Takes a change from the watch; returns the change to notify now: this one, a held one, or both merged. */
  filter(change: ResourceChange, version: string): ResourceChange | undefined {
    const window = this.#windows.get(change.key);
    if (window === undefined) return change;
    window.add(change, version);
    return this.#check(change.key, window);
  }

  /** Takes the version that the watch has reached; returns the changes that were held for echoes that will not come. */
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

  /** Forgets the held changes and awaited echoes of a deleted object up to `version`; writes in flight go on. */
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
