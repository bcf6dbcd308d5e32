import type { KubernetesObject } from "../base/kubernetes-object.js";
import { messageOf, type Logger } from "../base/logger.js";
import { isPaused } from "../base/primary-link.js";
import type { EventFilters, ResourceChange } from "../cache/resource-change.js";
import { synchronous } from "../base/promises.js";
import { userCalls } from "../base/user-calls.js";
import type { DecodedResource } from "../base/decoded-resource.js";
import type { ScheduleSettings } from "./schedule-settings.js";

/** What the last reconcile of a primary saw of it. */
export interface Seen {
  readonly uid: string | undefined;
  readonly generation: number | undefined;
  readonly isDeleting: boolean;
  readonly isPaused: boolean;
  /** Stands for the inputs of the controller; undefined if it has none. */
  readonly inputs: string | undefined;
}

/** Returns what a reconcile sees of a primary; `inputs` stands for the inputs of the controller. */
export function seenOf({ metadata }: KubernetesObject, inputs?: string): Seen {
  const { uid, generation, deletionTimestamp } = metadata;
  return { uid, generation, isDeleting: deletionTimestamp !== undefined, isPaused: isPaused(metadata), inputs };
}

interface PrimaryFilterOptions extends Pick<ScheduleSettings, "defaultFilters" | "generationAware" | "filters"> {
  /** Tells whether somebody took away what the controller itself writes to a primary. */
  isUndone(entry: DecodedResource): boolean;
  readonly logger: Logger;
  /** The name of the controller. */
  readonly name: string;
}

type Change = Pick<ResourceChange, "kind" | "key" | "object" | "old" | "owned">;

/** Tells whether a change of a primary causes a reconcile; `isNews` tells whether it is an edit since the last one. */
export type PrimaryFilter = (change: Change, isNews: boolean) => boolean;

/**
 * Tells whether a primary was edited, in its spec or in an input, replaced, paused, resumed or marked for deletion since a reconcile saw it;
 * without a generation it always was.
 */
export function isEdit({ metadata }: KubernetesObject, seen: Seen | undefined, inputs?: string): boolean {
  const { uid, generation, deletionTimestamp } = metadata;
  if (seen === undefined || generation === undefined || seen.uid !== uid) return true;
  if (seen.isPaused !== isPaused(metadata) || seen.inputs !== inputs) return true;
  return generation > (seen.generation ?? 0) || (deletionTimestamp !== undefined && !seen.isDeleting);
}

/**
 * Creates the filter of a controller's primaries (JOSDK's ControllerEventSource and InternalEventFilters).
 *
 * Changes are compared with what the last reconcile saw instead of with the state before: an own write may have brought a foreign
 * change into the cache ahead of its event.
 */
export function createPrimaryFilter(options: PrimaryFilterOptions): PrimaryFilter {
  const { defaultFilters = true, generationAware = true, logger, name: controller } = options;
  const filters: EventFilters = (options.filters as EventFilters | undefined) ?? {};
  const passes = ({ kind, object, old }: Change): boolean => {
    if (filters.generic !== undefined && !synchronous(filters.generic(object))) return false;
    // What is marked for deletion waits for a reconcile, which removes the finalizer.
    const isMarked = object.metadata.deletionTimestamp !== undefined && old?.metadata.deletionTimestamp === undefined;
    if (isMarked || kind === "deleted") return true;
    if (kind === "added") return synchronous(filters.onAdd?.(object)) ?? true;
    return old === undefined || (synchronous(filters.onUpdate?.(object, old)) ?? true);
  };
  return (change, isNews) => {
    const { kind, key, object, owned = [] } = change;
    const isQuiet = kind === "updated" && defaultFilters && generationAware && !isNews;
    if (isQuiet && !options.isUndone({ object, owned })) return false;
    try {
      if (options.filters === undefined) return true;
      return userCalls.run({ what: "a filter of the controller", controller, primary: key }, () => passes(change));
    } catch (error) {
      // A reconcile too many does no harm; an event that is lost does.
      logger.error({ primary: key }, `a filter failed, and the event passes: ${messageOf(error)}`);
      return true;
    }
  };
}
