import { untilAborted } from "./promises.js";

/** Time, so that tests can move it by hand. */
export interface Clock {
  /** Milliseconds that never run backwards. */
  now(): number;
  /** Calls `callback` after `delayMs`, unless the returned function is called before. */
  schedule(delayMs: number, callback: () => void): () => void;
}

// setTimeout takes 31 bits; longer delays are waited for in parts.
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** The time of the machine. */
export const systemClock: Clock = {
  now: () => performance.now(),
  schedule(delayMs, callback) {
    let timer: NodeJS.Timeout;
    const wait = (remainingMs: number) => {
      timer =
        remainingMs > LONGEST_TIMEOUT_MS
          ? setTimeout(() => wait(remainingMs - LONGEST_TIMEOUT_MS), LONGEST_TIMEOUT_MS)
          : setTimeout(callback, Math.max(0, remainingMs));
    };
    wait(delayMs);
    return () => clearTimeout(timer);
  },
};

/** Returns a time as `metav1.Time` has it. */
export function timestampOf(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, "Z");
}

/** Returns a time as `metav1.MicroTime` has it. */
export function microTimeOf(time: Date): string {
  return time.toISOString().replace(/Z$/, "000Z");
}

/** Waits for `ms`; rejects with the reason of the first of the signals that is aborted. */
export async function sleep(
  ms: number,
  signal?: AbortSignal | readonly (AbortSignal | undefined)[],
  clock: Clock = systemClock,
): Promise<void> {
  const signals = [signal].flat();
  for (const each of signals) each?.throwIfAborted();
  let cancel = () => {};
  const woken = new Promise<void>((resolve) => (cancel = clock.schedule(ms, resolve)));
  await untilAborted(woken, ...signals).finally(cancel);
}

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

/** A timer that is put off over and over: a platform timer that would ring too early stays, and is set anew when it rings. */
export class PostponableTimer {
  readonly #clock: Clock;
  readonly #onDue: () => void;
  #dueAt = Infinity;
  /** When the platform timer rings: never after the time that is due. */
  #ringsAt = Infinity;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, onDue: () => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  get isSet(): boolean {
    return this.#cancel !== undefined;
  }

  /** The time at which `onDue` is called; undefined if it is not set. */
  get dueAt(): number | undefined {
    return this.isSet ? this.#dueAt : undefined;
  }

  /** Sets the time at which `onDue` is called, in place of the one before. */
  set(delayMs: number): void {
    this.#dueAt = this.#clock.now() + delayMs;
    if (this.#ringsAt > this.#dueAt) this.#arm(delayMs);
  }

  cancel(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#ringsAt = Infinity;
  }

  #arm(delayMs: number): void {
    this.#cancel?.();
    this.#ringsAt = this.#dueAt;
    this.#cancel = this.#clock.schedule(delayMs, () => this.#ring());
  }

  #ring(): void {
    this.#cancel = undefined;
    this.#ringsAt = Infinity;
    const leftMs = this.#dueAt - this.#clock.now();
    // A timer of Node may ring a part of a millisecond early.
    if (leftMs >= 1) this.#arm(leftMs);
    else this.#onDue();
  }
}

// How long work without a wait may occupy the event loop, for which leader election, probes and answers wait, too.
const LONGEST_TURN_MS = 10;

/** Shares the event loop out among those who have much to do: each in its turn, one for each round of the loop. */
export class Turns {
  readonly #now: () => number;
  readonly #waiting: (() => void)[] = [];
  /** Absent if nothing was done yet in this round. */
  #startedAt: number | undefined;
  #isArmed = false;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Visits all items until the signal is aborted, in as many turns as it takes; returns nothing if one was enough. */
  visit<Item>(items: Iterator<Item>, visit: (item: Item) => void, signal: AbortSignal): void | Promise<void> {
    while (this.#mayGoOn()) {
      const next = items.next();
      if (next.done === true) return;
      visit(next.value);
    }
    return this.#next().then(() => (signal.aborted ? undefined : this.visit(items, visit, signal)));
  }

  /** Returns nothing if more may be done at once, else a promise of the next turn of the caller. */
  pause(): Promise<void> | undefined {
    return this.#mayGoOn() ? undefined : this.#next();
  }

  #mayGoOn(): boolean {
    const now = this.#now();
    if (this.#startedAt === undefined) {
      // Whoever waits has waited for longer.
      if (this.#waiting.length > 0) return false;
      this.#startedAt = now;
      this.#arm();
    }
    return now - this.#startedAt < LONGEST_TURN_MS;
  }

  #next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#arm();
    });
  }

  #arm(): void {
    if (this.#isArmed) return;
    this.#isArmed = true;
    setImmediate(() => {
      this.#isArmed = false;
      const resolve = this.#waiting.shift();
      this.#startedAt = resolve === undefined ? undefined : this.#now();
      if (resolve === undefined) return;
      this.#arm();
      resolve();
    });
  }
}

/** The turns of all that runs in this process. */
export const turns = new Turns();
