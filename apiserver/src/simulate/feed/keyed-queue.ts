/** What a queue does with its keys. */
import { clearTimeout, elapsedMs, setTimeout } from "../../real-time.js";
export interface KeyedQueueOptions {
  work: (key: string) => Promise<void>;
  concurrency: number;
  /** Learns of every failed attempt; it will be made again. */
  onError: (error: unknown, key: string) => void;
}

const FIRST_RETRY_MS = 25;
const LONGEST_RETRY_MS = 5_000;

/**
 * Works on keys, never on one key twice at once.
 *
 * A key that is added while it is worked on is worked on again afterwards. Work that fails is tried again after growing pauses.
 */
export class KeyedQueue {
  readonly #options: KeyedQueueOptions;
  readonly #ready = new Set<string>();
  readonly #running = new Set<string>();
  readonly #timers = new Map<string, { timer: NodeJS.Timeout; dueAt: number }>();
  readonly #failures = new Map<string, number>();
  #isClosed = false;

  constructor(options: KeyedQueueOptions) {
    this.#options = options;
  }

  /** Schedules a key; of two due times of a waiting key the earlier one counts. */
  add(key: string, delayMs = 0): void {
    if (this.#isClosed || this.#ready.has(key)) return;
    const waiting = this.#timers.get(key);
    const dueAt = elapsedMs() + delayMs;
    if (waiting !== undefined && waiting.dueAt <= dueAt) return;
    clearTimeout(waiting?.timer);
    this.#timers.delete(key);
    if (delayMs <= 0) {
      this.#ready.add(key);
      this.#startWork();
    } else {
      const timer = setTimeout(() => {
        this.#timers.delete(key);
        this.add(key);
      }, delayMs);
      timer.unref();
      this.#timers.set(key, { timer, dueAt });
    }
  }

  /** Works at once on the keys that wait: the clock by which they were to wait has changed. */
  wake(): void {
    for (const key of [...this.#timers.keys()]) this.add(key);
  }

  /** Forgets all keys; work that is going on ends by itself. */
  close(): void {
    this.#isClosed = true;
    this.#ready.clear();
    for (const { timer } of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  #startWork(): void {
    for (const key of this.#ready) {
      if (this.#running.size >= this.#options.concurrency) return;
      if (this.#running.has(key)) continue;
      this.#ready.delete(key);
      this.#running.add(key);
      void this.#work(key);
    }
  }

  async #work(key: string): Promise<void> {
    try {
      await this.#options.work(key);
      this.#failures.delete(key);
    } catch (error) {
      const failures = this.#failures.get(key) ?? 0;
      this.#failures.set(key, failures + 1);
      if (!this.#isClosed) this.#options.onError(error, key);
      this.add(key, Math.min(FIRST_RETRY_MS * 2 ** failures, LONGEST_RETRY_MS));
    } finally {
      this.#running.delete(key);
      this.#startWork();
    }
  }
}
