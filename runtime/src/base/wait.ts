// Time and waiting, like k8s.io/utils/clock and k8s.io/apimachinery/pkg/util/wait: clock, sleep, backoff, deadlines, semaphores, and fair use of the
// event loop.
import { setMaxListeners } from "node:events";

/** A clock that tests can replace. */
export interface Clock {
  /** Monotonic time in milliseconds. */
  now(): number;
  /** Calls `callback` after `delayMs`, unless the returned function is called first. */
  schedule(delayMs: number, callback: () => void): () => void;
}

// The delay of setTimeout is limited to 31 bits; longer delays are split.
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** The clock of the machine. */
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

/** Waits for `ms`. Rejects with the reason of the first signal that is aborted. */
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

/** Exponential backoff with jitter, so that many clients do not retry at the same time. */
export class Backoff {
  readonly #options: BackoffOptions;
  readonly #random: () => number;
  #failures = 0;

  constructor(options: BackoffOptions, random: () => number = Math.random) {
    this.#options = options;
    this.#random = random;
  }

  /** Returns the next delay in milliseconds: a random value between the current step and twice the step. */
  next(): number {
    const { initialMs, factor, maxMs } = this.#options;
    const step = Math.min(initialMs * factor ** this.#failures++, maxMs);
    return step * (1 + this.#random());
  }

  reset(): void {
    this.#failures = 0;
  }
}

/**
 * A timer that is postponed frequently, as for the requeue of a primary. A platform timer that would fire too early is kept, and set again when it
 * fires.
 */
export class PostponableTimer {
  readonly #clock: Clock;
  readonly #onDue: () => void;
  #dueAt = Infinity;
  /** When the platform timer fires; never later than `#dueAt`. */
  #ringsAt = Infinity;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, onDue: () => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  get isSet(): boolean {
    return this.#cancel !== undefined;
  }

  /** The time at which `onDue` is called; undefined if the timer is not set. */
  get dueAt(): number | undefined {
    return this.isSet ? this.#dueAt : undefined;
  }

  /** Sets the time at which `onDue` is called, replacing the previous one. */
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
    // A Node.js timer may fire a fraction of a millisecond early.
    if (leftMs >= 1) this.#arm(leftMs);
    else this.#onDue();
  }
}

/** At most one timer per key. */
export class KeyedTimers<Key> {
  readonly #clock: Clock;
  readonly #cancels = new Map<Key, () => void>();
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `onDue` after `delayMs`, replacing the previous timer of the key. */
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

  /** Cancels all timers. No timer can be set afterwards. */
  close(): void {
    this.#isClosed = true;
    for (const key of [...this.#cancels.keys()]) this.delete(key);
  }
}

// The maximum time that a loop may occupy the event loop, because leader election, probes and responses have to wait for it.
const LONGEST_TURN_MS = 10;

/** Shares the event loop among long tasks: each task yields, and one of the waiting tasks continues in each iteration of the event loop. */
export class Turns {
  readonly #now: () => number;
  readonly #waiting: (() => void)[] = [];
  /** When the current turn started. Absent if nothing has run in this iteration of the event loop. */
  #startedAt: number | undefined;
  #isArmed = false;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Visits all items, yielding to the event loop as needed, until the signal is aborted, which is checked after each yield. Returns undefined if no
   * yield was necessary.
   */
  visit<Item>(items: Iterator<Item>, visit: (item: Item) => void, signal: AbortSignal): void | Promise<void> {
    while (this.#mayGoOn()) {
      const next = items.next();
      if (next.done === true) return;
      visit(next.value);
    }
    return this.#next().then(() => (signal.aborted ? undefined : this.visit(items, visit, signal)));
  }

  /** Returns undefined if the caller may continue; otherwise, a promise that resolves when it is the caller's turn again. */
  pause(): Promise<void> | undefined {
    return this.#mayGoOn() ? undefined : this.#next();
  }

  #mayGoOn(): boolean {
    const now = this.#now();
    if (this.#startedAt === undefined) {
      // Waiting tasks continue first.
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

/** The turns of all tasks in this process. */
export const turns = new Turns();

/**
 * Waits for a promise that does not support signals. Rejects with the reason of the first signal that is aborted; the operation itself continues.
 */
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
 * Aborts a controller when one of these signals is aborted, until the returned function is called. Unlike AbortSignal.any(), it leaves nothing behind
 * in the signals, which may live long.
 */
export function abortWith(controller: AbortController, ...signals: readonly (AbortSignal | undefined)[]): () => void {
  const leaving = new AbortController();
  for (const signal of signals) {
    if (signal === undefined) continue;
    const onAbort = () => controller.abort(signal.reason);
    if (signal.aborted) onAbort();
    // Many controllers may follow the same signal.
    setMaxListeners(0, signal);
    signal.addEventListener("abort", onAbort, { once: true, signal: leaving.signal });
  }
  return () => leaving.abort();
}

/** A time limit. */
interface Deadline {
  readonly timeoutMs: number;
  /** Default: platform timers, which do not keep the process alive */
  readonly clock?: Pick<Clock, "schedule"> | undefined;
  /** The message of the error when the time is over. Default: `no answer within N ms` */
  readonly message?: string;
}

const PLATFORM: Pick<Clock, "schedule"> = {
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, delayMs).unref();
    return () => clearTimeout(timer);
  },
};

/**
 * Calls a function with a signal that is aborted at the deadline or together with one of `signals`. Stops waiting for the function at that point.
 */
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

/** A counting semaphore. Slots are granted in the order of the acquire() calls. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(slots: number) {
    this.#free = slots;
  }

  /** Acquires a slot. Returns undefined if one was free, the common case; otherwise, a promise that resolves when a slot has been acquired. */
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
