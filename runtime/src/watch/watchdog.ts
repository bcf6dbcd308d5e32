/** Aborts a stream on which nothing arrives. */
export class Watchdog {
  readonly #controller = new AbortController();
  readonly #timeoutMs: () => number;
  readonly #onAbort: () => void;
  readonly #outer: AbortSignal;
  #timer: NodeJS.Timeout | undefined;
  /** Until when the stream may be silent. */
  #deadline: number;
  /** Whether the stream was aborted because it was silent. */
  hasBarked = false;
  /** Whether anything ever arrived. */
  wasReset = false;

  /** `timeoutMs` is asked anew whenever something arrives. */
  constructor(outer: AbortSignal, timeoutMs: () => number) {
    this.#timeoutMs = timeoutMs;
    this.#outer = outer;
    this.#onAbort = () => this.#controller.abort(outer.reason);
    outer.addEventListener("abort", this.#onAbort, { once: true });
    if (outer.aborted) this.#onAbort();
    this.#deadline = performance.now() + timeoutMs();
    this.#wait();
  }

  /** Aborted when the stream has been silent for too long, and when the outer signal is. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Takes note that something arrived. */
  reset(): void {
    this.wasReset = true;
    this.#deadline = performance.now() + this.#timeoutMs();
  }

  /** Ends the watch over the stream. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#outer.removeEventListener("abort", this.#onAbort);
  }

  // One timer at a time looks again at its end: something arrives far more often than nothing does.
  #wait(): void {
    const remainingMs = this.#deadline - performance.now();
    if (remainingMs > 0) {
      // A quiet watch is no reason to keep the process alive; its socket is.
      this.#timer = setTimeout(() => this.#wait(), remainingMs).unref();
      return;
    }
    this.hasBarked = true;
    this.#controller.abort(new Error("nothing arrived for too long"));
  }
}
