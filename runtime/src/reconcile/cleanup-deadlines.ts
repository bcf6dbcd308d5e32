import type { Clock } from "../base/clock.js";
import type { ObjectKey } from "../base/kubernetes-object.js";

interface CleanupDeadlinesOptions {
  readonly clock: Clock;
  /** Requests a reconcile of a primary whose cleanup has run out of time. */
  onDue(primary: ObjectKey): void;
}

/** The times at which primaries are released although their cleanup has not ended, where the controller has a `cleanupTimeoutMs`. */
export class CleanupDeadlines {
  readonly #options: CleanupDeadlinesOptions;
  readonly #cancels = new Map<ObjectKey, () => void>();
  #isClosed = false;

  constructor(options: CleanupDeadlinesOptions) {
    this.#options = options;
  }

  set(primary: ObjectKey, remainingMs: number): void {
    this.delete(primary);
    if (this.#isClosed) return;
    const { clock, onDue } = this.#options;
    this.#cancels.set(
      primary,
      clock.schedule(remainingMs, () => {
        this.#cancels.delete(primary);
        onDue(primary);
      }),
    );
  }

  delete(primary: ObjectKey): void {
    this.#cancels.get(primary)?.();
    this.#cancels.delete(primary);
  }

  close(): void {
    this.#isClosed = true;
    for (const primary of [...this.#cancels.keys()]) this.delete(primary);
  }
}
