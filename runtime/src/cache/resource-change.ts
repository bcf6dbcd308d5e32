import { keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import type { ManagedWrite, OwnedFields } from "../base/decoded-resource.js";

/** A change of an object. */
export interface ResourceChange {
  readonly kind: "added" | "updated" | "deleted";
  readonly key: ObjectKey;
  /** The state after the change; the last state of a deleted object. */
  readonly object: KubernetesObject;
  /** What the controllers of the operator applied to the object in this state. */
  readonly owned?: readonly OwnedFields[] | undefined;
  /** The state before the change, as the watch had it; absent if there was none. */
  readonly old?: KubernetesObject | undefined;
  /** The latest write of the field managers of the operator, if the watch brought the change. */
  readonly written?: ManagedWrite | undefined;
  /** Whether a list brought the change, and not the watch. */
  readonly isInitial: boolean;
  /** The primary whose reconcile made the change, and needs no event of it; absent if others made it, or also others. */
  readonly madeFor?: ObjectKey | undefined;
  /** Whether the deletion went unseen, so that `object` may not be the last state. */
  readonly isFinalStateUnknown?: boolean;
}

/** Returns the change that a reconcile of a primary made, as others hear of it; undefined if nobody has to. */
export function changeMadeFor(change: ResourceChange, madeFor: ObjectKey | undefined): ResourceChange | undefined {
  return madeFor === undefined ? undefined : { ...change, madeFor };
}

/** Returns the deletion of an object that nobody saw, as of its last known state. */
export function unseenDeletionOf(object: KubernetesObject, isInitial = true): ResourceChange {
  return { kind: "deleted", key: keyOf(object.metadata), object, old: object, isInitial, isFinalStateUnknown: true };
}

/** Notified of what a cache learns, in the same turn of the event loop. */
export interface CacheListener {
  /** `version` is the version of the event. */
  onChange(change: ResourceChange, version: string): void;
  /** The watch has reached `version`, by a bookmark or a list. */
  onVersion(version: string): void;
  /** The store of the API server was restored: no echo of an own write will come. */
  onReset(): void;
}

/** Tells whether a new resource is worth a reconcile. */
export type OnAddFilter<Resource = KubernetesObject> = (resource: Resource) => boolean;

/** Tells whether a change is worth a reconcile. */
export type OnUpdateFilter<Resource = KubernetesObject> = (resource: Resource, old: Resource) => boolean;

/** Tells whether a deletion is worth a reconcile; `isFinalStateUnknown` if nobody watched when it happened. */
export type OnDeleteFilter<Resource = KubernetesObject> = (resource: Resource, isFinalStateUnknown: boolean) => boolean;

/** Tells whether anything that happens to a resource is worth a reconcile. */
export type GenericFilter<Resource = KubernetesObject> = (resource: Resource) => boolean;

/** What an event has to pass to cause a reconcile: `generic` and the filter of its kind. Default: all passes. Caches and indexes see all. */
export interface EventFilters<Resource = KubernetesObject> {
  readonly onAdd?: OnAddFilter<Resource> | undefined;
  readonly onUpdate?: OnUpdateFilter<Resource> | undefined;
  readonly onDelete?: OnDeleteFilter<Resource> | undefined;
  readonly generic?: GenericFilter<Resource> | undefined;
}
