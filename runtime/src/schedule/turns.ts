// How long reconciles may keep the event loop to themselves.
const LONGEST_TURN_MS = 20;

/**
 * Shares the event loop between reconciles and everything else.
 *
 * Thousands of reconciles without a write never wait, and would starve watches, the lease and probes. No reconcile starts inside the call
 * that brings an event, so a batch of events is taken as a whole.
 */
export class Turns {
  readonly #onTurn: () => void;
  /** When the current turn of the event loop began to reconcile. */
  #startedAt: number | undefined;
  #isYielding = false;
  #isAwake = false;

  /** `onTurn` starts what there is to start, as long as `mayGoOn` agrees. */
  constructor(onTurn: () => void) {
    this.#onTurn = onTurn;
  }

  /** Gives a turn after the current call stack has ended. */
  wake(): void {
    if (this.#isAwake || this.#isYielding) return;
    this.#isAwake = true;
    queueMicrotask(() => {
      this.#isAwake = false;
      this.#onTurn();
    });
  }

  /** Tells whether another reconcile may start in this turn, in which it is `now`; if not, there will be another turn. */
  mayGoOn(now: number): boolean {
    if (this.#isYielding) return false;
    if (this.#startedAt === undefined) {
      this.#startedAt = now;
      setImmediate(() => (this.#startedAt = undefined));
    }
    if (now - this.#startedAt < LONGEST_TURN_MS) return true;
    this.#isYielding = true;
    setImmediate(() => {
      this.#isYielding = false;
      this.#startedAt = undefined;
      this.#onTurn();
    });
    return false;
  }
}
