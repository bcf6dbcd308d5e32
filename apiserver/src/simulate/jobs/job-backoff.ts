import type { Pod } from "../pods/pod.js";

interface Failures {
  count: number;
  lastAt: number;
}

/**
 * How long Jobs wait before they replace Pods that fail: twice as long each time, until one succeeds.
 *
 * kube-controller-manager waits 10 s at first and 10 min at most. Simulated Pods take less time than real ones, so here the first pause is as long
 * as the start of a Pod.
 */
export class JobBackoff {
  readonly #failures = new Map<string, Failures>();
  readonly #seen = new Set<string>();

  /** Notes a Pod that has ended, once; `key` is the Job, or the index of a Job whose indexes have limits of their own. */
  note(key: string, { metadata, status }: Pod, nowMs: number): void {
    if (this.#seen.has(metadata.uid)) return;
    this.#seen.add(metadata.uid);
    if (status?.phase === "Succeeded") this.#failures.delete(key);
    else this.#failures.set(key, { count: (this.#failures.get(key)?.count ?? 0) + 1, lastAt: nowMs });
  }

  /** Returns the milliseconds until the next Pod may be created. */
  leftMs(key: string, { nowMs, firstMs }: { nowMs: number; firstMs: number }): number {
    const { count, lastAt } = this.#failures.get(key) ?? { count: 0, lastAt: 0 };
    if (count === 0) return 0;
    return Math.max(0, lastAt + firstMs * Math.min(2 ** (count - 1), LONGEST_FACTOR) - nowMs);
  }

  /** Forgets a Pod that its Job has counted. */
  forget({ metadata }: Pod): void {
    this.#seen.delete(metadata.uid);
  }

  /** Forgets a Job that is over. */
  clear(uid: string): void {
    for (const key of this.#failures.keys()) if (key.startsWith(uid)) this.#failures.delete(key);
  }
}

const LONGEST_FACTOR = 60;
