import { createHash } from "node:crypto";
import { systemClock, type Clock } from "../base/clock.js";
import { keyOf, type ObjectRef } from "../base/kubernetes-object.js";
import { kindNameOf, type ResourceDefinition } from "../base/resource-definition.js";
import { LoopBreaker, type LoopBreakerOptions, type WriteLoop } from "../match/loop-breaker.js";
import type { Difference } from "../match/match.js";

/** An object that is written over and over, and what is undone in it each time. */
export interface LoopFinding extends WriteLoop {
  readonly differences: readonly Difference[];
}

/** What is to be written, as far as loops are concerned. */
export interface GuardedWrite {
  readonly definition: ResourceDefinition;
  readonly desired: object & { readonly metadata: ObjectRef };
}

/** A loop breaker for objects of Kubernetes, in the time of the machine. */
export class LoopGuard {
  readonly #clock: Clock;
  readonly #breaker: LoopBreaker;

  constructor(clock: Clock = systemClock, options: LoopBreakerOptions = {}) {
    this.#clock = clock;
    this.#breaker = new LoopBreaker(options);
  }

  /** Returns how long an object has to be left alone before it is written again; 0 if it may be now. */
  pauseOf(write: GuardedWrite): number {
    const key = keyOfWrite(write.definition, write.desired.metadata);
    if (!this.#breaker.isSlowed(key)) return 0;
    return this.#breaker.pauseOf(key, digestOf(write), this.#clock.now());
  }

  /** Takes note of a write that was made; returns the loop that it belongs to, if it does. */
  noteWrite(write: GuardedWrite): WriteLoop | undefined {
    const key = keyOfWrite(write.definition, write.desired.metadata);
    return this.#breaker.noteWrite(key, digestOf(write), this.#clock.now());
  }

  /** Takes note that an object was found as desired. */
  noteMatch({ definition, desired }: GuardedWrite): void {
    // Nearly always: a pass over unchanged objects must cost nothing here.
    if (this.#breaker.size > 0) this.#breaker.noteMatch(keyOfWrite(definition, desired.metadata), this.#clock.now());
  }

  /** Forgets an object that is deleted on purpose. */
  forget(definition: ResourceDefinition, ref: ObjectRef): void {
    this.#breaker.forget(keyOfWrite(definition, ref));
  }
}

// By name and not by uid, so that an object that somebody deletes each time is a loop, too.
function keyOfWrite(definition: ResourceDefinition, ref: ObjectRef): string {
  return `${kindNameOf(definition)} ${keyOf(ref)}`;
}

function digestOf({ desired }: GuardedWrite): string {
  return createHash("sha1").update(JSON.stringify(desired)).digest("base64");
}
