interface BackoffOptions {
  readonly initialMs: number;
  readonly factor: number;
  readonly maxMs: number;
}

/** A delay that grows with each failure, drawn at random so that many clients do not come back at once. */
export class Backoff {
  readonly #options: BackoffOptions;
  readonly #random: () => number;
  #failures = 0;

  constructor(options: BackoffOptions, random: () => number = Math.random) {
    this.#options = options;
    this.#random = random;
  }

  /** Returns the next delay in milliseconds, between the current step and twice that. */
  next(): number {
    const { initialMs, factor, maxMs } = this.#options;
    const step = Math.min(initialMs * factor ** this.#failures++, maxMs);
    return step * (1 + this.#random());
  }

  reset(): void {
    this.#failures = 0;
  }
}
