// What a client does beside its work while the whole state is read again: it finds out how much memory that takes.
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { cpuSeconds, heapMb, statusMb } from "../sync/sync-probe.js";

/** What a client is told at its start. */
export interface RelistSettings {
  readonly url: string;
  readonly ca: string;
  readonly objects: number;
  /** How many objects change while nobody watches. */
  readonly changed: number;
}

/** What reading the whole state again cost. */
export interface RelistReport {
  readonly steadyMb: number;
  readonly peakMb: number;
  readonly steadyHeapMb: number;
  readonly heapMb: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  /** How many changes were told. */
  readonly changes: number;
}

const SETTLE_MS = 1_500;

/** Waits until nothing is left of what went before, as a process that has been idle for a while has done. */
async function settle(): Promise<number> {
  for (let pass = 0; pass < 3; pass++) {
    heapMb();
    await sleep(SETTLE_MS / 3);
  }
  return heapMb();
}

/** Measures what comes between a settled process and the moment when `isDone` says so; asks the parent to let the watch expire. */
export async function measureRelist(progress: { changes: number }, isDone: () => boolean): Promise<void> {
  const steadyHeapMb = await settle();
  const before = { changes: progress.changes, cpu: cpuSeconds(), rss: statusMb("VmRSS"), at: performance.now() };
  // From here on the kernel's high-water mark counts anew.
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
