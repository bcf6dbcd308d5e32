// A write that a loop breaker may postpone, whichever way the object is written.
import { RetryAfterError } from "../base/errors.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import type { GuardedWrite, LoopGuard } from "./loop-guard.js";
import type { Difference } from "../match/match.js";
import type { Mismatch, Written } from "./object-writer.js";
import { describeObject } from "../base/kubernetes-object.js";

/** A write that is due, since an object is not as desired. */
export interface DueWrite extends GuardedWrite {
  readonly live: DecodedResource | undefined;
  readonly verdict: Mismatch;
  send(): Promise<Written>;
  /** Returns the places where live is not as desired, `limit` at most. */
  differences(limit: number): readonly Difference[];
}

// How much of what is undone in a loop is named.
const NAMED_DIFFERENCES = 10;

/** Writes, unless the object is in a loop and has to be left alone for now. */
export async function writeGuarded(loops: LoopGuard, due: DueWrite): Promise<Written> {
  const postponedMs = loops.pauseOf(due);
  if (postponedMs > 0) return postpone(due, postponedMs);
  const written = await due.send();
  const isWritten = written.kind === "created" || written.kind === "updated";
  const loop = isWritten ? loops.noteWrite(due) : undefined;
  if (loop === undefined) return written;
  return { ...written, loop: { ...loop, differences: due.differences(NAMED_DIFFERENCES) } };
}

// What is there is left as it is, and nothing waits for it; what is not there has to be waited for.
function postpone({ definition, desired, live, verdict }: DueWrite, postponedMs: number): Written {
  if (live !== undefined) return { kind: "unchanged", entry: live, verdict, postponedMs };
  const object = describeObject(definition, desired.metadata);
  const message = `${object} is deleted again and again; it is created again in ${Math.ceil(postponedMs / 1000)} s`;
  throw new RetryAfterError(message, postponedMs);
}
