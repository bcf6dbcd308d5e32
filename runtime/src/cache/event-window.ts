// Tells apart, for one object, the echoes of our own writes from what others did (JOSDK EventFilterWindow).
//
// While a write is under way nobody knows yet which version it makes, so changes are held; when the version is known, the changes up to
// it are its echo alone and are swallowed, or there is more in them and they are merged into one. A deletion is never swallowed, and
// neither is what a list brought: between two lists anything may have gone unseen.
import type { ResourceChange } from "./resource-change.js";
import { compareResourceVersions } from "../base/kubernetes-object.js";

interface HeldChange {
  readonly version: string;
  readonly change: ResourceChange;
  readonly isFromList: boolean;
}

/** The changes of one object around our own writes of it; a change is held until `check` returns it or swallows it. */
export class EventWindow {
  #activeWrites = 0;
  /** Whether a list is under way. */
  #isListing: boolean;
  /** Versions that our own writes made and whose echo was not seen; the oldest first. */
  #own: string[] = [];
  /** At most one for each version; the oldest first. */
  #held: HeldChange[] = [];

  constructor({ isListing = false }: { isListing?: boolean } = {}) {
    this.#isListing = isListing;
  }

  /** Whether nothing is under way, held or awaited any more. */
  get isDone(): boolean {
    return this.#activeWrites === 0 && this.#own.length === 0 && this.#held.length === 0;
  }

  /** Says that a write begins. */
  open(): void {
    this.#activeWrites++;
  }

  /** Says that a write ended, however it did. */
  close(): void {
    if (this.#activeWrites > 0) this.#activeWrites--;
  }

  /** Says that a list begins or has ended; what is added between is never swallowed. */
  setListing(isListing: boolean): void {
    this.#isListing = isListing;
  }

  /** Takes a version that an own write made. */
  recordOwn(version: string): void {
    const at = insertionPoint(this.#own, version, (own) => own);
    if (this.#own[at] !== version) this.#own.splice(at, 0, version);
  }

  /** Takes a change that the watch brought. */
  add(change: ResourceChange, version: string): void {
    const held = { change, version, isFromList: this.#isListing };
    const at = insertionPoint(this.#held, version, (each) => each.version);
    this.#held.splice(at, this.#held[at]?.version === version ? 1 : 0, held);
  }

  /** Returns the change that has to be told now, if there is one, and forgets what is settled. */
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
    // What comes behind the last own version may be the echo of the write that is under way.
    if (echoed === this.#own.length && this.#activeWrites > 0)
      return this.#settle(
        countUpTo(this.#held, this.#own.at(-1)!, (held) => held.version),
        echoed,
      );
    return this.#settle(everything, echoed);
  }

  /** Forgets the own versions up to `version`, which a watch that is past them does not bring any more; tells whether there were any. */
  forgetOwnUpTo(version: string): boolean {
    const passed = countUpTo(this.#own, version, (own) => own);
    return this.#own.splice(0, passed).length > 0;
  }

  /** Ends everything; returns what was held, unless it is known to be an echo. */
  drain(): ResourceChange | undefined {
    this.#activeWrites = 0;
    return this.#settle(this.#held.length, this.#own.length);
  }

  /** Forgets what is held and awaited up to `version`, but not the writes that are under way. */
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
    // The object was made anew: what became of it says all.
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

// Where `version` stands or belongs.
function insertionPoint<Item>(sorted: readonly Item[], version: string, versionOf: (item: Item) => string): number {
  const behind = countUpTo(sorted, version, versionOf);
  return behind > 0 && versionOf(sorted[behind - 1]!) === version ? behind - 1 : behind;
}
