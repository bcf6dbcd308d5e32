import { setTimeout as sleep } from "node:timers/promises";

/** Waits until `check` returns something other than undefined, false or null, and returns that; `what` is for the error. */
export async function eventually<T>(
  what: string,
  check: () => T | Promise<T>,
  { timeoutMs = 10_000, everyMs = 25 }: { timeoutMs?: number; everyMs?: number } = {},
): Promise<NonNullable<Exclude<T, false>>> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const result = await check();
    if (result !== undefined && result !== false && result !== null) return result as NonNullable<Exclude<T, false>>;
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await sleep(everyMs);
  }
}
