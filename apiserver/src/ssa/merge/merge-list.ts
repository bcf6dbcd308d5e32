// The order of a merged list is part of the API: it decides what people and controllers see after an apply.
import type { JsonValue } from "../../json.js";
import type { PathElement } from "../fields/path-element.js";
import type { ListShape } from "../types/type-model.js";
import { elementOfItem } from "./list-item.js";

/** A set or keyed list as it is and as it is wanted. */
export interface ListMerge {
  readonly list: ListShape;
  readonly live: readonly JsonValue[];
  /** Holds no element twice. */
  readonly config: readonly JsonValue[];
  /** Merges an item of the configuration into its live twin. */
  readonly mergeItem: (live: JsonValue | undefined, config: JsonValue) => JsonValue | undefined;
}

/**
 * Merges two lists.
 *
 * Shared and new items come in the configuration's order; items that only live has keep their place before the next shared one.
 */
export function mergeItems({ list, live, config, mergeItem }: ListMerge): JsonValue[] {
  const liveElements = live.map((item, index) => elementOfItem(list, item, index));
  const configElements = config.map((item, index) => elementOfItem(list, item, index));
  const liveItems = uniqueItems(liveElements, live);
  const configured = new Set(configElements);
  const shared = configElements.filter((element) => liveItems.has(element));
  const emitted = new Set<PathElement>();
  const merged: JsonValue[] = [];
  let next = 0;
  let left = 0;
  let right = 0;

  const emit = (item: JsonValue | undefined): void => {
    if (item !== undefined) merged.push(item);
  };
  const emitConfigured = (): void => {
    const element = configElements[right] as PathElement;
    emitted.add(element);
    emit(mergeItem(liveItems.get(element), config[right] as JsonValue));
    right++;
  };

  while (left < live.length || right < config.length) {
    const ours = liveElements[left];
    const theirs = configElements[right];
    if (ours !== undefined && theirs !== undefined) {
      if (ours === theirs) {
        emitConfigured();
        left++;
        next++;
        continue;
      }
      // A shared item whose turn has not come: the configuration decides where it goes.
      if (configured.has(ours) && next < shared.length && shared[next] !== ours) {
        left++;
        continue;
      }
    }
    if (ours !== undefined) {
      if (!configured.has(ours)) {
        emit(live[left]);
        left++;
        continue;
      }
      if (emitted.has(ours)) left++;
    }
    if (theirs !== undefined) {
      emitConfigured();
      if (shared[next] === theirs) next++;
    }
  }
  return merged;
}

/** Maps elements to items; an element that occurs twice has no item, so that nothing is merged into either. */
function uniqueItems(
  elements: readonly PathElement[],
  items: readonly JsonValue[],
): Map<PathElement, JsonValue | undefined> {
  const unique = new Map<PathElement, JsonValue | undefined>();
  elements.forEach((element, index) => unique.set(element, unique.has(element) ? undefined : items[index]));
  return unique;
}
