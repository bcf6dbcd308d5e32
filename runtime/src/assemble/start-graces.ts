import { systemClock, type Clock } from "../base/clock.js";
import { keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import { CREATION_GRACE_MS } from "../sources/external/external-cache.js";
import type { StartGrace } from "../workflow/dependents/external-reconciler.js";

/**
 * What a process before this one may have created just before it ended, and lists of services do not show yet. Nobody but this process has
 * created anything for a primary that it met without its finalizer.
 */
export class StartGraces {
  readonly #reconcile: (primary: ObjectKey, dependent: string) => void;
  readonly #clock: Clock;
  /** The longest grace of all dependents. */
  #longestMs = 0;
  #startedAt = 0;
  /** The uids of the primaries of before, as long as a grace is not over. */
  readonly #uids = new Set<string | undefined>();
  /** The primaries that are reconciled when their grace is over, by dependent and primary. */
  readonly #waiting = new Map<string, () => void>();

  constructor(reconcile: (primary: ObjectKey, dependent: string) => void, clock: Clock = systemClock) {
    this.#reconcile = reconcile;
    this.#clock = clock;
  }

  /** Returns the grace of a dependent; called for each of them before the begin. */
  of(dependent: string, graceMs = CREATION_GRACE_MS): StartGrace {
    this.#longestMs = Math.max(this.#longestMs, graceMs);
    return {
      remainingMs: ({ metadata: { uid } }) => {
        if (this.#uids.size === 0) return 0;
        const passedMs = this.#clock.now() - this.#startedAt;
        if (passedMs >= this.#longestMs) this.#uids.clear();
        return this.#uids.has(uid) ? Math.max(0, graceMs - passedMs) : 0;
      },
      reconcileAfter: ({ metadata }, ms) => {
        const primary = keyOf(metadata);
        const key = `${dependent} ${primary}`;
        this.#waiting.get(key)?.();
        const resume = () => {
          this.#waiting.delete(key);
          this.#reconcile(primary, dependent);
        };
        this.#waiting.set(key, this.#clock.schedule(ms, resume));
      },
    };
  }

  /** Begins all graces: `old` are the primaries for which something may have been created. */
  begin(old: () => readonly KubernetesObject[]): void {
    this.#startedAt = this.#clock.now();
    if (this.#longestMs > 0) for (const { metadata } of old()) this.#uids.add(metadata.uid);
  }

  /** Reconciles nothing any more. */
  close(): void {
    for (const cancel of this.#waiting.values()) cancel();
    this.#waiting.clear();
  }
}
