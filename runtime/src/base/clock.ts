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

/** Waits for `ms`; rejects with the signal's reason as soon as it is aborted. */
export async function sleep(ms: number, signal?: AbortSignal, clock: Clock = systemClock): Promise<void> {
  signal?.throwIfAborted();
  let cancel = () => {};
  const woken = new Promise<void>((resolve) => (cancel = clock.schedule(ms, resolve)));
  await untilAborted(woken, signal).finally(cancel);
}

// Work that waits for nothing keeps the event loop to itself: the lease, probes and watches wait for it meanwhile.
const LONGEST_TURN_MS = 10;

let startedAt: number | undefined;

/** Ends the current turn of the event loop if long work has filled it; returns `undefined` if the work may go on at once. */
export function yieldIfLong(): Promise<void> | undefined {
  const now = performance.now();
  if (startedAt === undefined) {
    startedAt = now;
    setImmediate(() => (startedAt = undefined));
  }
  return now - startedAt < LONGEST_TURN_MS ? undefined : new Promise((resolve) => setImmediate(resolve));
}
