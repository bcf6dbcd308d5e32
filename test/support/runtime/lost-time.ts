/** What a busy machine took from this process: an assertion about time adds it to its bound, which then holds on every machine. */
export interface LostTime {
  /** How many milliseconds timers were late, all together, since a time of `performance.now()`. */
  since(at: number): number;
}

const STEP_MS = 20;

/** Begins to measure. Keeps no process alive. */
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
