/** A number of slots that tasks take turns in, in the order in which they ask. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(slots: number) {
    this.#free = slots;
  }

  /** Takes a slot. Returns undefined if one was free, which it mostly is, and otherwise resolves as soon as one is taken. */
  acquire(signal?: AbortSignal): Promise<void> | undefined {
    if (signal?.aborted === true) return Promise.reject(signal.reason as Error);
    if (this.#free > 0) {
      this.#free--;
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const onTurn = () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = () => {
        this.#waiting.delete(onTurn);
        reject(signal?.reason as Error);
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#waiting.add(onTurn);
    });
  }

  release(): void {
    const [next] = this.#waiting;
    if (next === undefined) return void this.#free++;
    this.#waiting.delete(next);
    next();
  }
}
