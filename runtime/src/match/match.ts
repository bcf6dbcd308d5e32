/**
 * Server-side-apply matching: `matches` is true only if applying `desired` now would change nothing. It may be falsely negative (one needless
 * apply), never falsely positive. What the manager owns, and the values there, have to be exactly what is desired, as the API server stores it.
 */
import { isJsonObject, memberOf, type JsonObject, type JsonValue } from "@gen-operator/schema";
import { isLeaf, keyOfListItem, LEAF, NOTHING, type FieldNode, type ItemKey } from "./owned-fields.js";
import { isEmptyValue, isFilledByServer, isOfJson, isSameValue } from "./json-value.js";
import type { SchemaNode } from "./schema-node.js";

/** A place where an object is not as desired. */
export interface Difference {
  /** In Kubernetes' notation, such as `spec.replicas`. */
  readonly path: string;
  readonly reason: string;
}

/** What of an object is owned, and the schema of its kind. */
export interface MatchOptions {
  readonly owned: FieldNode;
  readonly schema: SchemaNode;
}

const DIFFERS = "differs";

// The identity of an object is never owned (kubernetes-api-semantics: stripped fields).
const UNOWNED_ROOT: ReadonlySet<string> = new Set(["apiVersion", "kind"]);
const UNOWNED_METADATA: ReadonlySet<string> = new Set([
  "name",
  "namespace",
  "creationTimestamp",
  "selfLink",
  "uid",
  "clusterName",
  "generation",
  "managedFields",
  "resourceVersion",
]);

/** Tells whether an apply would change nothing. What is desired may be what JSON is made of (dates), and then it does not match. */
export function matches(desired: JsonObject, live: JsonObject, options: MatchOptions): boolean {
  return findDifferences(desired, live, options).length === 0;
}

/** Finds the places, `limit` at most, that keep an object from matching. Default: the first one */
export function findDifferences(
  desired: JsonObject,
  live: JsonObject,
  { owned, schema, limit = 1 }: MatchOptions & { readonly limit?: number },
): Difference[] {
  const search: Search = { found: [], path: [], limit };
  matchFields(search, desired, { live, owned, schema });
  return search.found;
}

// A comparison tells whether to look further. Values are never reported: they may be secret.
interface Search {
  readonly found: Difference[];
  /** Names and indexes from the root to the place that is looked at. */
  readonly path: (string | number)[];
  readonly limit: number;
}

interface Place extends MatchOptions {
  readonly live: JsonValue | undefined;
}

function matchValue(search: Search, desired: JsonValue, place: Place): boolean {
  const { schema, owned, live } = place;
  const { merge } = schema;
  if (desired === null) return (isLeaf(owned) && (live ?? null) === null) || report(search, DIFFERS);
  if ((merge === "listMap" || merge === "listSet") && Array.isArray(desired)) return matchItems(search, desired, place);
  const isFieldwise = (merge === "struct" || merge === "map" || merge === "deduced") && isJsonObject(desired);
  if (isFieldwise && Object.keys(desired).length > 0) return matchFields(search, desired, place);
  if (!isLeaf(owned)) return report(search, "fields below it are owned that are not desired");
  // An empty object or list that we own and nobody took over: the server keeps it, or leaves it out.
  if (isFieldwise && isOfJson(desired)) return isJsonObject(live ?? {}) || report(search, DIFFERS);
  // The server leaves out what is empty; we own it, so nobody else has removed it.
  if ((live ?? null) === null && isEmptyValue(desired)) return true;
  return isSameValue(desired, live, schema) || report(search, DIFFERS);
}

function matchFields(search: Search, desired: JsonObject, { live, owned, schema }: Place): boolean {
  if (live !== undefined && live !== null && !isJsonObject(live)) return report(search, "is not an object");
  if (!isOfJson(desired)) return report(search, DIFFERS);
  const { path } = search;
  const isMetadata = path.length === 1 && path[0] === "metadata";
  const unowned = path.length === 0 ? UNOWNED_ROOT : isMetadata ? UNOWNED_METADATA : undefined;
  let found = 0;
  for (const name of Object.keys(desired)) {
    const value = desired[name];
    if (value === undefined || unowned?.has(name) === true) continue;
    const childOwned = owned.fields.get(name);
    const childLive = live?.[name];
    if (childOwned !== undefined) found++;
    // Nearly everything is a scalar that is as it should be.
    if (childOwned === LEAF && value === childLive && typeof value !== "object") continue;
    path.push(name);
    const goesOn = matchField(search, value, { live: childLive, owned: childOwned, schema, name });
    path.pop();
    if (!goesOn) return false;
  }
  if (owned.fields.size > found)
    for (const name of owned.fields.keys())
      if (memberOf(desired, name) === undefined && !report(search, "is owned but not desired any more", name))
        return false;
  return owned.items.size + owned.values.size === 0 || report(search, "is owned as a list");
}

function matchField(
  search: Search,
  value: JsonValue,
  { live, owned, schema, name }: Omit<Place, "owned"> & { owned: FieldNode | undefined; name: string },
): boolean {
  const child = schema.property(name);
  if (owned === undefined) {
    const isMetadata = search.path.length === 1 && name === "metadata" && isJsonObject(value);
    if (isMetadata && Object.keys(value).every((each) => UNOWNED_METADATA.has(each))) return true;
    return isThereUnowned(value, live, child) || reportUnowned(search, value, { live, schema: child });
  }
  // Keys of maps are owned themselves, fields of structs are not.
  const ownsKeys = schema.merge === "map" || schema.merge === "deduced";
  if (ownsKeys && !owned.isMember) return report(search, "is not owned yet");
  // A field of a struct that has fields itself is owned only if it was applied empty.
  if (!ownsKeys && owned.isMember && child.merge !== "leaf" && isJsonObject(value) && Object.keys(value).length > 0)
    return report(search, "was applied empty");
  // It is still ours, so nobody but the API server has put a value there.
  if (isLeaf(owned) && isFilledByServer(name, { desired: value, live, schema: child })) return true;
  return matchValue(search, value, { live, owned, schema: child });
}

// Items of a list of type map by their keys, those of a set by their values.
function matchItems(search: Search, desired: JsonValue[], { live, owned, schema }: Place): boolean {
  const isMap = schema.merge === "listMap";
  const mine: ReadonlyMap<ItemKey, FieldNode> = isMap ? owned.items : owned.values;
  if (owned.fields.size + owned.items.size + owned.values.size > mine.size)
    return report(search, "is owned as something else");
  const items = Array.isArray(live) ? live : [];
  let positions: Map<ItemKey, number> | undefined;
  const positionOf = (key: ItemKey, expected: number): number | undefined => {
    // Mostly the list has the items that are looked for and no others, in their order.
    const isLikely = isMap && positions === undefined && items.length === desired.length && expected < items.length;
    if (isLikely && keyOfListItem(items[expected], schema) === key) return expected;
    const keyed = () => items.map((item, position) => [keyOfListItem(item, schema), position] as const);
    // Of equal values of a set the first counts, which is set last.
    return (positions ??= new Map(isMap ? keyed() : keyed().reverse())).get(key);
  };
  const { path } = search;
  let lastPosition = -1;
  for (const [index, item] of desired.entries()) {
    const key = keyOfListItem(item, schema);
    const position = positionOf(key, lastPosition + 1);
    path.push(index);
    const goesOn = matchItem(search, item, {
      owned: mine.get(key),
      live: position === undefined ? undefined : items[position],
      schema,
      // An apply puts our items into our order.
      isInOrder: position === undefined || position > lastPosition,
    });
    path.pop();
    if (!goesOn) return false;
    lastPosition = position ?? lastPosition;
  }
  return mine.size <= desired.length || report(search, "has an owned item that is not desired any more");
}

function matchItem(
  search: Search,
  item: JsonValue,
  { owned, live, schema, isInOrder }: Omit<Place, "owned"> & { owned: FieldNode | undefined; isInOrder: boolean },
): boolean {
  if (owned === undefined || !owned.isMember) return report(search, "is not owned yet");
  if (live === undefined) return report(search, "is missing");
  if (!isInOrder) return report(search, "stands in another order, or twice");
  return schema.merge === "listSet" || matchValue(search, item, { live, owned, schema: schema.items });
}

// An empty list whose items are told apart owns nothing, nor does a struct of nothing else; they only have to be there.
function isThereUnowned(value: JsonValue, live: JsonValue | undefined, schema: SchemaNode): boolean {
  const { merge, dropsEmpty } = schema;
  if (merge === "listMap" || merge === "listSet")
    return Array.isArray(value) && value.length === 0 && (dropsEmpty || Array.isArray(live));
  if (!isJsonObject(value) || !isOfJson(value) || !isJsonObject(live) || merge !== "struct") return false;
  const fields = Object.entries(value);
  return fields.length > 0 && fields.every(([name, field]) => isThereUnowned(field, live[name], schema.property(name)));
}

// Names what is below it, where that is told apart.
function reportUnowned(search: Search, value: JsonValue, { live, schema }: Omit<Place, "owned">): boolean {
  const before = search.found.length;
  const isFieldwise = schema.merge !== "leaf" && isJsonObject(value) && isJsonObject(live ?? {});
  const goesOn = !isFieldwise || matchFields(search, value, { live, owned: NOTHING, schema });
  return search.found.length > before ? goesOn : report(search, "is not owned yet");
}

function report({ found, path, limit }: Search, reason: string, last?: string | number): boolean {
  found.push({ path: pathText(last === undefined ? path : [...path, last]), reason });
  return found.length < limit;
}

/** Writes a path in Kubernetes' notation. */
export function pathText(path: readonly (string | number)[]): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === "number") return `${text}[${step}]`;
    return text === "" ? step : `${text}.${step}`;
  }, "");
}
