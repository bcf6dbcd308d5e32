// Whether there is room for a heap snapshot, which is made beside the heap, not in it.
import { freemem, totalmem } from "node:os";
import { getHeapStatistics } from "node:v8";

/** What a heap snapshot is weighed against. */
export interface MemoryFacts {
  readonly usedHeapBytes: number;
  /** What the process has in memory. */
  readonly residentBytes: number;
  /** What the process may have; absent without a limit. */
  readonly limitBytes?: number | undefined;
  /** What the machine has left. */
  readonly freeBytes: number;
}

// Measured with Node 20: 4 times the used heap of an operator, 4 for long strings, 10 for small objects, 15 for the smallest. V8's limit of
// the heap (heap_size_limit) was never the bound.
const GROWTH = 8;

/** Reads what a heap snapshot of this process is weighed against. */
export function readMemoryFacts(): MemoryFacts {
  const limitBytes = process.constrainedMemory();
  return {
    usedHeapBytes: getHeapStatistics().used_heap_size,
    residentBytes: process.memoryUsage.rss(),
    // Without a limit it is 0, or more than there is.
    ...(limitBytes > 0 && limitBytes < totalmem() && { limitBytes }),
    freeBytes: freemem(),
  };
}

/** Weighs what a heap snapshot needs against what the process may still take; nothing is missing if there is room. */
export function snapshotHeadroom({ usedHeapBytes, residentBytes, limitBytes = Infinity, freeBytes }: MemoryFacts) {
  const neededBytes = usedHeapBytes * GROWTH;
  const availableBytes = Math.max(0, Math.min(limitBytes - residentBytes, freeBytes));
  return { neededBytes, availableBytes, missingBytes: Math.max(0, neededBytes - availableBytes) };
}
