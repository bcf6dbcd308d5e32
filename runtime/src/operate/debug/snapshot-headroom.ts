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

/** Whether there is room for a heap snapshot. */
export interface SnapshotHeadroom {
  readonly neededBytes: number;
  readonly availableBytes: number;
  /** 0 if there is room. */
  readonly missingBytes: number;
}

// A snapshot is made beside the heap, not in it. Measured with Node 20: 4 times the used heap of an operator, 4 for long strings, 10 for
// small objects, 15 for the smallest. V8's limit of the heap (heap_size_limit) was never the bound.
const GROWTH = 8;

/** Weighs what a heap snapshot needs against what the process may still take. */
export function snapshotHeadroom(facts: MemoryFacts): SnapshotHeadroom {
  const { usedHeapBytes, residentBytes, limitBytes = Infinity, freeBytes } = facts;
  const neededBytes = usedHeapBytes * GROWTH;
  const availableBytes = Math.max(0, Math.min(limitBytes - residentBytes, freeBytes));
  return { neededBytes, availableBytes, missingBytes: Math.max(0, neededBytes - availableBytes) };
}
