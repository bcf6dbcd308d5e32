// The merge of a server-side apply in the API server, before defaulting and validation (https://github.com/kubernetes-sigs/structured-merge-diff,
// merge/update.go).
import { type JsonObject, type JsonValue, isJsonObject } from "@gen-operator/schema";
import { type FieldNode, type ItemKey, type SchemaNode, isLeaf, keyOfListItem, valueKeyOf } from "./owned-fields.js";

/** The owners of a value that is merged. */
export interface MergedPlace {
  readonly schema: SchemaNode;
  /** The fields that the applying manager owned before. */
  readonly mine: FieldNode | undefined;
  /** The fields that each of the other managers owns. */
  readonly others: readonly FieldNode[];
}

type Value = JsonValue | undefined;

/** Returns the object after an apply of `desired`. Fields that only this manager owned and that it no longer applies are removed. */
export function mergeApplied(live: JsonObject, desired: JsonObject, place: MergedPlace): JsonObject {
  return mergeFields(live, desired, place);
}

function merge(live: Value, desired: Value, place: MergedPlace, isField: boolean): Value {
  if (desired === undefined) return pruned(live, place, isField);
  const { merge: kind } = place.schema;
  if (kind !== "leaf" && isJsonObject(live) && isJsonObject(desired)) return mergeFields(live, desired, place);
  const isKeyed = kind === "listMap" || kind === "listSet";
  if (isKeyed && Array.isArray(live) && Array.isArray(desired)) return mergeItems(live, desired, place);
  return desired;
}

function mergeFields(live: JsonObject, desired: JsonObject, place: MergedPlace): JsonObject {
  const { schema, mine, others } = place;
  const isStruct = schema.merge === "struct";
  const result: JsonObject = {};
  for (const name of new Set([...Object.keys(live), ...Object.keys(desired)])) {
    const child = {
      schema: schema.property(name),
      mine: mine?.fields.get(name),
      others: others.flatMap((other) => other.fields.get(name) ?? []),
    };
    const value = merge(live[name], desired[name], child, isStruct);
    if (value !== undefined) result[name] = value;
  }
  return result;
}

// A declared field is removed together with the last field below it. An entry of a map or an item of a list is removed if no other manager owns the
// entry itself, even if other managers own fields of it.
function pruned(live: Value, { schema, mine, others }: MergedPlace, isField: boolean): Value {
  if (mine === undefined || live === undefined) return live;
  const isShared = isField ? others.length > 0 : others.some(({ isMember }) => isMember);
  if (!isShared && (mine.isMember || isField)) return undefined;
  if (isLeaf(mine) || schema.merge === "leaf") return live;
  if (isJsonObject(live)) return mergeFields(live, {}, { schema, mine, others });
  return Array.isArray(live) ? mergeItems(live, [], { schema, mine, others }) : live;
}

function itemPlace({ schema, mine, others }: MergedPlace, key: ItemKey): MergedPlace {
  const nodeOf = (node: FieldNode | undefined) => node?.items.get(key) ?? node?.values.get(String(key));
  return { schema: schema.items, mine: nodeOf(mine), others: others.flatMap((other) => nodeOf(other) ?? []) };
}

// Shared items take the order of `desired`. An item of only one of the lists keeps its place before the next shared item.
function mergeItems(live: JsonValue[], desired: JsonValue[], place: MergedPlace): JsonValue[] {
  const keyed = (items: JsonValue[]) => items.map((item) => [keyOfItem(item, place.schema), item] as const);
  const [left, right] = [keyed(live), keyed(desired)];
  const [known, wanted] = [new Map(left), new Map(right)];
  const shared = right.flatMap(([key]) => (known.has(key) ? [key] : []));
  const result: JsonValue[] = [];
  const merged = new Set<ItemKey>();
  let [l, r, next] = [0, 0, 0];
  const emit = (key: ItemKey) => {
    const value = merge(known.get(key), wanted.get(key), itemPlace(place, key), false);
    if (value !== undefined) result.push(value);
    if (wanted.has(key)) merged.add(key);
    if (key === shared[next]) next++;
  };
  while (l < left.length || r < right.length) {
    const [leftKey, rightKey] = [left[l]?.[0], right[r]?.[0]];
    const isShared = leftKey !== undefined && wanted.has(leftKey);
    if (leftKey !== undefined && leftKey === rightKey) {
      emit(leftKey);
      l++;
      r++;
    } else if (isShared && rightKey !== undefined && next < shared.length && shared[next] !== leftKey) l++;
    else if (leftKey !== undefined && !isShared) {
      emit(leftKey);
      l++;
    } else {
      if (leftKey !== undefined && merged.has(leftKey)) l++;
      if (rightKey === undefined) continue;
      emit(rightKey);
      r++;
    }
  }
  return result;
}

function keyOfItem(item: JsonValue, schema: SchemaNode): ItemKey {
  return schema.merge === "listMap" ? keyOfListItem(item, schema) : valueKeyOf(item);
}
