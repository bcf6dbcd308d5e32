// The comparison of JOSDK's generic matcher. Additions in live are not told from values that are no longer desired.
import { isDeepStrictEqual } from "node:util";
import { isJsonObject, type JsonObject, type JsonValue } from "@gen-operator/schema";
import { isEmptyValue, isFilledByServer, isSameScalar } from "./json-value.js";
import { pathText, type Difference } from "./match.js";
import type { SchemaNode } from "./schema-node.js";

/** The search for moved items takes time and memory for all pairs of items. Longer lists count as different, which costs one write. */
const MOST_PAIRS = 1_000_000;

type Value = JsonValue | undefined;

/** How strictly values are compared. */
export interface AdditiveOptions {
  readonly schema: SchemaNode;
  readonly isStrict?: boolean;
  /** Whether empty desired values may be absent in live: the API server omits empty fields of built-in kinds. */
  readonly mayLackEmpty?: boolean;
}

/** Tells whether live contains everything that is desired. */
export function includes(desired: Value, live: Value, options: AdditiveOptions): boolean {
  if (isAbsent(desired)) return isAbsent(live) || options.isStrict !== true;
  if (isAbsent(live)) return options.mayLackEmpty === true && mayBeLackedEmpty(desired, options.schema);
  if (desired === live) return true;
  if (isJsonObject(desired) && isJsonObject(live))
    return membersOf(desired, live, options).every((name) =>
      includesMember(name, [desired[name], live[name]], { ...options, schema: options.schema.property(name) }),
    );
  if (Array.isArray(desired) && Array.isArray(live)) return includesItems(desired, live, options);
  return isSameScalar(desired, live, options.schema);
}

function includesMember(name: string, [desired, live]: [Value, Value], options: AdditiveOptions): boolean {
  if (includes(desired, live, options)) return true;
  return desired !== undefined && isFilledByServer(name, { desired, live, schema: options.schema });
}

/** Finds the paths, below `path`, where live lacks a desired value. */
export function findMissing(
  desired: Value,
  live: Value,
  { path, ...options }: AdditiveOptions & { readonly path: readonly (string | number)[] },
): Difference[] {
  if (includes(desired, live, options)) return [];
  const below = (name: string | number, schema: SchemaNode) => ({ ...options, schema, path: [...path, name] });
  const { schema } = options;
  let inside: Difference[] = [];
  if (Array.isArray(desired) && Array.isArray(live) && desired.length === live.length)
    inside = desired.flatMap((item, index) => findMissing(item, live[index], below(index, schema.items)));
  else if (isJsonObject(desired) && isJsonObject(live))
    inside = membersOf(desired, live, options).flatMap((name) =>
      includesMember(name, [desired[name], live[name]], { ...options, schema: schema.property(name) })
        ? []
        : findMissing(desired[name], live[name], below(name, schema.property(name))),
    );
  // Lists may differ as a whole though their items, one by one, do not.
  return inside.length > 0 ? inside : [{ path: pathText(path), reason: isAbsent(live) ? "is missing" : "differs" }];
}

function membersOf(desired: JsonObject, live: JsonObject, { isStrict }: AdditiveOptions): string[] {
  return Object.keys(isStrict === true ? { ...desired, ...live } : desired);
}

// Walks along the longest common subsequence. Items between two of its items are compared in pairs; live items without a partner were added.
function includesItems(desired: JsonValue[], live: JsonValue[], options: AdditiveOptions): boolean {
  const inner = { ...options, schema: options.schema.items };
  if (options.isStrict === true)
    return desired.length === live.length && desired.every((item, index) => includes(item, live[index], inner));
  let start = 0;
  while (start < desired.length && isDeepStrictEqual(desired[start], live[start])) start++;
  const most = Math.min(desired.length, live.length) - start;
  let end = 0;
  while (end < most && isDeepStrictEqual(desired.at(-1 - end), live.at(-1 - end))) end++;
  if (start + end === desired.length) return true;
  // The first item of the common end stays: it ends the pairs of items before it.
  const [wanted, known] = [desired, live].map((list) => list.slice(start, list.length - Math.max(end - 1, 0)));
  const [a, b] = [wanted!.map(textOf), known!.map(textOf)];
  const common = commonSubsequence(a, b);
  if (common === undefined) return false;
  let [at, liveAt] = [0, 0];
  for (const item of common) {
    while (a[at] !== item) {
      if (b[liveAt] === item || !includes(wanted![at], known![liveAt], inner)) return false;
      at++;
      liveAt++;
    }
    while (b[liveAt] !== item) liveAt++;
    at++;
    liveAt++;
  }
  return wanted!.slice(at).every((item, index) => includes(item, known![liveAt + index], inner));
}

/** Returns an item as a text; equal items have equal texts. */
function textOf(item: JsonValue): string {
  return JSON.stringify(item, (_, value: JsonValue) =>
    isJsonObject(value) ? Object.fromEntries(Object.entries(value).sort(([x], [y]) => (x < y ? -1 : 1))) : value,
  );
}

/** Returns the longest common subsequence; `undefined` if there are too many pairs of items that both lists have. */
function commonSubsequence(all: readonly string[], others: readonly string[]): string[] | undefined {
  // An item that only one list has is in no common subsequence.
  const [inAll, inOthers] = [new Set(all), new Set(others)];
  const a = all.filter((item) => inOthers.has(item));
  const b = others.filter((item) => inAll.has(item));
  if (a.length * b.length > MOST_PAIRS) return undefined;
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * width + j] =
        a[i] === b[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!);
  const common: string[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;)
    if (a[i] === b[j]) {
      common.push(a[i]!);
      i++;
      j++;
    } else if (lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!) i++;
    else j++;
  return common;
}

function isAbsent(value: Value): value is null | undefined {
  return value === undefined || value === null;
}

// A struct is kept although it is empty: `emptyDir: {}` says which source a volume has.
function mayBeLackedEmpty(desired: JsonValue, schema: SchemaNode): boolean {
  if (schema.isStruct) return false;
  return isEmpty(desired) || (schema.dropsEmpty && isEmptyValue(desired));
}

function isEmpty(value: JsonValue): boolean {
  return Array.isArray(value) ? value.length === 0 : isJsonObject(value) && Object.keys(value).length === 0;
}
