import type { Clock } from "../base/clock.js";
import type { Logger } from "../base/logger.js";

const SLOW_AFTER_MS = 30_000;

/** The functions of the user that one reconcile is waiting for; says so when that takes long, because such a one may never return. */
export class RunningTasks {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #running = new Map<symbol, { readonly what: string; readonly startedAt: number }>();
  /** Absent until there is something to watch. */
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(logger: Logger, clock: Clock) {
    this.#logger = logger;
    this.#clock = clock;
  }

  /** Calls `task` and waits for it, under the name `what`. */
  readonly track = async <Result>(what: string, task: () => Result | Promise<Result>): Promise<Result> => {
    if (!this.#isClosed) this.#cancel ??= this.#watch();
    const id = Symbol(what);
    this.#running.set(id, { what, startedAt: this.#clock.now() });
    try {
      return await task();
    } finally {
      this.#running.delete(id);
    }
  };

  /** Ends the watch. */
  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  #watch(): () => void {
    return this.#clock.schedule(SLOW_AFTER_MS, () => {
      const now = this.#clock.now();
      for (const { what, startedAt } of this.#running.values()) {
        const seconds = Math.round((now - startedAt) / 1000);
        this.#logger.warn(
          { seconds },
          `${what} has not returned for ${seconds} s; this primary is not reconciled until it does`,
        );
      }
      this.#cancel = this.#watch();
    });
  }
}
