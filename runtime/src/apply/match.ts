/**
 * Server-side apply matching: `matches` returns true only if applying `desired` would change nothing. False negatives are possible (an unnecessary
 * apply), false positives are not. The fields that the manager owns and their values must be exactly the desired ones, in the form in which the API
 * server stores them.
 */
import { isDeepStrictEqual } from "node:util";
import { type JsonObject, type JsonValue, isJsonObject, isSameQuantity, memberOf } from "@gen-operator/schema";
import type { KubernetesObject } from "../base/kubernetes-object.js";
import { type FieldNode, type ItemKey, LEAF, NOTHING, type SchemaNode, isLeaf, keyOfListItem } from "./owned-fields.js";

/** A field in which an object differs from the desired one. */
export interface Difference {
  /** In the notation of Kubernetes, such as `spec.replicas`. */
  readonly path: string;
  readonly reason: string;
}

/** The owned fields of an object and the schema of its kind. */
export interface MatchOptions {
  readonly owned: FieldNode;
  readonly schema: SchemaNode;
}

const DIFFERS = "differs";

// The identity of an object is never owned (stripped fields of server-side apply).
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

/** Returns whether an apply would change nothing. A desired object with values that only serialize to JSON, such as dates, does not match. */
export function matches(desired: JsonObject, live: JsonObject, options: MatchOptions): boolean {
  return findDifferences(desired, live, options).length === 0;
}

/** Returns at most `limit` differences that prevent an object from matching. Default: the first one */
export function findDifferences(
  desired: JsonObject,
  live: JsonObject,
  { owned, schema, limit = 1 }: MatchOptions & { readonly limit?: number },
): Difference[] {
  const search: Search = { found: [], path: [], limit };
  matchFields(search, desired, { live, owned, schema });
  return search.found;
}

// Comparisons return whether to continue the search. Values are never reported, because they may be secret.
interface Search {
  readonly found: Difference[];
  /** Field names and indexes from the root to the current value. */
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
  // An empty object or list that we own and no other manager has taken over: the API server either keeps or omits it.
  if (isFieldwise && isOfJson(desired)) return isJsonObject(live ?? {}) || report(search, DIFFERS);
  // The API server drops an empty value. We own it, so no other client has removed it.
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
    // Fast path: most fields are scalars that match.
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
  // A struct field that contains fields is itself owned only if it was applied empty.
  if (!ownsKeys && owned.isMember && child.merge !== "leaf" && isJsonObject(value) && Object.keys(value).length > 0)
    return report(search, "was applied empty");
  // We still own the field, so only the API server can have set the value.
  if (isLeaf(owned) && isFilledByServer(name, { desired: value, live, schema: child })) return true;
  return matchValue(search, value, { live, owned, schema: child });
}

// Items of a list of type map are matched by key, those of a set by value.
function matchItems(search: Search, desired: JsonValue[], { live, owned, schema }: Place): boolean {
  const isMap = schema.merge === "listMap";
  const mine: ReadonlyMap<ItemKey, FieldNode> = isMap ? owned.items : owned.values;
  if (owned.fields.size + owned.items.size + owned.values.size > mine.size)
    return report(search, "is owned as something else");
  const items = Array.isArray(live) ? live : [];
  let positions: Map<ItemKey, number> | undefined;
  const positionOf = (key: ItemKey, expected: number): number | undefined => {
    // Usually, the list contains exactly the desired items in the same order.
    const isLikely = isMap && positions === undefined && items.length === desired.length && expected < items.length;
    if (isLikely && keyOfListItem(items[expected], schema) === key) return expected;
    const keyed = () => items.map((item, position) => [keyOfListItem(item, schema), position] as const);
    // If a set has equal values, the first one counts, so it is set last.
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
      // An apply reorders our items to the desired order.
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

// An empty associative list owns nothing, nor does a struct that contains only such lists. They only have to exist.
function isThereUnowned(value: JsonValue, live: JsonValue | undefined, schema: SchemaNode): boolean {
  const { merge, dropsEmpty } = schema;
  if (merge === "listMap" || merge === "listSet")
    return Array.isArray(value) && value.length === 0 && (dropsEmpty || Array.isArray(live));
  if (!isJsonObject(value) || !isOfJson(value) || !isJsonObject(live) || merge !== "struct") return false;
  const fields = Object.entries(value);
  return fields.length > 0 && fields.every(([name, field]) => isThereUnowned(field, live[name], schema.property(name)));
}

// Reports the individual fields below a value if they can be owned separately.
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

/** Formats a path in the notation of Kubernetes. */
export function pathText(path: readonly (string | number)[]): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === "number") return `${text}[${step}]`;
    return text === "" ? step : `${text}.${step}`;
  }, "");
}

// Counters that the API server increments.
const COUNTERS: ReadonlySet<string> = new Set(["resourceVersion", "generation"]);

/** Returns whether two states of an object differ in a field that none of `owned` covers, so that another client changed it between them. */
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
  // An owner of a whole value covers all changes of it. An owner of an object with fields covers only the existence of the object.
  const hasFields = schema.merge !== "leaf" && (isJsonObject(before) || isJsonObject(after));
  if (!hasFields && owned.some((node) => node.isMember && isLeaf(node))) return true;
  if (Array.isArray(before ?? after) && Array.isArray(after ?? before))
    return isListCovered((before ?? []) as JsonValue[], (after ?? []) as JsonValue[], { owned, schema });
  const [left, right] = [before ?? {}, after ?? {}];
  if (!isJsonObject(left) || !isJsonObject(right)) return false;
  return Object.keys({ ...left, ...right }).every(
    (name) =>
      // Almost all fields are equal, and there may be thousands.
      left[name] === right[name] ||
      isCovered(left[name], right[name], {
        owned: owned.flatMap((node) => node.fields.get(name) ?? []),
        schema: schema.property(name),
      }),
  );
}

function isListCovered(before: JsonValue[], after: JsonValue[], { owned, schema }: Cover): boolean {
  const left = itemsByKey(before, schema);
  const right = itemsByKey(after, schema);
  return [...new Set([...left.keys(), ...right.keys()])].every((key) =>
    isCovered(left.get(key), right.get(key), {
      owned: owned.flatMap((node) => node.items.get(key) ?? node.values.get(String(key)) ?? []),
      schema: schema.items,
    }),
  );
}

function itemsByKey(list: JsonValue[], schema: SchemaNode): Map<ItemKey, JsonValue> {
  return new Map(list.map((item) => [keyOfListItem(item, schema), item]));
}

// Values in their JSON form, and whether the API server stores two of them identically although they are written differently.

/** Returns the JSON form of a value, or undefined if it has none. */
export function plainOf(value: unknown): JsonValue | undefined {
  const text = JSON.stringify(value) as string | undefined;
  return text === undefined ? undefined : (JSON.parse(text) as JsonValue);
}

/** Returns whether a value is plain JSON, so that serializing it neither drops nor converts anything. */
export function isPlain(value: unknown): boolean {
  if (value === null || typeof value === "string" || typeof value === "boolean" || Number.isFinite(value)) return true;
  const prototype: unknown = value === undefined ? undefined : Object.getPrototypeOf(value);
  if (prototype === Array.prototype) return Array.from(value as unknown[]).every(isPlain);
  return prototype === Object.prototype && Object.values(value as object).every(isPlain);
}

/** Compares a leaf: a scalar, or a list or map that is owned as a whole. */
export function isSameValue(desired: JsonValue, live: JsonValue | undefined, schema: SchemaNode): boolean {
  if (desired === live) return true;
  if (live === undefined || live === null) return false;
  if (Array.isArray(desired) && Array.isArray(live))
    return live.length === desired.length && desired.every((item, at) => isSameValue(item, live[at], schema.items));
  if (isJsonObject(desired) && isJsonObject(live)) return isSameObject(desired, live, schema);
  return isSameScalar(desired, live, schema);
}

/** Returns whether the API server stores two scalars identically: times, quantities and bytes can be written in several ways. */
export function isSameScalar(desired: JsonValue, live: JsonValue, schema: SchemaNode): boolean {
  if (desired === live) return true;
  const areTexts = typeof desired === "string" && typeof live === "string";
  if (schema.isTime) return areTexts && isSameTime(desired, live);
  if (schema.isBytes) return areTexts && isSameBytes(desired, live);
  return schema.isQuantity && isSameQuantity(desired, live);
}

// Go ignores line breaks in base64, which the `base64` command and YAML insert.
function isSameBytes(desired: string, live: string): boolean {
  const text = desired.replace(/[\r\n]/g, "");
  const isBase64 = text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
  return isBase64 && Buffer.from(text, "base64").equals(Buffer.from(live, "base64"));
}

// https://kubernetes.io/docs/concepts/services-networking/service/, https://kubernetes.io/docs/concepts/storage/persistent-volumes/
const ALLOCATED: ReadonlySet<string> = new Set([
  ...["clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"],
  ...["volumeName", "nodeName", "serviceAccountName"],
]);

/**
 * Returns whether a field is empty in the desired object and set by the API server: an address or port that it allocates and keeps, or a default. Go
 * cannot distinguish an empty value from an absent one.
 */
export function isFilledByServer(
  name: string,
  { desired, live, schema }: { desired: JsonValue; live: JsonValue | undefined; schema: SchemaNode },
): boolean {
  if (!schema.dropsEmpty || !isEmptyValue(desired) || typeof live !== typeof desired) return false;
  return ALLOCATED.has(name) || (schema.default !== undefined && isSameValue(schema.default, live, schema));
}

function isSameObject(desired: JsonObject, live: JsonObject, schema: SchemaNode): boolean {
  if (!isOfJson(desired)) return false;
  for (const [name, value] of Object.entries(desired)) {
    const child = schema.property(name);
    if (!isSameValue(value, live[name], child) && !isLeftOut(value, live[name], child)) return false;
  }
  return Object.keys(live).every(
    (name) => Object.hasOwn(desired, name) || isFilledIn(live[name]!, schema.property(name)),
  );
}

// Inside an atomic value, the API server omits empty fields that Go cannot distinguish from absent ones, or sets their default.
function isLeftOut(value: JsonValue, live: JsonValue | undefined, schema: SchemaNode): boolean {
  if (!schema.dropsEmpty || !isEmptyValue(value)) return false;
  return (live ?? null) === null || (schema.default !== undefined && isSameValue(schema.default, live, schema));
}

// A field inside an atomic value that we did not send is a default of the schema, or an explicit null.
function isFilledIn(value: JsonValue, schema: SchemaNode): boolean {
  if (value === null && schema.isBuiltin) return true;
  return schema.default !== undefined && isSameValue(schema.default, value, schema);
}

/** Returns whether Go omits a value: zero, empty or null (`omitempty`). */
export function isEmptyValue(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (isJsonObject(value)) return Object.keys(value).length === 0 && isOfJson(value);
  return value === null || value === "" || value === 0 || value === false;
}

/** Returns whether an object serializes to JSON without a `toJSON` method. */
function isOfJson(object: JsonObject): boolean {
  const prototype: unknown = Object.getPrototypeOf(object);
  // Almost all objects are plain and cannot inherit a toJSON method.
  return prototype === Object.prototype || typeof object["toJSON"] !== "function";
}

// https://www.rfc-editor.org/rfc/rfc3339#section-5.6, as parsed by Go
const TIMESTAMP = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:[.,](\d+))?(Z|[+-]\d{2}:\d{2})$/;

/** Returns whether the API server stores a time as `live`: in UTC, in seconds for a Time, in microseconds for a MicroTime. */
export function isSameTime(desired: string, live: string): boolean {
  const [wanted, stored] = [TIMESTAMP.exec(desired), TIMESTAMP.exec(live)];
  if (wanted === null || stored === null || secondsOf(wanted) !== secondsOf(stored)) return false;
  // The API server rejects a MicroTime that does not have six fractional digits.
  return stored[2] === undefined || wanted[2] === stored[2];
}

function secondsOf([, local, , zone]: RegExpExecArray): number {
  return Date.parse(`${local}${zone}`);
}
