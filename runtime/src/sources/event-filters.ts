import type { KubernetesObject } from "../base/kubernetes-object.js";

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
