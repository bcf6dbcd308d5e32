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
