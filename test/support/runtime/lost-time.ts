/** The time that the process was delayed by other load on the machine. Assertions about durations add it to their limit. */
export interface LostTime {
  /** Returns the total delay of timers in ms since a time of `performance.now()`. */
  since(at: number): number;
}

const STEP_MS = 20;

/** Starts the measurement. It does not keep the process alive. */
export function measureLostTime(): LostTime {
  const delays: { readonly at: number; readonly ms: number }[] = [];
  let last = performance.now();
  setInterval(() => {
    const at = performance.now();
    if (at - last > 1.5 * STEP_MS) delays.push({ at, ms: at - last - STEP_MS });
    last = at;
  }, STEP_MS).unref();
  return {
    since: (start) => delays.reduce((sum, { at, ms }) => (at > start ? sum + ms : sum), 0),
  };
}
