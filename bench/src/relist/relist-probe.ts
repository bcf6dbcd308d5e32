// Measures the memory of a client while it relists.
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { cpuSeconds, heapMb, statusMb } from "../sync/sync-probe.js";

/** The settings of a client. */
export interface RelistSettings {
  readonly url: string;
  readonly ca: string;
  readonly objects: number;
  /** The number of objects that change while the watch is closed. */
  readonly changed: number;
}

/** The cost of a relist. */
export interface RelistReport {
  readonly steadyMb: number;
  readonly peakMb: number;
  readonly steadyHeapMb: number;
  readonly heapMb: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  /** The number of events that were delivered. */
  readonly changes: number;
}

const SETTLE_MS = 1_500;

/** Collects garbage repeatedly, so that the process reaches the state of an idle one. Returns the heap size in MB. */
async function settle(): Promise<number> {
  for (let pass = 0; pass < 3; pass++) {
    heapMb();
    await sleep(SETTLE_MS / 3);
  }
  return heapMb();
}

/** Measures a relist until `isDone` returns true; requests the expiry of the watch from the parent process. */
export async function measureRelist(progress: { changes: number }, isDone: () => boolean): Promise<void> {
  const steadyHeapMb = await settle();
  const before = { changes: progress.changes, cpu: cpuSeconds(), rss: statusMb("VmRSS"), at: performance.now() };
  // Resets the peak memory (VmHWM) that the kernel records.
  writeFileSync("/proc/self/clear_refs", "5");
  process.send!({});
  while (!isDone()) await sleep(5);
  const report: Omit<RelistReport, "heapMb"> = {
    steadyMb: before.rss,
    peakMb: statusMb("VmHWM"),
    steadyHeapMb,
    seconds: (performance.now() - before.at) / 1000,
    cpuSeconds: cpuSeconds() - before.cpu,
    changes: progress.changes - before.changes,
  };
  process.send!({ ...report, heapMb: await settle() });
}
