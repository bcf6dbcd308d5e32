// Aborted writes that the API server may still execute. The finalizer of a primary stays until they expire: an object created later would never be
// cleaned up.
import type { KubernetesObject } from "../base/kubernetes-object.js";
import { type Clock, systemClock } from "../base/wait.js";

/** How long the API server may still execute an aborted request, even behind a slow proxy. */
const LATE_MS = 10_000;

/** Tracks aborted writes of all controllers of this process. */
export class LateWrites {
  readonly #clock: Clock;
  /** When aborted writes of a previous process expire. */
  readonly #othersEnd: number;
  /** By UID of the primary, in order of expiry. */
  readonly #ends = new Map<string, { readonly end: number; readonly writer: object }>();
  /** UIDs of primaries that no previous process has written for; kept until `#othersEnd`. */
  readonly #new = new Set<string>();

  /** `startedAt` is the start of the process, if a previous process may have aborted writes. */
  constructor({ clock = systemClock, startedAt = -Infinity }: { clock?: Clock; startedAt?: number } = {}) {
    this.#clock = clock;
    this.#othersEnd = startedAt + LATE_MS;
  }

  /** Reports whether an aborted write of a controller may still be executed. */
  hasAny(writer: object): boolean {
    this.#forget();
    return [...this.#ends.values()].some((each) => each.writer === writer);
  }

  /** Records an aborted write for a primary. `writer` is the definition of the controller. */
  note({ metadata: { uid = "" } }: KubernetesObject, writer: object): void {
    this.#forget();
    this.#ends.delete(uid);
    this.#ends.set(uid, { end: this.#clock.now() + LATE_MS, writer });
  }

  /** Records a primary that has had no finalizer so far: no previous process has created anything for it. */
  noteNew({ metadata: { uid = "" } }: KubernetesObject): void {
    if (this.#clock.now() < this.#othersEnd) this.#new.add(uid);
    else this.#new.clear();
  }

  /** Returns the time until no aborted write for a primary can be executed any more, in milliseconds, or 0. */
  remainingMs({ metadata: { uid = "" } }: KubernetesObject): number {
    const end = Math.max(this.#ends.get(uid)?.end ?? 0, this.#new.has(uid) ? 0 : this.#othersEnd);
    return Math.max(0, end - this.#clock.now());
  }

  #forget(): void {
    const now = this.#clock.now();
    for (const [known, { end }] of this.#ends) if (end <= now) this.#ends.delete(known);
  }
}

/** Aborted writes of all operators in this process. */
export const lateWrites = new LateWrites({ startedAt: 0 });
