import type { Clock } from "#runtime/base/wait.js";

interface Timer {
  readonly dueAt: number;
  readonly callback: () => void;
}

/** Time that stands still until a test moves it. */
export class VirtualClock implements Clock {
  #now = 0;
  // In the order in which they were scheduled, which decides among timers that are due at once.
  readonly #timers = new Set<Timer>();

  now(): number {
    return this.#now;
  }

  schedule(delayMs: number, callback: () => void): () => void {
    const timer = { dueAt: this.#now + Math.max(0, delayMs), callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** Moves time forward and calls what becomes due, at its time and in order. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
      this.#now = next.dueAt;
      this.#timers.delete(next);
      next.callback();
    }
    this.#now = end;
  }

  /** The time of the next timer; undefined if there is none. */
  get nextDueAt(): number | undefined {
    return this.#next(Infinity)?.dueAt;
  }

  #next(end: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers)
      if (timer.dueAt <= end && (next === undefined || timer.dueAt < next.dueAt)) next = timer;
    return next;
  }
}
