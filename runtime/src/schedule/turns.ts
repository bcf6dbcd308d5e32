// How long reconciles may keep the event loop to themselves.
const LONGEST_TURN_MS = 20;

/**
 * Divides the event loop between the reconciles and everything else.
 *
 * Reconciles that find nothing to write wait for nothing, and thousands of them would stop everything else: watches, the lease, probes.
 * And none starts while an event is told, so that whoever tells several is not interrupted.
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

  /** Gives a turn as soon as the code that runs now has ended. */
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
