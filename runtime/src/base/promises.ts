import { setMaxListeners } from "node:events";
import type { Clock } from "./clock.js";

// Functions of the user that nobody waits for may be asynchronous: a promise that is rejected while nobody looks ends the process.

/** Returns what a function returned whose result is needed now; throws if that is a promise. */
export function synchronous<Result>(returned: Result): Result {
  if (!isThenable(returned)) return returned;
  returned.then(undefined, () => {});
  throw new TypeError("it returned a promise; nothing waits for it here, so it has to be synchronous");
}

/** Calls a function whose result nobody needs; one of the others is called when it has ended, at once or later. */
export function callUnawaited(
  call: () => unknown,
  { onSuccess = () => {}, onFailure }: { onSuccess?: () => void; onFailure: (error: unknown) => void },
): void {
  let returned: unknown;
  try {
    returned = call();
  } catch (error) {
    return onFailure(error);
  }
  if (isThenable(returned)) returned.then(onSuccess, onFailure);
  else onSuccess();
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

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
export interface Deadline {
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
