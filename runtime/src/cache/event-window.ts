// Tells the echoes of own writes of one object from foreign changes (JOSDK EventFilterWindow).
// While a write is in flight its version is unknown, so changes are held. Then those up to it are either its echo alone, which is no event for the
// primary of the reconcile that wrote, or merged into one. A deletion is never dropped, nor is a change from a list: between two lists foreign
// changes may have gone unseen.
import { changeMadeFor, type ResourceChange } from "./resource-change.js";
import { isNewerVersion, type ObjectKey } from "../base/kubernetes-object.js";

type Versioned = Pick<HeldChange, "version">;

/** An own write, for the reconcile of a primary if there is one. */
interface OwnVersion extends Versioned {
  readonly madeFor: ObjectKey | undefined;
}

interface HeldChange {
  readonly version: string;
  readonly change: ResourceChange;
}

/** The changes of one object around own writes. A change is held until `check` returns or drops it. */
export class EventWindow {
  #activeWrites = 0;
  /** The versions of own writes whose echo has not come, oldest first. */
  readonly #own: OwnVersion[] = [];
  /** At most one change per version, oldest first. */
  readonly #held: HeldChange[] = [];

  /** Whether no write is in flight, no change held and no echo awaited. */
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
    insert(this.#own, { version, madeFor });
  }

  add(change: ResourceChange, version: string): void {
    insert(this.#held, { change, version });
  }

  /** Returns the held deletion of an object when the next one of its name comes; whoever made that one needs no event of it. */
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
    const echoed = countUpTo(this.#own, last.version);
    if (echoed === 0) return undefined;
    // A change behind the last own version may be the echo of the write in flight.
    const mayBeEcho = echoed === this.#own.length && this.#activeWrites > 0;
    return this.#settle(mayBeEcho ? countUpTo(this.#held, this.#own.at(-1)!.version) : this.#held.length, echoed);
  }

  /** Forgets own versions up to `version`, which the watch has passed; tells whether there were any. */
  forgetOwnUpTo(version: string): boolean {
    return this.#own.splice(0, countUpTo(this.#own, version)).length > 0;
  }

  /** Ends all writes; returns what was held, unless it is known to be an echo. */
  drain(): ResourceChange | undefined {
    this.#activeWrites = 0;
    return this.#settle(this.#held.length, this.#own.length);
  }

  /** Forgets held changes and awaited echoes up to `version`; writes in flight go on. */
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
    const change = settled.length === 1 ? last.change : merge(settled);
    return isOwn && !isFromList ? echoOf(change, own) : change;
  }
}

// Every other primary that the object concerns has to hear of what the reconcile of one has made.
function echoOf(change: ResourceChange, own: readonly OwnVersion[]): ResourceChange | undefined {
  const [madeFor, ...others] = new Set(own.map((each) => each.madeFor));
  if (others.length > 0) return change;
  return changeMadeFor(change, madeFor);
}

function merge(changes: readonly HeldChange[]): ResourceChange {
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
function insert<Item extends Versioned>(sorted: Item[], item: Item): void {
  const behind = countUpTo(sorted, item.version);
  const known = sorted[behind - 1]?.version === item.version ? 1 : 0;
  sorted.splice(behind - known, known, item);
}
