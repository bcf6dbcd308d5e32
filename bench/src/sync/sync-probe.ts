// Measures a client from within its process, and reports to the parent process.
import { readFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";

/** The settings of a client. */
export interface SyncSettings {
  readonly url: string;
  readonly ca: string;
  readonly objects: number;
  readonly events: number;
}

/** The cost of the initial list and of the events. */
export interface SyncReport {
  readonly syncedSeconds: number;
  readonly syncedCpuSeconds: number;
  readonly eventsSeconds: number;
  readonly totalCpuSeconds: number;
  readonly peakMb: number;
  readonly heapMb: number;
  readonly stallMs: number;
  readonly reconciles: number;
}

const RESOLUTION_MS = 5;

/** Returns the settings that the parent process passed as an argument. */
export function settingsOf<Settings>(): Settings {
  return JSON.parse(process.argv[2]!) as Settings;
}

/** Returns the CPU time of this process in seconds, including all threads. */
export function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Reads a memory figure of this process from /proc, in MB. */
export function statusMb(field: "VmHWM" | "VmRSS"): number {
  const kilobytes = new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return Number(kilobytes) / 1024;
}

/** Returns the used heap and external memory after a garbage collection, in MB. Requires --expose-gc. */
export function heapMb(): number {
  globalThis.gc!();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 2 ** 20;
}

/** Measures a client that calls `onSynced`, `onChange`, and `onReconciled`; reports once all events have been reconciled. */
export function createProbe({ objects, events }: SyncSettings) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  const startedAt = performance.now();
  let synced: { at: number; cpu: number } | undefined;
  let seen = 0;
  let isReported = false;
  let reconciles = 0;
  /** Reports once, after all events have been received and reconciled. */
  const reportIfDone = (isIdle: boolean) => {
    if (synced === undefined || seen < objects + events || !isIdle || isReported) return;
    isReported = true;
    delay.disable();
    const report: SyncReport = {
      syncedSeconds: (synced.at - startedAt) / 1000,
      syncedCpuSeconds: synced.cpu,
      eventsSeconds: (performance.now() - synced.at) / 1000,
      totalCpuSeconds: cpuSeconds(),
      peakMb: statusMb("VmHWM"),
      heapMb: heapMb(),
      stallMs: delay.max / 1e6 - RESOLUTION_MS,
      reconciles,
    };
    process.send!(report);
  };
  return {
    /** Called when the initial list is complete. */
    onSynced() {
      synced = { at: performance.now(), cpu: cpuSeconds() };
      process.send!({});
    },
    /** Called for each change. */
    onChange: () => void seen++,
    /** Called after each reconcile; `isIdle` tells whether the queue is empty. */
    onReconciled(isIdle: boolean) {
      reconciles++;
      reportIfDone(isIdle);
    },
    reportIfDone,
  };
}
