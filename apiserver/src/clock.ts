/** The time as the server tells it. Only where a fault has shifted it does it differ from that of the machine. */
import { AsyncLocalStorage } from "node:async_hooks";
import { machineTime } from "./real-time.js";

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
