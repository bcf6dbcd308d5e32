import { systemClock, type Clock } from "../base/clock.js";

/** Settings of a watchdog. */
export interface WatchdogOptions {
  /** Aborts the stream from outside. */
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
  /** The time until which the stream may be quiet. */
  #deadline = 0;
  /** When the timer wakes; 0 without a timer. */
  #wakesAt = 0;
  #cancel = () => {};

  constructor(options: WatchdogOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.signal = AbortSignal.any([options.signal, this.#failed.signal]);
    this.#postpone();
    this.#wait();
  }

  /** The error of the failed check; undefined if none has failed. */
  get failure(): unknown {
    return this.#failed.signal.reason;
  }

  /** Takes that bytes arrived. */
  reset(): void {
    this.wasReset = true;
    this.#postpone();
  }

  /** Stops watching the stream. */
  stop(): void {
    this.#cancel();
    this.#ended.abort(new Error("the stream has ended"));
  }

  #postpone(): void {
    this.#deadline = this.#clock.now() + this.#options.quietMs();
    // The end of the initial list shortens the time.
    if (this.#deadline < this.#wakesAt) this.#wait();
  }

  // One timer is not restarted for each arrival, but checks the deadline when it wakes: arrivals are far more frequent than silence.
  #wait(): void {
    this.#cancel();
    this.#wakesAt = this.#deadline;
    this.#cancel = this.#clock.schedule(this.#deadline - this.#clock.now(), () => {
      this.#wakesAt = 0;
      if (this.#deadline > this.#clock.now()) this.#wait();
      else void this.#check(AbortSignal.any([this.signal, this.#ended.signal]));
    });
  }

  async #check(signal: AbortSignal): Promise<void> {
    try {
      await this.#options.check(signal);
      if (signal.aborted) return;
      this.#postpone();
      this.#wait();
    } catch (error) {
      if (!signal.aborted) this.#failed.abort(error);
    }
  }
}
