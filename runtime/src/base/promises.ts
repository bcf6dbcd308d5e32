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
