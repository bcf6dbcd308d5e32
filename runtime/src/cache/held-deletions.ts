import type { ObjectKey } from "../base/kubernetes-object.js";
import type { ResourceChange } from "./resource-change.js";

/** The deletion of an object, as the watch brought it while our own was under way. */
export interface HeldDeletion {
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
export class HeldDeletions {
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
