// Loaded when somebody asks for a snapshot.
import { freemem, totalmem } from "node:os";
import type { Readable } from "node:stream";
import { getHeapSnapshot, getHeapStatistics } from "node:v8";
import type { MemoryFacts } from "./snapshot-headroom.js";

/** Reads what a heap snapshot is weighed against. */
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

/** Makes a snapshot of the heap; nothing else of the process runs meanwhile. */
export function takeHeapSnapshot(): Readable {
  return getHeapSnapshot();
}
