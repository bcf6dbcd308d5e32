import type { Clock } from "#runtime/base/wait.js";

interface Timer {
  readonly dueAt: number;
  readonly callback: () => void;
}

/** A clock that advances only when a test calls `advance`. */
export class VirtualClock implements Clock {
  #now = 0;
  // In the order of scheduling, which is the order of timers that are due at the same time.
  readonly #timers = new Set<Timer>();

  now(): number {
    return this.#now;
  }

  schedule(delayMs: number, callback: () => void): () => void {
    const timer = { dueAt: this.#now + Math.max(0, delayMs), callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** Advances the clock, and calls the timers that become due, in order and at their times. */
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
