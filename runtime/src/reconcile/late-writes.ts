import { systemClock, type Clock } from "../base/clock.js";
import type { KubernetesObject } from "../base/kubernetes-object.js";

/** How long after a write was given up the API server may still carry it out: its request is over by then, also behind a slow proxy. */
const LATE_MS = 10_000;

/** The primaries for which a write was given up a moment ago that may still create an object, which nobody would delete after they are gone. */
export class LateWrites {
  readonly #clock: Clock;
  /** Until when writes of a process before this one may come. */
  readonly #othersEnd: number;
  /** When no write of a primary can come any more, and whose it was, by uid; the latest last. */
  readonly #ends = new Map<string, { readonly end: number; readonly writer: object }>();
  /** The primaries, by uid, for which no process before this one made anything; kept until `#othersEnd`. */
  readonly #new = new Set<string>();

  /** `startedAt`: when the process began, if it may follow another one, whose writes are not known. */
  constructor({ clock = systemClock, startedAt = -Infinity }: { clock?: Clock; startedAt?: number } = {}) {
    this.#clock = clock;
    this.#othersEnd = startedAt + LATE_MS;
  }

  /** Tells whether a write may still come that a writer gave up here. */
  hasAny(writer: object): boolean {
    this.#forget();
    return [...this.#ends.values()].some((each) => each.writer === writer);
  }

  /** Takes note of a write for a primary that was given up; `writer` is the definition of the controller. */
  note({ metadata: { uid = "" } }: KubernetesObject, writer: object): void {
    this.#forget();
    this.#ends.delete(uid);
    this.#ends.set(uid, { end: this.#clock.now() + LATE_MS, writer });
  }

  /** Takes note of a primary that gets its finalizer only now: nothing was made for it before. */
  noteNew({ metadata: { uid = "" } }: KubernetesObject): void {
    if (this.#clock.now() < this.#othersEnd) this.#new.add(uid);
    else this.#new.clear();
  }

  /** Returns how long a write of a primary may still come; 0 if none may. */
  remainingMs({ metadata: { uid = "" } }: KubernetesObject): number {
    const end = Math.max(this.#ends.get(uid)?.end ?? 0, this.#new.has(uid) ? 0 : this.#othersEnd);
    return Math.max(0, end - this.#clock.now());
  }

  #forget(): void {
    const now = this.#clock.now();
    for (const [known, { end }] of this.#ends) if (end <= now) this.#ends.delete(known);
  }
}

/** Those of this process, whichever of its operators gave them up. */
export const lateWrites = new LateWrites({ startedAt: 0 });
