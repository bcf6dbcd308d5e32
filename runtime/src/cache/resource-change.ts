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
  /** A list begins, or has arrived with all its changes told: what happens in between may go unseen. */
  onListing(isListing: boolean): void;
  /** The watch has come to `version`, as a bookmark or a list tells. */
  onVersion(version: string): void;
  /** The server was restored from a backup: no echo of an own write is awaited any more. */
  onReset(): void;
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

/** Tells whether a new resource is worth a reconcile. */
export type OnAddFilter<Resource = KubernetesObject> = (resource: Resource) => boolean;

/** Tells whether a change is worth a reconcile. */
export type OnUpdateFilter<Resource = KubernetesObject> = (resource: Resource, old: Resource) => boolean;

/** Tells whether a deletion is worth a reconcile; `isFinalStateUnknown` if nobody watched when it happened. */
export type OnDeleteFilter<Resource = KubernetesObject> = (resource: Resource, isFinalStateUnknown: boolean) => boolean;

/** Tells whether anything that happens to a resource is worth a reconcile. */
export type GenericFilter<Resource = KubernetesObject> = (resource: Resource) => boolean;

/**
 * What an event has to pass to cause a reconcile: `generic` and the one of its kind; what is absent lets everything pass.
 *
 * Caches and indexes see everything, whatever the filters say.
 */
export interface EventFilters<Resource = KubernetesObject> {
  readonly onAdd?: OnAddFilter<Resource> | undefined;
  readonly onUpdate?: OnUpdateFilter<Resource> | undefined;
  readonly onDelete?: OnDeleteFilter<Resource> | undefined;
  readonly generic?: GenericFilter<Resource> | undefined;
}
