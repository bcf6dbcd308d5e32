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
