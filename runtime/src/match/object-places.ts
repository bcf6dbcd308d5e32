// The places of an object that server-side apply tells apart, beside what is desired there.
import { isJsonObject, type JsonValue } from "@gen-operator/schema";
import type { FieldPath } from "./field-set.js";
import { keyOfListItem } from "./owned-fields.js";
import type { SchemaNode } from "./schema-node.js";

/** The way from the root of an object: names and indexes. */
export type Path = readonly (string | number)[];

/** A member of an object, or an item of a list. */
export interface Place {
  readonly name: string | number;
  readonly value: JsonValue;
  /** Undefined if it is not stated. */
  readonly desired: JsonValue | undefined;
  readonly schema: SchemaNode;
  readonly path: Path;
  /** The same way as `metadata.managedFields` writes it. */
  readonly fields: FieldPath;
  /** Whether it is a key by which its item is told apart. */
  readonly isKey: boolean;
  /** Of an item: the names of its keys. */
  readonly itemKeys?: readonly string[];
}

/** Returns the place of a whole object. */
export function rootPlace(value: JsonValue, desired: JsonValue, schema: SchemaNode): Place {
  return { name: "", value, desired, schema, path: [], fields: [], isKey: false };
}

// What names the object, or is written in another way.
const NO_CONTENT: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata", "status"]);

/**
 * Tells whether a member is never removed because a guess says so: replicas belong to whoever scales, a member of the metadata of a pod template
 * restarts its pods, and the keys of an item name it.
 */
export function isProtected({ name, path, isKey }: Place): boolean {
  return (
    name === "replicas" || isKey || path.includes("metadata") || (path.length === 1 && NO_CONTENT.has(String(name)))
  );
}

/** Returns the places from the root along a path, as far as it leads. */
export function placesOn(steps: Path, root: Place): Place[] {
  const places = [root];
  for (const step of steps) {
    const next = childrenOf(places.at(-1)!).find(({ name }) => name === step);
    if (next === undefined) break;
    places.push(next);
  }
  return places;
}

/** Returns the members below a place that are not stated, the nearest first. */
export function unstatedBelow(place: Place): Place[] {
  const found: Place[] = [];
  for (let level = [place]; level.length > 0;) {
    const children = level.flatMap(childrenOf);
    found.push(...children.filter(({ desired }) => desired === undefined));
    level = children.filter(({ desired }) => desired !== undefined);
  }
  return found;
}

/** Returns the members and items of a place that are told apart. */
export function childrenOf({ value, desired, schema, path, fields, itemKeys }: Place): Place[] {
  if (schema.merge === "leaf") return [];
  if (isJsonObject(value)) {
    const stated = isJsonObject(desired) ? desired : {};
    return Object.entries(value).map(([key, child]) => ({
      ...{ name: key, value: child, desired: stated[key], schema: schema.property(key) },
      ...{ path: [...path, key], fields: [...fields, `f:${key}`], isKey: itemKeys?.includes(key) === true },
    }));
  }
  const isKeyed = schema.merge === "listMap" || schema.merge === "listSet";
  if (!isKeyed || !Array.isArray(value)) return [];
  const items = Array.isArray(desired) ? desired : [];
  const stated = new Map(items.map((item) => [keyOfListItem(item, schema), item]));
  return value.map((item, index) => ({
    ...{ name: index, value: item, desired: stated.get(keyOfListItem(item, schema)), schema: schema.items },
    ...{ path: [...path, index], fields: [...fields, elementOf(item, schema)], isKey: false },
    itemKeys: schema.listMapKeys,
  }));
}

export function elementOf(item: JsonValue, { merge, listMapKeys, items }: SchemaNode): string {
  if (merge !== "listMap" || !isJsonObject(item)) return `v:${JSON.stringify(item)}`;
  const keys = listMapKeys.map((name) => [name, item[name] ?? items.property(name).default]);
  return `k:${JSON.stringify(Object.fromEntries(keys))}`;
}
