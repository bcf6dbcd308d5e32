import { systemClock } from "../base/clock.js";
import type { KubernetesObject } from "../base/kubernetes-object.js";

/** How long after a write was given up the API server may still carry it out: its request is over by then, also behind a slow proxy. */
const LATE_MS = 10_000;

/** The primaries for which a write was given up a moment ago that may still create an object, which nobody would delete after they are gone. */
export class LateWrites {
  /** When no write of a primary can come any more, by uid; the latest last. */
  readonly #ends = new Map<string, number>();

  note({ metadata: { uid = "" } }: KubernetesObject): void {
    const now = systemClock.now();
    for (const [known, end] of this.#ends) if (end <= now) this.#ends.delete(known);
    this.#ends.delete(uid);
    this.#ends.set(uid, now + LATE_MS);
  }

  /** Returns how long a write of a primary may still come; 0 if none may. */
  remainingMs({ metadata: { uid = "" } }: KubernetesObject): number {
    return Math.max(0, (this.#ends.get(uid) ?? 0) - systemClock.now());
  }
}
