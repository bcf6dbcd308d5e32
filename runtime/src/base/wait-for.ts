import { sleep } from "./clock.js";

/**
 * Calls `check` until it returns something truthy, and returns that; throws after `timeoutMs` with `description` and the last error.
 */
export async function waitFor<Result>(
  description: string,
  check: () => Result | Promise<Result>,
  { timeoutMs = 10_000, intervalMs = 20 }: { timeoutMs?: number; intervalMs?: number } = {},
): Promise<NonNullable<Result>> {
  const deadline = performance.now() + timeoutMs;
  let lastError: unknown;
  for (;;) {
    try {
      lastError = undefined;
      const result = await check();
      if (result) return result;
    } catch (error) {
      lastError = error;
    }
    if (performance.now() >= deadline)
      throw new Error(
        `${description}: not within ${timeoutMs} ms`,
        lastError === undefined ? {} : { cause: lastError },
      );
    await sleep(intervalMs);
  }
}
