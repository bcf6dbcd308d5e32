import { inspect } from "node:util";
import { elapsedMs, sleep } from "./clock.js";

/** Options of `waitFor`. */
export interface WaitOptions {
  /** Timeout in milliseconds. Default: 10,000. The environment variable GEN_OPERATOR_WAIT_FACTOR multiplies it, for slow or busy machines. */
  readonly timeoutMs?: number;
  /** Time between checks in milliseconds. Default: 20. */
  readonly intervalMs?: number;
  /**
   * Returns the actual state for the error message, such as the primary, of which the message contains the conditions or the status. Default: the
   * last value of the check. Example: `{ describe: () => client.get(WebPage, ref) }`
   */
  readonly describe?: () => unknown;
}

// Minimum time in milliseconds for a check that is in progress at the timeout, because the machine may be busy.
const LATE_MS = 1_000;
const MAX_TEXT = 2_000;

/**
 * Calls `check` until it returns a truthy value, and returns that value. After the timeout it throws an Error with `description`, the last value or
 * error, and the result of `describe`. A check that does not return is abandoned after a second timeout of the same length, but at least one second.
 *
 * For tests: `description` names what the test waits for, so that the failure is clear.
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
      const described = describe === undefined ? "" : `; actual state: ${textOf(instead)}`;
      throw new Error(`${description}: timed out after ${patienceMs} ms; ${lastOf(outcome)}${described}`, cause);
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
  if (isPending === true) return "no response";
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

/** Formats a Kubernetes object by its conditions, or by its status if it has none; undefined for other values. */
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
