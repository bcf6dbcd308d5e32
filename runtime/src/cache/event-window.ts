// Tells the echoes of own writes of one object from foreign changes (JOSDK EventFilterWindow).
//
// While a write is in flight its version is unknown, so changes are held. Once the version is known, the changes up to it are either the echo
// alone, which is dropped, or contain a foreign change, and are merged into one. A deletion is never dropped, nor is a change from a list:
// between two lists foreign changes may have gone unseen.
import type { ResourceChange } from "./resource-change.js";
import { compareResourceVersions } from "../base/kubernetes-object.js";

interface HeldChange {
  readonly version: string;
  readonly change: ResourceChange;
  readonly isFromList: boolean;
}

/** The changes of one object around own writes. A change is held until `check` returns or drops it. */
export class EventWindow {
  #activeWrites = 0;
  /** Whether a list is under way. */
  #isListing: boolean;
  /** The versions of own writes whose echo has not come, oldest first. */
  #own: string[] = [];
  /** At most one change per version, oldest first. */
  #held: HeldChange[] = [];

  constructor({ isListing = false }: { isListing?: boolean } = {}) {
    this.#isListing = isListing;
  }

  /** Whether no write is in flight, no change held and no echo awaited. */
  get isDone(): boolean {
    return this.#activeWrites === 0 && this.#own.length === 0 && this.#held.length === 0;
  }

  /** Begins a write. */
  open(): void {
    this.#activeWrites++;
  }

  /** Ends a write, whether it succeeded or not. */
  close(): void {
    if (this.#activeWrites > 0) this.#activeWrites--;
  }

  /** Says whether a list is under way: changes from it are never dropped. */
  setListing(isListing: boolean): void {
    this.#isListing = isListing;
  }

  /** Takes the version of an own write. */
  recordOwn(version: string): void {
    const at = insertionPoint(this.#own, version, (own) => own);
    if (this.#own[at] !== version) this.#own.splice(at, 0, version);
  }

  /** Takes a change from the watch. */
  add(change: ResourceChange, version: string): void {
    const held = { change, version, isFromList: this.#isListing };
    const at = insertionPoint(this.#held, version, (each) => each.version);
    this.#held.splice(at, this.#held[at]?.version === version ? 1 : 0, held);
  }

  /** Returns the change to notify now, if there is one, and forgets what is settled. */
  check(): ResourceChange | undefined {
    const last = this.#held.at(-1);
    if (last === undefined) return undefined;
    const everything = this.#held.length;
    if (this.#own.length === 0) {
      if (this.#activeWrites === 0 || this.#held[0]!.change.kind === "deleted") return this.#settle(everything, 0);
      return undefined;
    }
    const echoed = countUpTo(this.#own, last.version, (own) => own);
    if (echoed === 0) return undefined;
    // A change behind the last own version may be the echo of the write in flight.
    if (echoed === this.#own.length && this.#activeWrites > 0)
      return this.#settle(
        countUpTo(this.#held, this.#own.at(-1)!, (held) => held.version),
        echoed,
      );
    return this.#settle(everything, echoed);
  }

  /** Forgets own versions up to `version`, which the watch has passed; tells whether there were any. */
  forgetOwnUpTo(version: string): boolean {
    const passed = countUpTo(this.#own, version, (own) => own);
    return this.#own.splice(0, passed).length > 0;
  }

  /** Ends all writes; returns what was held, unless it is known to be an echo. */
  drain(): ResourceChange | undefined {
    this.#activeWrites = 0;
    return this.#settle(this.#held.length, this.#own.length);
  }

  /** Forgets held changes and awaited echoes up to `version`; writes in flight go on. */
  forgetUpTo(version: string): void {
    this.forgetOwnUpTo(version);
    this.#held.splice(
      0,
      countUpTo(this.#held, version, (held) => held.version),
    );
  }

  #settle(changes: number, versions: number): ResourceChange | undefined {
    if (changes === 0) return undefined;
    const settled = this.#held.splice(0, changes);
    const own = this.#own.splice(0, versions);
    const last = settled.at(-1)!;
    if (last.change.kind === "deleted") return last.change;
    const isFromList = settled.some((each) => each.isFromList);
    // The object was re-created: its new state says all.
    if (settled.length > 1 && settled[0]!.change.kind === "deleted") settled.shift();
    if (!isFromList && settled.length === own.length && settled.every(({ version }, at) => version === own[at]))
      return undefined;
    return settled.length === 1 ? last.change : merge(settled);
  }
}

function merge(changes: readonly HeldChange[]): ResourceChange {
  const first = changes[0]!.change;
  const { key, object } = changes.at(-1)!.change;
  const isInitial = changes.every(({ change }) => change.isInitial);
  return { kind: "updated", key, object, old: first.old ?? first.object, isInitial };
}

function countUpTo<Item>(sorted: readonly Item[], version: string, versionOf: (item: Item) => string): number {
  let count = sorted.length;
  while (count > 0 && compareResourceVersions(versionOf(sorted[count - 1]!), version) > 0) count--;
  return count;
}

// The index at which `version` stands, or is to be inserted.
function insertionPoint<Item>(sorted: readonly Item[], version: string, versionOf: (item: Item) => string): number {
  const behind = countUpTo(sorted, version, versionOf);
  return behind > 0 && versionOf(sorted[behind - 1]!) === version ? behind - 1 : behind;
}
