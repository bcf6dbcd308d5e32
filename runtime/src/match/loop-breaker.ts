/**
 * Finds objects that are written again and again although the same is desired, because somebody or the server undoes it each time.
 *
 * Promises: an object whose desired state changes, or that stays as desired for a while, is never held up. An object in a loop is written
 * after pauses that double. What is kept is bounded, and forgotten a while after the last write.
 */

/** How loops are recognised, and slowed down. */
export interface LoopBreakerOptions {
  /** So many writes of the same within `windowMs` are a loop. */
  readonly writes?: number;
  readonly windowMs?: number;
  /** An object that is as desired so long after it was written is left alone by others. */
  readonly calmMs?: number;
  readonly initialPauseMs?: number;
  readonly maxPauseMs?: number;
  /** How many objects are kept in view; beyond that, those that were not written for the longest time are forgotten. */
  readonly capacity?: number;
}

/** What is known of a loop after a write. */
export interface WriteLoop {
  /** How often the same was written, from the first write on. */
  readonly writes: number;
  /** Whether this write made it a loop; the ones before were taken for ordinary. */
  readonly isNew: boolean;
  /** How long the object is left as it is. */
  readonly pauseMs: number;
}

interface Writes {
  readonly desired: string;
  /** Times in milliseconds, the latest last; as many as it takes to see a loop. */
  readonly times: readonly number[];
  readonly count: number;
  /** 0 as long as it is no loop. */
  readonly pauseMs: number;
}

const DEFAULTS: Required<LoopBreakerOptions> = {
  writes: 3,
  windowMs: 60_000,
  calmMs: 10_000,
  initialPauseMs: 2_000,
  maxPauseMs: 300_000,
  capacity: 10_000,
};

/** The recent writes of one field manager, by object. Time is passed in, in milliseconds that never run backwards. */
export class LoopBreaker {
  readonly #options: Required<LoopBreakerOptions>;
  /** In the order of their last write. */
  readonly #objects = new Map<string, Writes>();

  constructor(options: LoopBreakerOptions = {}) {
    this.#options = { ...DEFAULTS, ...options };
  }

  /** How many objects are kept in view. */
  get size(): number {
    return this.#objects.size;
  }

  /** Tells whether an object is in a loop, so that it may have to be left alone. */
  isSlowed(key: string): boolean {
    return (this.#objects.get(key)?.pauseMs ?? 0) > 0;
  }

  /** Returns how long an object has to be left alone before `desired` (a digest) is written again; 0 if it may be now. */
  pauseOf(key: string, desired: string, now: number): number {
    const known = this.#objects.get(key);
    if (known?.desired !== desired || known.pauseMs === 0) return 0;
    return Math.max(0, lastOf(known) + known.pauseMs - now);
  }

  /** Takes note of a write; returns the loop that it belongs to, if it does. */
  noteWrite(key: string, desired: string, now: number): WriteLoop | undefined {
    const { writes, initialPauseMs, maxPauseMs } = this.#options;
    const before = this.#current(key, desired, now);
    const times = [...before.times, now].slice(-writes);
    const count = before.count + 1;
    const isLoop = before.pauseMs > 0 || times.length === writes;
    const pauseMs = isLoop ? Math.min(maxPauseMs, before.pauseMs * 2 || initialPauseMs) : 0;
    this.#objects.delete(key);
    this.#objects.set(key, { desired, times, count, pauseMs });
    this.#sweep(now);
    return isLoop ? { writes: count, isNew: before.pauseMs === 0, pauseMs } : undefined;
  }

  /** Takes note that an object was found as desired: unless it was written just now, that ends a loop. */
  noteMatch(key: string, now: number): void {
    const known = this.#objects.get(key);
    if (known !== undefined && now - lastOf(known) >= this.#options.calmMs) this.#objects.delete(key);
  }

  /** Forgets an object. */
  forget(key: string): void {
    this.#objects.delete(key);
  }

  // What still counts of the writes before: nothing if something else was desired, or if nobody undid them for long.
  #current(key: string, desired: string, now: number): Writes {
    const { windowMs } = this.#options;
    const known = this.#objects.get(key);
    if (known?.desired !== desired || this.#isOver(known, now)) return { desired, times: [], count: 0, pauseMs: 0 };
    if (known.pauseMs > 0) return known;
    const times = known.times.filter((time) => now - time <= windowMs);
    return { ...known, times, count: times.length };
  }

  #isOver(known: Writes, now: number): boolean {
    return now - lastOf(known) > known.pauseMs + this.#options.windowMs;
  }

  // Looks at the oldest only: one in a long pause holds up the others behind it until it is over, or the capacity is reached.
  #sweep(now: number): void {
    for (const [key, known] of this.#objects) {
      if (this.#objects.size <= this.#options.capacity && !this.#isOver(known, now)) return;
      this.#objects.delete(key);
    }
  }
}

function lastOf({ times }: Writes): number {
  return times.at(-1)!;
}
