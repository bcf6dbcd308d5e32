import { inspect } from "node:util";
import { elapsedMs, sleep } from "./clock.js";

/** How long to wait, how often to look, and what to show of a wait in vain. */
export interface WaitOptions {
  /** Default: 10,000; GEN_OPERATOR_WAIT_FACTOR multiplies it, for a machine that is slow or busy. */
  readonly timeoutMs?: number;
  /** Default: 20. */
  readonly intervalMs?: number;
  /**
   * Returns what there is instead, such as the primary, for the message of the error, which shows the conditions or the status of an object. Default:
   * the last value of the check. Example: `{ describe: () => client.get(WebPage, ref) }`
   */
  readonly describe?: () => unknown;
}

// The least time that a check which is under way has after the timeout: the machine may be busy.
const LATE_MS = 1_000;
const MAX_TEXT = 2_000;

/**
 * Calls `check` until it returns something truthy, and returns that; throws after the timeout with `description`, the last value or error, and
 * what there is instead. A check that does not return is given up after twice the timeout.
 *
 * For tests: what a test waits for is named, so that a failure says what did not come.
 */
export async function waitFor<Result>(
  description: string,
  check: () => Result | Promise<Result>,
  { timeoutMs = 10_000, intervalMs = 20, describe }: WaitOptions = {},
): Promise<NonNullable<Exclude<Result, false>>> {
  const patienceMs = timeoutMs * Number(process.env["GEN_OPERATOR_WAIT_FACTOR"] ?? 1);
  const deadline = elapsedMs() + patienceMs;
  const lateMs = Math.max(patienceMs, LATE_MS);
  for (;;) {
    const outcome = await settledWithin(deadline + lateMs - elapsedMs(), check);
    if (outcome.value) return outcome.value as NonNullable<Exclude<Result, false>>;
    if (elapsedMs() >= deadline) {
      const instead = describe === undefined ? outcome : await settledWithin(lateMs, describe);
      const cause = outcome.error === undefined ? undefined : { cause: outcome.error };
      const described = describe === undefined ? "" : `; there is ${textOf(instead)}`;
      throw new Error(`${description}: not within ${patienceMs} ms; ${lastOf(outcome)}${described}`, cause);
    }
    await sleep(intervalMs);
  }
}

interface Outcome {
  readonly value?: unknown;
  readonly error?: unknown;
  readonly isPending?: boolean;
}

async function settledWithin(timeoutMs: number, call: () => unknown): Promise<Outcome> {
  const over = new AbortController();
  const timeout = sleep(timeoutMs, { signal: over.signal }).then((): Outcome => ({ isPending: true }));
  const settled = (async () => call())().then(
    (value): Outcome => ({ value }),
    (error: unknown): Outcome => ({ error: error ?? new Error("unknown") }),
  );
  try {
    return await Promise.race([settled, timeout]);
  } finally {
    over.abort();
  }
}

function lastOf(outcome: Outcome): string {
  if (outcome.isPending === true) return "the last check has not returned";
  if (outcome.error !== undefined) return `the last check failed: ${textOf(outcome)}`;
  return `the last value was ${textOf(outcome)}`;
}

function textOf({ value, error, isPending }: Outcome): string {
  if (isPending === true) return "no answer";
  if (error instanceof Error) return error.message;
  const text = objectText(value) ?? inspect(error ?? value, { depth: 6, breakLength: Infinity });
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}… (${text.length - MAX_TEXT} more)` : text;
}

interface ShownObject {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly status?: { readonly conditions?: readonly ShownCondition[] };
}

interface ShownCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

/** Shows an object of Kubernetes by its conditions, or else its status; undefined for another value. */
function objectText(value: unknown): string | undefined {
  const { kind, metadata, status } = (typeof value === "object" ? (value ?? {}) : {}) as Partial<ShownObject>;
  if (kind === undefined || metadata?.name === undefined) return undefined;
  const name = `${kind} "${metadata.namespace === undefined ? "" : `${metadata.namespace}/`}${metadata.name}"`;
  if (status === undefined) return `${name} without a status`;
  const conditions = Array.isArray(status.conditions) ? (status.conditions as readonly ShownCondition[]) : [];
  if (conditions.length === 0) return `${name} with status ${JSON.stringify(status)}`;
  const texts = conditions.map(({ type, status: is, reason, message }) => {
    const why = [reason, message].filter((text) => text !== undefined && text !== "").join(": ");
    return `${type}=${is}${why === "" ? "" : ` (${why})`}`;
  });
  return `${name} with conditions ${texts.join(", ")}`;
}
