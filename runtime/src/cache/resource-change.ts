import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";

/** A change of an object. */
export interface ResourceChange {
  readonly kind: "added" | "updated" | "deleted";
  readonly key: ObjectKey;
  /** The state after the change; the last one of a deleted object. */
  readonly object: KubernetesObject;
  /** What the watch had before; absent if that was nothing. */
  readonly old?: KubernetesObject;
  /** Whether a list brought it, and not the watch. */
  readonly isInitial: boolean;
  /** Whether the deletion went unseen, so that `object` may not be the last state. */
  readonly isFinalStateUnknown?: boolean;
}

/** Who is told what a cache learns, always in the turn in which it does. */
export interface CacheListener {
  /** `version` is that of the event, as the watch counts. */
  onChange(change: ResourceChange, version: string): void;
  /** An object that is known from an answer only is missing in a list of `version`. */
  onGhost(change: ResourceChange, version: string): void;
  /** A list begins: what happens before it has arrived may go unseen. */
  onListBegun(): void;
  /** The list has arrived, and all its changes have been told. */
  onListEnded(version: string): void;
  /** The watch has come to `version`, as a bookmark tells. */
  onVersion(version: string): void;
}

/** What is known of an object before and after a change. */
interface ChangeStates {
  readonly object: KubernetesObject;
  readonly old: KubernetesObject | undefined;
  readonly isInitial: boolean;
}

/** Returns the change that brought a state of an object. */
export function arrivalOf(key: ObjectKey, { object, old, isInitial }: ChangeStates): ResourceChange {
  return old === undefined
    ? { kind: "added", key, object, isInitial }
    : { kind: "updated", key, object, old, isInitial };
}

/** Returns the change that took an object away. */
export function deletionOf(
  key: ObjectKey,
  { object, old, isInitial, isFinalStateUnknown }: ChangeStates & { readonly isFinalStateUnknown: boolean },
): ResourceChange {
  const change = { kind: "deleted", key, object, isInitial } as const;
  return { ...change, ...(old === undefined ? {} : { old }), ...(isFinalStateUnknown ? { isFinalStateUnknown } : {}) };
}
