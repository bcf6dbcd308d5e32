import { systemClock, type Clock } from "../base/clock.js";

/** What a watchdog looks at. */
export interface WatchdogOptions {
  /** Ends the stream from outside. */
  readonly signal: AbortSignal;
  /** How long the stream may be quiet; asked anew whenever something arrives. */
  quietMs(): number;
  /** Called when the stream was quiet for so long; what it throws ends the stream. */
  check(signal: AbortSignal): Promise<void>;
  readonly clock?: Clock | undefined;
}

/** Has a stream checked whenever it is quiet, and aborts it if the check fails. */
export class Watchdog {
  readonly #options: WatchdogOptions;
  readonly #clock: Clock;
  readonly #failed = new AbortController();
  readonly #ended = new AbortController();
  /** Aborted when a check failed, and when the outer signal is. */
  readonly signal: AbortSignal;
  /** Until when the stream may be quiet. */
  #deadline = 0;
  /** When the timer looks; 0 if there is none. */
  #wakesAt = 0;
  #cancel = () => {};
  /** Whether anything ever arrived. */
  wasReset = false;

  constructor(options: WatchdogOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.signal = AbortSignal.any([options.signal, this.#failed.signal]);
    this.#postpone();
    this.#wait();
  }

  /** What the check threw; undefined if none has failed. */
  get failure(): unknown {
    return this.#failed.signal.reason;
  }

  /** Takes note that something arrived. */
  reset(): void {
    this.wasReset = true;
    this.#postpone();
  }

  /** Ends the watch over the stream. */
  stop(): void {
    this.#cancel();
    this.#ended.abort(new Error("the stream has ended"));
  }

  #postpone(): void {
    this.#deadline = this.#clock.now() + this.#options.quietMs();
    // What may be quiet for less long now is looked at earlier.
    if (this.#deadline < this.#wakesAt) this.#wait();
  }

  // One timer at a time looks again at its end: something arrives far more often than nothing does.
  #wait(): void {
    this.#cancel();
    this.#wakesAt = this.#deadline;
    this.#cancel = this.#clock.schedule(this.#deadline - this.#clock.now(), () => {
      this.#wakesAt = 0;
      if (this.#deadline > this.#clock.now()) return this.#wait();
      const signal = AbortSignal.any([this.signal, this.#ended.signal]);
      this.#options.check(signal).then(
        () => {
          if (signal.aborted) return;
          this.#postpone();
          this.#wait();
        },
        (error: unknown) => {
          if (!signal.aborted) this.#failed.abort(error);
        },
      );
    });
  }
}
