/**
 * The clock and the timers of the machine, and the time of the server, which a fault may shift.
 *
 * The machine's own are taken when this module is loaded. A test that replaces them by fake ones afterwards (vitest, jest, `node:test`) stops the code
 * that it tests, and not the server beside it. So nothing in this package uses the global ones.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import * as timers from "node:timers";

export const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate } = timers;

const MachineDate = Date;
const machine = performance;
const now = machine.now.bind(machine);

/** Returns the time of the machine. */
export function machineTime(): Date {
  return new MachineDate(MachineDate.now());
}

/** Returns milliseconds that only grow, for durations. */
export function elapsedMs(): number {
  return now();
}

/** Waits; ends early, without an error, when `signal` aborts. With `ref: false` it does not keep the process alive. */
export function sleep(ms: number, { signal, ref = true }: { signal?: AbortSignal; ref?: boolean } = {}): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const timer = setTimeout(done, ms);
    if (!ref) timer.unref();
    signal?.addEventListener("abort", done, { once: true });
    function done(): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    }
  });
}

const shift = new AsyncLocalStorage<number>();

/** Returns the time that the server shows in what it writes now. */
export function serverTime(): Date {
  return new Date(machineTime().getTime() + (shift.getStore() ?? 0));
}

/** Runs something under a shifted time, with all that follows from it. */
export function withShiftedTime<T>(aheadMs: number, run: () => T): T {
  return shift.run(aheadMs, run);
}

/** Returns a time to the second, as Kubernetes writes it. */
export function timestampOf(time: Date): string {
  return `${time.toISOString().slice(0, 19)}Z`;
}
