import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { EventFilters } from "../cluster/event-filters.js";
import type { ResourceChange } from "../cluster/resource-cache.js";
import type { ControllerDefinition } from "./controller-definition.js";
import { finalizerOf } from "./check-controller.js";
import { hasFinalizer } from "./finalizer.js";

/** What the last reconcile of a primary saw of it. */
export interface SeenPrimary {
  readonly uid: string | undefined;
  readonly generation: number | undefined;
  readonly isDeleting: boolean;
}

/** Which changes of primaries cause a reconcile. */
export interface PrimaryFilters {
  /** False: the filters of the user decide alone. */
  readonly hasDefaultFilters: boolean;
  readonly isGenerationAware: boolean;
  /** What every primary needs; undefined if the controller needs no finalizer. */
  readonly finalizer: string | undefined;
  readonly filters: Omit<EventFilters, "onDelete">;
}

/** Returns the filters of a controller. */
export function primaryFiltersOf(definition: ControllerDefinition): PrimaryFilters {
  const { hasDefaultFilters = true, isGenerationAware = true, filters = {} } = definition;
  return {
    hasDefaultFilters,
    isGenerationAware,
    finalizer: finalizerOf(definition),
    filters: filters as PrimaryFilters["filters"],
  };
}

/** Returns what `passesPrimaryFilters` has to know of the state that a reconcile is called with. */
export function seenOf({ metadata: { uid, generation, deletionTimestamp } }: KubernetesObject): SeenPrimary {
  return { uid, generation, isDeleting: deletionTimestamp !== undefined };
}

/**
 * Tells whether a change of a primary causes a reconcile; throws what a filter of the user throws.
 *
 * JOSDK's filters, but for one thing: an update is compared with what the last reconcile saw, undefined if there was none, and not with
 * the state before. An own write may have brought a foreign change into the cache ahead of its event.
 */
export function passesPrimaryFilters(
  { kind, object, old = object }: Pick<ResourceChange, "kind" | "object" | "old">,
  seen: SeenPrimary | undefined,
  settings: PrimaryFilters,
): boolean {
  const { onAdd, onUpdate, generic } = settings.filters;
  if (generic?.(object) === false) return false;
  switch (kind) {
    case "added":
      return onAdd?.(object) !== false;
    case "deleted":
      return true;
    case "updated":
      return onUpdate?.(object, old) !== false && (!settings.hasDefaultFilters || isNews(object, seen, settings));
  }
}

function isNews(
  object: KubernetesObject,
  seen: SeenPrimary | undefined,
  { isGenerationAware, finalizer }: PrimaryFilters,
): boolean {
  const { uid, generation, deletionTimestamp } = object.metadata;
  if (seen === undefined || seen.uid !== uid || !isGenerationAware || generation === undefined) return true;
  if (generation > (seen.generation ?? 0)) return true;
  if (deletionTimestamp !== undefined) return !seen.isDeleting;
  return finalizer !== undefined && !hasFinalizer(object, finalizer);
}
