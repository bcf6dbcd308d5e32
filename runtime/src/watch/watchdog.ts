import { systemClock, type Clock } from "../base/clock.js";

interface WatchdogOptions {
  readonly signal: AbortSignal;
  /** How long the stream may be quiet; asked anew whenever something arrives. */
  quietMs(): number;
  /** Checks a quiet stream; a rejection aborts the stream. */
  check(signal: AbortSignal): Promise<void>;
  readonly clock?: Clock | undefined;
}

/** Has a stream checked whenever it is quiet, and aborts it if the check fails. */
export class Watchdog {
  /** Aborted when a check failed, and when the outer signal is. */
  readonly signal: AbortSignal;
  /** Whether anything ever arrived. */
  wasReset = false;
  readonly #options: WatchdogOptions;
  readonly #clock: Clock;
  readonly #failed = new AbortController();
  readonly #ended = new AbortController();
  #isChecking = false;
  #cancel = () => {};

  constructor(options: WatchdogOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.signal = AbortSignal.any([options.signal, this.#failed.signal]);
    this.#wait();
  }

  get failure(): unknown {
    return this.#failed.signal.reason;
  }

  reset(): void {
    this.wasReset = true;
    if (!this.#isChecking) this.#wait();
  }

  stop(): void {
    this.#cancel();
    this.#ended.abort(new Error("the stream has ended"));
  }

  #wait(): void {
    this.#cancel();
    this.#cancel = this.#clock.schedule(this.#options.quietMs(), () => void this.#check());
  }

  async #check(): Promise<void> {
    const signal = AbortSignal.any([this.signal, this.#ended.signal]);
    this.#isChecking = true;
    try {
      await this.#options.check(signal);
      this.#isChecking = false;
      if (!signal.aborted) this.#wait();
    } catch (error) {
      if (!signal.aborted) this.#failed.abort(error);
    }
  }
}
