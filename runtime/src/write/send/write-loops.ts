import { createHash } from "node:crypto";
import { systemClock } from "../../base/clock.js";
import { keyOf, type KubernetesObject, type ObjectRef } from "../../base/kubernetes-object.js";
import { kindNameOf, type ResourceDefinition } from "../../base/resource-definition.js";
import { LoopDetector, type ObservedWrite, type WriteLoop } from "../../match/loop-detector.js";

/** A write as the loop detection of a field manager sees it. */
export interface GuardedWrite {
  readonly definition: ResourceDefinition;
  readonly ref: ObjectRef;
  readonly isStatus: boolean;
  /** What is written, without the version that it is made from. */
  readonly content: object;
  /** Whose state the write follows from. */
  readonly primary?: KubernetesObject | undefined;
}

/** The loops that one field manager is in, in the time of the machine. */
export class WriteLoops {
  readonly #detector = new LoopDetector();

  /** Returns the loop that a write would continue and how long it has to wait; undefined if it may be made now. */
  postponementOf(write: GuardedWrite): Omit<WriteLoop, "isNew"> | undefined {
    return this.#detector.postponementOf(keyOfWrite(write), () => observedOf(write), systemClock.now());
  }

  /** Takes note of a write that was made; returns the loop that it belongs to, if it does. */
  noteWrite(write: GuardedWrite): WriteLoop | undefined {
    return this.#detector.noteWrite(keyOfWrite(write), observedOf(write), systemClock.now());
  }

  /** Takes note that an object, or its status, was found as desired. */
  noteMatch(write: Omit<GuardedWrite, "content">): void {
    // Nearly always: a pass over unchanged objects must cost nothing here.
    if (this.#detector.size > 0) this.#detector.noteMatch(keyOfWrite(write), systemClock.now());
  }

  /** Forgets an object that is deleted on purpose. */
  forget(definition: ResourceDefinition, ref: ObjectRef): void {
    for (const isStatus of [false, true]) this.#detector.forget(keyOfWrite({ definition, ref, isStatus }));
  }
}

// By name and not by uid, so that an object that somebody deletes each time is a loop, too.
function keyOfWrite({ definition, ref, isStatus }: Omit<GuardedWrite, "content">): string {
  return `${kindNameOf(definition)} ${keyOf(ref)}${isStatus ? " status" : ""}`;
}

function observedOf({ content, primary }: GuardedWrite): ObservedWrite {
  const { uid = "", generation = 0 } = primary?.metadata ?? {};
  const digest = createHash("sha1").update(JSON.stringify(content, withoutVersion)).digest("base64");
  return { content: digest, input: `${uid} ${generation}` };
}

function withoutVersion(name: string, value: unknown): unknown {
  return name === "resourceVersion" ? undefined : value;
}
