import type { ObjectKey } from "../base/kubernetes-object.js";
import { EventWindow } from "./event-window.js";
import type { ResourceChange } from "./resource-change.js";

/** The deletion of an object, as the watch brought it while our own was under way. */
interface HeldDeletion {
  readonly change: ResourceChange;
  readonly version: string;
}

/** Our own deletions of one object. */
interface UnderWay {
  count: number;
  /** Whether one of those that have ended has done it. */
  isOwn: boolean;
  held: HeldDeletion | undefined;
}

/** Deletions that may be our own, from when they are asked for until the answer says so (JOSDK tells every deletion). */
class HeldDeletions {
  /** By uid, for under the name of an object there may be another one already. */
  readonly #underWay = new Map<string, UnderWay>();

  get size(): number {
    return this.#underWay.size;
  }

  /** Says that a deletion begins. */
  open(uid: string): void {
    const known = this.#underWay.get(uid);
    if (known === undefined) this.#underWay.set(uid, { count: 1, isOwn: false, held: undefined });
    else known.count++;
  }

  /** Says that a deletion ended; returns what was held for it, with the last one that was under way. */
  close(uid: string, { isGone }: { readonly isGone: boolean }): (HeldDeletion & { isOwn: boolean }) | undefined {
    const known = this.#underWay.get(uid);
    if (known === undefined) return undefined;
    known.isOwn ||= isGone;
    if (--known.count > 0) return undefined;
    this.#underWay.delete(uid);
    return known.held && { ...known.held, isOwn: known.isOwn };
  }

  /** Holds a change if it is a deletion that is under way; tells whether it is. */
  hold(change: ResourceChange, version: string): boolean {
    // It is empty most of the time.
    if (this.#underWay.size === 0 || change.kind !== "deleted") return false;
    const known = this.#underWay.get(change.object.metadata.uid ?? "");
    if (known !== undefined) known.held = { change, version };
    return known !== undefined;
  }

  /** Returns what is held for an object, and holds it no longer. */
  release(key: ObjectKey): HeldDeletion | undefined {
    if (this.#underWay.size === 0) return undefined;
    const known = [...this.#underWay.values()].find(({ held }) => held?.change.key === key);
    const held = known?.held;
    if (known !== undefined) known.held = undefined;
    return held;
  }

  /** Ends all; returns what was held. */
  drain(): ResourceChange[] {
    const held = [...this.#underWay.values()].flatMap((each) => each.held?.change ?? []);
    this.#underWay.clear();
    return held;
  }
}

/** Keeps the events of one controller's own writes from it: a window for each object that it writes (JOSDK EventFilterSupport). */
export class OwnEvents {
  readonly #windows = new Map<ObjectKey, EventWindow>();
  readonly #deletions = new HeldDeletions();
  #isListing = false;

  /** How many objects have a window, and how many deletions are under way. */
  get size(): number {
    return this.#windows.size + this.#deletions.size;
  }

  /** Says that a deletion of an object begins. */
  openDeletion(uid: string): void {
    this.#deletions.open(uid);
  }

  /** Says that a deletion ended, by which the object is gone or not; returns the change that was held back and has to be told now. */
  closeDeletion(uid: string, { isGone }: { readonly isGone: boolean }): ResourceChange | undefined {
    const held = this.#deletions.close(uid, { isGone });
    if (held === undefined) return undefined;
    const { change, version } = held;
    if (!held.isOwn) return this.filter(change, version);
    this.forget(change.key, version);
    return undefined;
  }

  /** Takes a change before it is filtered; tells whether it is held because it may be an own deletion. */
  holds(change: ResourceChange, version: string): boolean {
    return this.#deletions.hold(change, version);
  }

  /** Returns the deletion that is held for an object of which more has become, and has to be told before that. */
  release(key: ObjectKey): ResourceChange | undefined {
    const held = this.#deletions.release(key);
    return held && this.filter(held.change, held.version);
  }

  /** Says that a write of an object begins. */
  open(key: ObjectKey): void {
    let window = this.#windows.get(key);
    if (window === undefined) this.#windows.set(key, (window = new EventWindow({ isListing: this.#isListing })));
    window.open();
  }

  /** Takes the version that an own write made; without a window it is forgotten. */
  recordOwn(key: ObjectKey, version: string): void {
    this.#windows.get(key)?.recordOwn(version);
  }

  /** Says that a write ended, while the watch is at `watchVersion`; returns the change that was held back and has to be told now. */
  close(key: ObjectKey, watchVersion = "0"): ResourceChange | undefined {
    const window = this.#windows.get(key);
    if (window === undefined) return undefined;
    window.close();
    const change = this.#check(key, window);
    // The echo came before the answer, and has been looked at, or it will never come.
    return window.forgetOwnUpTo(watchVersion) ? (this.#check(key, window) ?? change) : change;
  }

  /** Takes a change that the watch brought; returns what has to be told now: it, one that was held, both in one, or nothing. */
  filter(change: ResourceChange, version: string): ResourceChange | undefined {
    const window = this.#windows.get(change.key);
    if (window === undefined) return change;
    window.add(change, version);
    return this.#check(change.key, window);
  }

  /** Says that a list begins, or that it has arrived. */
  setListing(isListing: boolean): void {
    this.#isListing = isListing;
    for (const window of this.#windows.values()) window.setListing(isListing);
  }

  /**
   * Takes how far the watch has come; returns the changes that were held for echoes that will not come any more.
   *
   * JOSDK keeps such windows until something else happens to the object, which may be never.
   */
  passTo(version: string): ResourceChange[] {
    const changes: ResourceChange[] = [];
    for (const [key, window] of this.#windows) {
      const change = window.forgetOwnUpTo(version) ? this.#check(key, window) : undefined;
      if (change !== undefined) changes.push(change);
    }
    return changes;
  }

  /** Ends all windows; returns the changes that were held for writes whose end will not be told. */
  drain(): ResourceChange[] {
    const changes = [...this.#windows.values()].flatMap((window) => window.drain() ?? []);
    this.#windows.clear();
    return [...changes, ...this.#deletions.drain()];
  }

  /** Forgets what was held and awaited up to `version` of an object that is gone; a write that is under way goes on. */
  forget(key: ObjectKey, version: string): void {
    const window = this.#windows.get(key);
    if (window === undefined) return;
    window.forgetUpTo(version);
    if (window.isDone) this.#windows.delete(key);
  }

  #check(key: ObjectKey, window: EventWindow): ResourceChange | undefined {
    const change = window.check();
    if (window.isDone) this.#windows.delete(key);
    return change;
  }
}
