// What a client under measurement does besides its work: it watches over itself and reports to its parent.
import { readFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";

/** What a client is told at its start. */
export interface SyncSettings {
  readonly url: string;
  readonly ca: string;
  readonly objects: number;
  readonly events: number;
}

/** What the synchronisation and the events cost a client. */
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

/** The settings that the parent gave. */
export function settingsOf<Settings>(): Settings {
  return JSON.parse(process.argv[2]!) as Settings;
}

/** The CPU seconds that this process has used, with all of its threads. */
export function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Reads a figure of this process from the kernel, in megabytes. */
export function statusMb(field: "VmHWM" | "VmRSS"): number {
  const kilobytes = new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return Number(kilobytes) / 1024;
}

/** What is in use on V8's heap, and outside of it on its behalf, after a collection; needs --expose-gc. */
export function heapMb(): number {
  globalThis.gc!();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 2 ** 20;
}

/** Measures a client that calls `onSynced` and `onReconciled`; reports when all events have been reconciled. */
export function createProbe({ objects, events }: SyncSettings) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  const startedAt = performance.now();
  let synced: { at: number; cpu: number } | undefined;
  let seen = 0;
  let isReported = false;
  let reconciles = 0;
  /** Reports once, when nothing is to come and nothing is left. */
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
    /** The whole state is known. */
    onSynced() {
      synced = { at: performance.now(), cpu: cpuSeconds() };
      process.send!({});
    },
    /** A change arrived. */
    onChange: () => void seen++,
    /** A reconcile ended; `isIdle` says whether none is left. */
    onReconciled(isIdle: boolean) {
      reconciles++;
      reportIfDone(isIdle);
    },
    reportIfDone,
  };
}
