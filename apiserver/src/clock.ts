/**
 * Timers and clock of the machine, and the time of the server, which a fault may shift.
 *
 * The global timers are captured when this module is loaded: fake timers that a test installs later (vitest, jest, `node:test`) then affect the code
 * under test but not the server. All other code of this package uses this module instead of the globals.
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

/** Returns a monotonic time in milliseconds, to measure durations. */
export function elapsedMs(): number {
  return now();
}

/**
 * Waits for a number of milliseconds; returns early, without an error, if `signal` is aborted. With `ref: false` it does not keep the process alive.
 */
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

/** Returns the time of the server, shifted by a fault, for what it writes and returns. */
export function serverTime(): Date {
  return new Date(machineTime().getTime() + (shift.getStore() ?? 0));
}

/** Runs a function, and everything asynchronous that it starts, with a shifted server time. */
export function withShiftedTime<T>(aheadMs: number, run: () => T): T {
  return shift.run(aheadMs, run);
}

/** Formats a time in seconds, as Kubernetes does. */
export function timestampOf(time: Date): string {
  return `${time.toISOString().slice(0, 19)}Z`;
}
