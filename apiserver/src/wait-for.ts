import { setTimeout as sleep } from "node:timers/promises";

/** How long to wait, and how often to look. */
export interface WaitOptions {
  /** Default: 10,000; GEN_OPERATOR_WAIT_FACTOR multiplies it, for a machine that is slow or busy. */
  readonly timeoutMs?: number;
  /** Default: 20. */
  readonly intervalMs?: number;
}

/**
 * Calls `check` until it returns something truthy, and returns that; throws after the timeout with `description` and the last error.
 *
 * For tests: what a test waits for is named, so that a failure says what did not come.
 */
export async function waitFor<Result>(
  description: string,
  check: () => Result | Promise<Result>,
  { timeoutMs = 10_000, intervalMs = 20 }: WaitOptions = {},
): Promise<NonNullable<Exclude<Result, false>>> {
  const patienceMs = timeoutMs * Number(process.env["GEN_OPERATOR_WAIT_FACTOR"] ?? 1);
  const deadline = performance.now() + patienceMs;
  for (;;) {
    let lastError: { readonly cause: unknown } | undefined;
    try {
      const result = await check();
      if (result) return result as NonNullable<Exclude<Result, false>>;
    } catch (cause) {
      lastError = { cause };
    }
    if (performance.now() >= deadline) throw new Error(`${description}: not within ${patienceMs} ms`, lastError);
    await sleep(intervalMs);
  }
}
