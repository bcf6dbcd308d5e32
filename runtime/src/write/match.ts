/**
 * Server-side-apply matching.
 *
 * Promises: `matches` is true only if applying `desired` now would change nothing. It may be falsely negative (one needless apply),
 * never falsely positive. What the manager owns, and the values there, have to be exactly what is desired: `managedFields` lists what
 * we applied, without what the server filled in or others manage. Quantities, defaults and empty values are compared as the API server
 * stores them.
 */
import type { JsonValue } from "../base/kubernetes-object.js";
import { isSameQuantity } from "../base/quantity.js";
import { keyOfListItem } from "./list-item.js";
import { isLeaf, valueKeyOf, type FieldNode } from "./owned-fields.js";
import type { SchemaNode } from "./schema-node.js";

/** Whether an object is as desired, or the first place where it is not. */
export type Verdict =
  | { readonly matches: true }
  | {
      readonly matches: false;
      /** In Kubernetes' notation, such as `spec.replicas`. */
      readonly path: string;
      readonly reason: string;
    };

type JsonObject = { [key: string]: JsonValue };

const MATCH: Verdict = { matches: true };

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

/** Compares what should be applied with a live object and what of it is owned; all are plain JSON. */
export function match(
  desired: JsonObject,
  live: JsonObject,
  options: { owned: FieldNode; schema: SchemaNode },
): Verdict {
  const { owned, schema } = options;
  const { metadata, ...rest } = desired;
  for (const name of UNOWNED_ROOT) delete rest[name];
  if (metadata !== undefined && isObject(metadata)) {
    const ownable = Object.entries(metadata).filter(([name]) => !UNOWNED_METADATA.has(name));
    if (ownable.length > 0) rest["metadata"] = Object.fromEntries(ownable);
  }
  return matchFields(rest, { live, owned, schema, path: "" });
}

interface Place {
  readonly live: JsonValue | undefined;
  readonly owned: FieldNode;
  readonly schema: SchemaNode;
  readonly path: string;
}

function matchValue(desired: JsonValue, place: Place): Verdict {
  const { schema, owned } = place;
  if (desired === null) return isLeaf(owned) && (place.live ?? null) === null ? MATCH : differs(place, desired);
  const { merge } = schema;
  if (merge === "listMap" && Array.isArray(desired)) return matchListMap(desired, place);
  if (merge === "listSet" && Array.isArray(desired)) return matchListSet(desired, place);
  const isFieldwise = merge === "struct" || merge === "map" || merge === "deduced";
  if (isFieldwise && isObject(desired) && Object.keys(desired).length > 0) return matchFields(desired, place);
  if (!isLeaf(owned)) return mismatch(place.path, "fields below it are owned that are not desired");
  // An empty object or list that we own and nobody took over: the server keeps it, or leaves it out.
  if (isFieldwise && isObject(desired)) return isObject(place.live ?? {}) ? MATCH : differs(place, desired);
  // The server leaves out what is empty; we own it, so nobody else has removed it.
  if ((place.live ?? null) === null && isEmpty(desired)) return MATCH;
  return isEqual(desired, place.live, schema) ? MATCH : differs(place, desired);
}

function matchFields(desired: JsonObject, { live, owned, schema, path }: Place): Verdict {
  if (live !== undefined && live !== null && !isObject(live)) return mismatch(path, "is not an object");
  // Keys of maps are owned themselves, fields of structs are not.
  const ownsKeys = schema.merge === "map" || schema.merge === "deduced";
  let found = 0;
  for (const name of Object.keys(desired)) {
    const value = desired[name];
    if (value === undefined) continue;
    const child = schema.property(name);
    const childPath = join(path, name);
    const childOwned = owned.fields.get(name);
    if (childOwned === undefined) {
      if (ownsNothing(value, child) && hasSameShape(value, live?.[name])) continue;
      return mismatch(childPath, "is not owned yet");
    }
    found++;
    if (ownsKeys && !childOwned.isMember) return mismatch(childPath, "is not owned yet");
    // A field of a struct that has fields itself is owned only if it was applied empty.
    if (!ownsKeys && childOwned.isMember && child.merge !== "leaf" && isObject(value) && Object.keys(value).length > 0)
      return mismatch(childPath, "was applied empty");
    const verdict = matchValue(value, { live: live?.[name], owned: childOwned, schema: child, path: childPath });
    if (!verdict.matches) return verdict;
  }
  if (owned.fields.size > found) {
    const extra = [...owned.fields.keys()].find((name) => desired[name] === undefined) ?? "";
    return mismatch(join(path, extra), "is owned but not desired any more");
  }
  if (owned.items.size + owned.values.size > 0) return mismatch(path, "is owned as a list");
  return MATCH;
}

// An empty list whose items are told apart owns nothing, nor does a struct of nothing else; they only have to be there.
function ownsNothing(value: JsonValue, schema: SchemaNode): boolean {
  if (Array.isArray(value)) return value.length === 0 && (schema.merge === "listMap" || schema.merge === "listSet");
  if (!isObject(value) || schema.merge !== "struct") return false;
  const fields = Object.entries(value);
  return fields.length > 0 && fields.every(([name, field]) => ownsNothing(field, schema.property(name)));
}

function hasSameShape(value: JsonValue, live: JsonValue | undefined): boolean {
  if (live === undefined) return false;
  if (!isObject(value)) return Array.isArray(live);
  return isObject(live) && Object.entries(value).every(([name, field]) => hasSameShape(field, live[name]));
}

function matchListMap(desired: JsonValue[], { live, owned, schema, path }: Place): Verdict {
  if (owned.fields.size + owned.values.size > 0) return mismatch(path, "is owned as something else");
  const liveItems = Array.isArray(live) ? live : [];
  const places = new Map<string, number>();
  liveItems.forEach((item, index) => places.set(keyOfListItem(item, schema), index));
  let lastPlace = -1;
  for (const [index, item] of desired.entries()) {
    const key = keyOfListItem(item, schema);
    const itemPath = `${path}[${index}]`;
    const itemOwned = owned.items.get(key);
    const place = places.get(key);
    if (itemOwned === undefined || !itemOwned.isMember) return mismatch(itemPath, "is not owned yet");
    if (place === undefined) return mismatch(itemPath, "is missing");
    // An apply puts our items into our order.
    if (place < lastPlace) return mismatch(itemPath, "stands in another order");
    lastPlace = place;
    const verdict = matchValue(item, {
      live: liveItems[place],
      owned: itemOwned,
      schema: schema.items,
      path: itemPath,
    });
    if (!verdict.matches) return verdict;
  }
  if (owned.items.size > desired.length) return mismatch(path, "has an owned item that is not desired any more");
  return MATCH;
}

function matchListSet(desired: JsonValue[], { live, owned, path }: Place): Verdict {
  if (owned.fields.size + owned.items.size > 0) return mismatch(path, "is owned as something else");
  const liveValues = Array.isArray(live) ? live.map(valueKeyOf) : [];
  let lastPlace = -1;
  for (const [index, value] of desired.entries()) {
    const key = valueKeyOf(value);
    if (!owned.values.has(key)) return mismatch(`${path}[${index}]`, "is not owned yet");
    const place = liveValues.indexOf(key);
    if (place === -1) return mismatch(`${path}[${index}]`, "is missing");
    if (place < lastPlace) return mismatch(`${path}[${index}]`, "stands in another order");
    lastPlace = place;
  }
  if (owned.values.size > desired.length) return mismatch(path, "has an owned value that is not desired any more");
  return MATCH;
}

/** Compares a leaf: a scalar, or a list or map that is owned as a whole. */
function isEqual(desired: JsonValue, live: JsonValue | undefined, schema: SchemaNode): boolean {
  if (desired === live) return true;
  if (live === undefined || live === null) return false;
  if (Array.isArray(desired)) {
    if (!Array.isArray(live) || live.length !== desired.length) return false;
    return desired.every((item, index) => isEqual(item, live[index], schema.items));
  }
  if (isObject(desired)) {
    if (!isObject(live)) return false;
    for (const [name, value] of Object.entries(desired))
      if (!isEqual(value, live[name], schema.property(name))) return false;
    return Object.entries(live).every(([name, value]) => name in desired || isFilledIn(value, schema.property(name)));
  }
  if (!schema.isQuantity || isObject(live) || Array.isArray(live)) return false;
  return isAmount(desired) && isAmount(live) && isSameQuantity(desired, live);
}

// A field inside an atomic value that we did not send can only come from the schema's default.
function isFilledIn(value: JsonValue, schema: SchemaNode): boolean {
  return schema.default !== undefined && isEqual(schema.default, value, schema);
}

function isEmpty(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (isObject(value)) return Object.keys(value).length === 0;
  return value === null || value === "" || value === 0 || value === false;
}

function isAmount(value: JsonValue): value is string | number {
  return typeof value === "string" || typeof value === "number";
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

function mismatch(path: string, reason: string): Verdict {
  return { matches: false, path, reason };
}

// Values are left out on purpose: they may be secret.
function differs({ path }: Place, _desired: JsonValue): Verdict {
  return mismatch(path, "differs");
}
