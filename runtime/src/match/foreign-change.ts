import { isDeepStrictEqual } from "node:util";
import { isJsonObject, type JsonObject, type JsonValue } from "@gen-operator/schema";
import type { KubernetesObject } from "../base/kubernetes-object.js";
import { isLeaf, keyOfListItem, type FieldNode, type ItemKey } from "./owned-fields.js";
import type { SchemaNode } from "./schema-node.js";

// The API server sets these fields on every write.
const COUNTERS: ReadonlySet<string> = new Set(["resourceVersion", "generation"]);

/** Tells whether two states of an object differ in a field that none of `owned` covers: then somebody else changed it between them. */
export function hasForeignChange(before: KubernetesObject, after: KubernetesObject, cover: Cover): boolean {
  return !isCovered(withoutCounters(before), withoutCounters(after), cover);
}

function withoutCounters(object: KubernetesObject): JsonObject {
  const metadata = Object.fromEntries(Object.entries(object.metadata).filter(([name]) => !COUNTERS.has(name)));
  return { ...object, metadata } as unknown as JsonObject;
}

interface Cover {
  readonly owned: readonly FieldNode[];
  readonly schema: SchemaNode;
}

type Value = JsonValue | undefined;

function isCovered(before: Value, after: Value, { owned, schema }: Cover): boolean {
  if (before === after) return true;
  if (owned.length === 0) return isDeepStrictEqual(before, after);
  // An owner of a whole value covers all changes of it. An owner of an object with fields covers only that the object exists.
  const hasFields = schema.merge !== "leaf" && (isJsonObject(before) || isJsonObject(after));
  if (!hasFields && owned.some((node) => node.isMember && isLeaf(node))) return true;
  if (Array.isArray(before ?? after) && Array.isArray(after ?? before))
    return isListCovered((before ?? []) as JsonValue[], (after ?? []) as JsonValue[], { owned, schema });
  const [left, right] = [before ?? {}, after ?? {}];
  if (!isJsonObject(left) || !isJsonObject(right)) return false;
  return Object.keys({ ...left, ...right }).every(
    (name) =>
      // Nearly all members are equal, and there may be thousands.
      left[name] === right[name] ||
      isCovered(left[name], right[name], {
        owned: owned.flatMap((node) => node.fields.get(name) ?? []),
        schema: schema.property(name),
      }),
  );
}

function isListCovered(before: JsonValue[], after: JsonValue[], { owned, schema }: Cover): boolean {
  const left = byKey(before, schema);
  const right = byKey(after, schema);
  return [...new Set([...left.keys(), ...right.keys()])].every((key) =>
    isCovered(left.get(key), right.get(key), {
      owned: owned.flatMap((node) => node.items.get(key) ?? node.values.get(String(key)) ?? []),
      schema: schema.items,
    }),
  );
}

function byKey(list: JsonValue[], schema: SchemaNode): Map<ItemKey, JsonValue> {
  return new Map(list.map((item) => [keyOfListItem(item, schema), item]));
}
