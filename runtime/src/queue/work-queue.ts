import { systemClock, type Clock } from "../base/clock.js";

interface Waiting {
  dueAt: number;
  /** Absent once the key is ready. */
  cancel?: () => void;
}

/**
 * A queue of keys in which a key is never handed out twice at once.
 *
 * Every key that was added is handed out at least once afterwards; however often it was added, it waits only once.
 */
export class WorkQueue<Key> {
  readonly #clock: Clock;
  readonly #onReady: () => void;
  readonly #waiting = new Map<Key, Waiting>();
  readonly #running = new Set<Key>();
  /** Keys added while they run, with the earliest time asked for. */
  readonly #again = new Map<Key, number>();
  /** Ready keys in the order in which they became due; a Set keeps that order. */
  readonly #ready = new Set<Key>();
  #isClosed = false;

  /** `onReady` is called, synchronously, whenever a key can be taken. */
  constructor({ onReady, clock = systemClock }: { onReady: () => void; clock?: Clock }) {
    this.#clock = clock;
    this.#onReady = onReady;
  }

  /**
   * Schedules `key` to be handed out after `delayMs`.
   *
   * Adding a waiting key keeps the earlier due time. Adding a running key makes it run once more afterwards, so a change seen during a
   * reconcile is never lost.
   */
  add(key: Key, delayMs = 0): void {
    if (this.#isClosed) return;
    const dueAt = this.#clock.now() + Math.max(0, delayMs);
    if (this.#running.has(key)) {
      const before = this.#again.get(key);
      if (before === undefined || dueAt < before) this.#again.set(key, dueAt);
      return;
    }
    this.#schedule(key, dueAt);
  }

  /** Hands out the key that has been due for longest; it must be given back with `done`. */
  take(): Key | undefined {
    if (this.#isClosed) return undefined;
    for (const key of this.#ready) {
      this.#ready.delete(key);
      this.#waiting.delete(key);
      this.#running.add(key);
      return key;
    }
    return undefined;
  }

  /** Gives back a key that was handed out; it waits again if it was added meanwhile. */
  done(key: Key): void {
    if (!this.#running.delete(key)) return;
    const dueAt = this.#again.get(key);
    this.#again.delete(key);
    if (dueAt !== undefined && !this.#isClosed) this.#schedule(key, dueAt);
  }

  /** Tells whether `key` will be handed out without delay: it is ready, or it was added while it runs. */
  isImminent(key: Key): boolean {
    const again = this.#again.get(key);
    return this.#ready.has(key) || (again !== undefined && again <= this.#clock.now());
  }

  /** Forgets a key that waits; one that runs is not disturbed. */
  remove(key: Key): void {
    this.#waiting.get(key)?.cancel?.();
    this.#waiting.delete(key);
    this.#ready.delete(key);
    this.#again.delete(key);
  }

  /** How many keys are ready or running. */
  get depth(): number {
    return this.#ready.size + this.#running.size;
  }

  /** Hands out nothing more and forgets what waits. */
  close(): void {
    this.#isClosed = true;
    for (const { cancel } of this.#waiting.values()) cancel?.();
    this.#waiting.clear();
    this.#ready.clear();
    this.#again.clear();
  }

  #schedule(key: Key, dueAt: number): void {
    const before = this.#waiting.get(key);
    if (before !== undefined && before.dueAt <= dueAt) return;
    before?.cancel?.();
    const delayMs = dueAt - this.#clock.now();
    if (delayMs > 0) {
      this.#waiting.set(key, { dueAt, cancel: this.#clock.schedule(delayMs, () => this.#makeReady(key, dueAt)) });
      return;
    }
    this.#makeReady(key, dueAt);
  }

  #makeReady(key: Key, dueAt: number): void {
    this.#waiting.set(key, { dueAt });
    this.#ready.add(key);
    this.#onReady();
  }
}
