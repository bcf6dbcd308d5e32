// Time and waiting, as k8s.io/utils/clock and util/wait: the clock, sleep, backoff, deadlines, and what shares the event loop or a number of
// workers.
import { setMaxListeners } from "node:events";

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

/** At most one timer for each key. */
export class KeyedTimers<Key> {
  readonly #clock: Clock;
  readonly #cancels = new Map<Key, () => void>();
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `onDue` after `delayMs`, in place of what the key waited for before. */
  set(key: Key, delayMs: number, onDue: () => void): void {
    this.delete(key);
    if (this.#isClosed) return;
    const cancel = this.#clock.schedule(delayMs, () => {
      this.#cancels.delete(key);
      onDue();
    });
    this.#cancels.set(key, cancel);
  }

  delete(key: Key): void {
    this.#cancels.get(key)?.();
    this.#cancels.delete(key);
  }

  /** Cancels all timers, and sets none any more. */
  close(): void {
    this.#isClosed = true;
    for (const key of [...this.#cancels.keys()]) this.delete(key);
  }
}

// How long work without a wait may occupy the event loop, for which leader election, probes and answers wait, too.
const LONGEST_TURN_MS = 10;

/** Shares the event loop among long tasks: each yields in its turn, and one continues for each round of the loop. */
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
      // A task that waits comes first.
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

/** Waits for something that knows no signal; rejects with the reason of the first of these signals that is aborted, and leaves it alone. */
export async function untilAborted<Value>(
  promise: PromiseLike<Value> | Value,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<Value> {
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signals.find((signal) => signal?.aborted === true)?.reason);
  });
  for (const signal of signals) signal?.addEventListener("abort", onAbort);
  try {
    if (signals.some((signal) => signal?.aborted === true)) onAbort();
    return await Promise.race([aborted, promise]);
  } finally {
    for (const signal of signals) signal?.removeEventListener("abort", onAbort);
  }
}

/**
 * Aborts a controller with the first of these signals, until the returned function is called. The signals may live long: of every
 * AbortSignal.any() something stays in them.
 */
export function abortWith(controller: AbortController, ...signals: readonly (AbortSignal | undefined)[]): () => void {
  const leaving = new AbortController();
  for (const signal of signals) {
    if (signal === undefined) continue;
    const onAbort = () => controller.abort(signal.reason);
    if (signal.aborted) onAbort();
    // Many may follow one.
    setMaxListeners(0, signal);
    signal.addEventListener("abort", onAbort, { once: true, signal: leaving.signal });
  }
  return () => leaving.abort();
}

/** How long something may take. */
interface Deadline {
  readonly timeoutMs: number;
  /** Default: a timer of the platform, which does not keep the process alive. */
  readonly clock?: Pick<Clock, "schedule"> | undefined;
  /** What is thrown then. Default: `no answer within N ms` */
  readonly message?: string;
}

const PLATFORM: Pick<Clock, "schedule"> = {
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, delayMs).unref();
    return () => clearTimeout(timer);
  },
};

/** Calls something with a signal that is aborted when its time is over, or with one of `signals`, and waits for it until then. */
export async function withDeadline<Value>(
  call: (signal: AbortSignal) => PromiseLike<Value> | Value,
  { timeoutMs, clock = PLATFORM, message }: Deadline,
  signals: readonly (AbortSignal | undefined)[] = [],
): Promise<Value> {
  const late = new AbortController();
  const miss = () => late.abort(new Error(message ?? `no answer within ${Math.round(timeoutMs)} ms`));
  const cancel = clock.schedule(timeoutMs, miss);
  const leave = abortWith(late, ...signals);
  try {
    return await untilAborted(call(late.signal), late.signal);
  } finally {
    cancel();
    leave();
  }
}

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
