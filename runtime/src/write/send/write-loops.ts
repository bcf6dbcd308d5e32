import { hash } from "node:crypto";
import { systemClock } from "../../base/clock.js";
import { keyOf, type KubernetesObject, type ObjectRef } from "../../base/kubernetes-object.js";
import { kindNameOf, type ResourceDefinition } from "../../base/resource-definition.js";
import { LoopDetector, type ObservedWrite, type WriteLoop } from "../../match/loop-detector.js";
import type { Sending } from "./plan.js";

/** The loops that one field manager is in, in the time of the machine. */
export class WriteLoops {
  readonly #detector = new LoopDetector();
  #edits = 0;

  /** Returns the loop that a write would continue and how long it has to wait; undefined if it may be made now. */
  postponementOf(write: Sending): Omit<WriteLoop, "isNew"> | undefined {
    return this.#detector.postponementOf(keyOfWrite(write), () => observedOf(write), systemClock.now());
  }

  /** Takes note of a write that was made; returns the loop that it belongs to, if it does. */
  noteWrite(write: Sending): WriteLoop | undefined {
    return this.#detector.noteWrite(keyOfWrite(write), observedOf(write), systemClock.now());
  }

  /** Takes note that an object, or its status, was found as desired. */
  noteMatch(definition: ResourceDefinition, ref: ObjectRef, isStatus: boolean): void {
    // Nearly always: a pass over unchanged objects must cost nothing here.
    if (this.#detector.size > 0) this.#detector.noteMatch(keyOfLoop(definition, ref, isStatus), systemClock.now());
  }

  /** Takes note of an edit of a primary by its own reconcile; returns the loop that it belongs to, if it does. */
  noteEdit(definition: ResourceDefinition, { metadata }: KubernetesObject): WriteLoop | undefined {
    const edit = { content: `${this.#edits++}`, input: metadata.uid ?? "" };
    return this.#detector.noteWrite(keyOfEdits(definition, metadata), edit, systemClock.now());
  }

  /** Returns the loop of such edits, and how long the primary has to be left alone; undefined if it may be reconciled. */
  postponementOfEdits(
    definition: ResourceDefinition,
    { metadata }: KubernetesObject,
  ): Omit<WriteLoop, "isNew"> | undefined {
    const edit = () => ({ content: "", input: metadata.uid ?? "" });
    return this.#detector.postponementOf(keyOfEdits(definition, metadata), edit, systemClock.now());
  }

  /** Forgets an object that is deleted on purpose. */
  forget(definition: ResourceDefinition, ref: ObjectRef): void {
    for (const isStatus of [false, true]) this.#detector.forget(keyOfLoop(definition, ref, isStatus));
  }
}

function keyOfWrite({ target, plan }: Sending): string {
  return keyOfLoop(target.definition, plan.ref, plan.isStatus);
}

// By name and not by uid, so that an object that somebody deletes each time is a loop, too.
function keyOfLoop(definition: ResourceDefinition, ref: ObjectRef, isStatus: boolean): string {
  return `${kindNameOf(definition)} ${keyOf(ref)}${isStatus ? " status" : ""}`;
}

function keyOfEdits(definition: ResourceDefinition, ref: ObjectRef): string {
  return `${keyOfLoop(definition, ref, false)} edits`;
}

// What is written, without the version that it is made from, and the state of the primary that it follows from.
function observedOf({ plan, before, content = plan.body, cause }: Sending): ObservedWrite {
  const { uid = "", generation = 0 } = cause?.primary?.metadata ?? {};
  // A write of the primary itself makes its next generation.
  const isPrimary = !plan.isStatus && before !== undefined && before.object.metadata.uid === uid;
  return { content: digestOf(content), input: isPrimary ? uid : `${uid} ${generation}` };
}

/** Returns a digest of what is written, without the version that it is made from. */
export function digestOf(content: object): string {
  const { metadata } = content as Partial<KubernetesObject>;
  const hasVersion = metadata?.resourceVersion !== undefined;
  const stated = hasVersion ? { ...content, metadata: { ...metadata, resourceVersion: undefined } } : content;
  return hash("sha1", JSON.stringify(stated), "base64");
}
