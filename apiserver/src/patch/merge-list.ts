import { goFormat, goTypeOf } from "../errors/go-format.js";
import { plainError } from "../errors/status-error.js";
import { clone, deepEqual, isObject, memberOf, type JsonObject, type JsonValue } from "../json.js";

/** How a list of a schema is merged. */
export interface ListMerge {
  /** False if the patch's list takes the place of the live one. */
  merges: boolean;
  /** The member that tells items apart; undefined for lists of scalars. */
  mergeKey: string | undefined;
  mergeItems: (live: JsonObject, patch: JsonObject) => JsonObject;
}

/** Merges the items of a patch into a live list: by key, or as a set of scalars. */
export function mergeList(live: JsonValue[], patch: JsonValue[], merge: ListMerge): JsonValue[] {
  if (live.length === 0 && patch.length === 0) return [];
  const [first = null] = [...live, ...patch];
  const hasObjects = isObject(first);
  if ([...live, ...patch].some((item) => goTypeOf(item) !== goTypeOf(first))) {
    throw plainError(`list element types are not identical: [${goFormat(live)} ${goFormat(patch)}]`);
  }
  const { mergeKey } = merge;
  if (!hasObjects || mergeKey === undefined) {
    return orderedBy({ items: [...new Set([...live, ...patch])], order: patch, live, mergeKey });
  }
  const { kept, items } = applyListDirectives(live as JsonObject[], patch as JsonObject[], mergeKey);
  const merged: JsonObject[] = clone(kept);
  // Nothing can be ordered beside an item without a key.
  if (items.length > 0) for (const item of kept) keyOrThrow(item, mergeKey);
  for (const item of items) {
    const key = keyOrThrow(item, mergeKey);
    const index = merged.findIndex((candidate) => deepEqual(memberOf(candidate, mergeKey), key));
    if (index === -1) merged.push(clone(item));
    else merged[index] = merge.mergeItems(merged[index] as JsonObject, item);
  }
  return orderedBy({ items: merged, order: items, live: kept, mergeKey });
}

function applyListDirectives(live: JsonObject[], patch: JsonObject[], mergeKey: string) {
  let kept = live;
  const items: JsonObject[] = [];
  for (const item of patch) {
    const directive = memberOf(item, "$patch");
    if (directive === undefined) items.push(item);
    else if (directive === "delete") {
      const key = keyOrThrow(item, mergeKey);
      kept = kept.filter((candidate) => !deepEqual(memberOf(candidate, mergeKey), key));
    } else if (directive === "merge") {
      throw plainError("merging lists cannot yet be specified in the patch");
    } else if (directive !== "replace") {
      throw plainError(`unknown patch type: ${goFormat(directive)} in map: ${goFormat(item)}`);
    }
  }
  const isReplaced = patch.some((item) => memberOf(item, "$patch") === "replace");
  return { kept: isReplaced ? [] : kept, items };
}

function keyOrThrow(item: JsonObject, mergeKey: string): JsonValue {
  const key = memberOf(item, mergeKey);
  if (key !== undefined) return key;
  throw plainError(`map: ${goFormat(item)} does not contain declared merge key: ${mergeKey}`);
}

interface OrderedList {
  items: JsonValue[];
  /** The order that the patch asks for: its own list or its $setElementOrder. */
  order: JsonValue[];
  live: JsonValue[];
  mergeKey: string | undefined;
}

/**
 * Orders a merged list: the items that the patch orders stand in that order, the others in live order. A live-only item comes
 * first only if the next ordered item is live too and stood behind it; so new items precede all live-only ones.
 */
export function orderedBy({ items, order, live, mergeKey }: OrderedList): JsonValue[] {
  const rankIn = (list: JsonValue[], item: JsonValue) => list.findIndex((other) => isSame(other, item, mergeKey));
  const byRank = (list: JsonValue[]) => (a: JsonValue, b: JsonValue) => rankIn(list, a) - rankIn(list, b);
  const asked = items.filter((item) => rankIn(order, item) >= 0).sort(byRank(order));
  const others = items.filter((item) => rankIn(order, item) < 0).sort(byRank(live));
  const result: JsonValue[] = [];
  while (asked.length > 0 && others.length > 0) {
    const [next, other] = [rankIn(live, asked[0] as JsonValue), rankIn(live, others[0] as JsonValue)];
    result.push((other >= 0 && other < next ? others : asked).shift() as JsonValue);
  }
  return [...result, ...asked, ...others];
}

function isSame(a: JsonValue, b: JsonValue, mergeKey: string | undefined): boolean {
  if (mergeKey === undefined || !isObject(a) || !isObject(b)) return deepEqual(a, b);
  return deepEqual(memberOf(a, mergeKey), memberOf(b, mergeKey));
}

/** Throws unless the items that a patch gives stand in its $setElementOrder, in the same order. */
export function checkOrderList(lists: { given: JsonValue[]; order: JsonValue[]; mergeKey: string | undefined }): void {
  const { given, order, mergeKey } = lists;
  const items = given.filter((item) => !isObject(item) || memberOf(item, "$patch") === undefined);
  let position = 0;
  for (const item of items) {
    while (position < order.length && !isSame(order[position] as JsonValue, item, mergeKey)) position++;
    if (position++ < order.length) continue;
    throw plainError(
      `The order in patch list:\n${goFormat(given)}\n doesn't match $setElementOrder list:\n${goFormat(order)}\n`,
    );
  }
}
