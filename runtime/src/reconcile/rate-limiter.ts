/** How often one primary is reconciled at most, as JOSDK's LinearRateLimiter defines it. */
export interface RateLimitOptions {
  readonly maxReconciliations: number;
  readonly withinMs: number;
}

/** Counts the reconciles of each key in windows of fixed length. */
export class RateLimiter {
  readonly #windows = new Map<string, { startedAt: number; count: number }>();

  readonly #options: RateLimitOptions;
  readonly #now: () => number;

  constructor(options: RateLimitOptions, now: () => number) {
    this.#options = options;
    this.#now = now;
  }

  /** Takes one reconcile of `key` from the window; returns 0, or the milliseconds to wait if the window is used up. */
  take(key: string): number {
    const now = this.#now();
    const window = this.#windows.get(key);
    if (window === undefined || window.startedAt + this.#options.withinMs <= now) {
      this.#windows.set(key, { startedAt: now, count: 1 });
      return 0;
    }
    if (window.count >= this.#options.maxReconciliations) return window.startedAt + this.#options.withinMs - now;
    window.count++;
    return 0;
  }

  /** Forgets `key`. */
  delete(key: string): void {
    this.#windows.delete(key);
  }
}
