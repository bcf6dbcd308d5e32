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
