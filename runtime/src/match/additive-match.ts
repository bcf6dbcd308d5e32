// Whether desired JSON is in live JSON: what live has besides is taken for what the server or others added. This is JOSDK's generic
// matcher, a comparison of desired and live in which nothing but additions is found. It cannot tell a value that somebody added from one
// that is not desired any more.
import { isDeepStrictEqual } from "node:util";
import type { JsonValue } from "../base/kubernetes-object.js";
import { isSameQuantity } from "../base/quantity.js";
import { pathText, type Difference } from "./match.js";
import type { SchemaNode } from "./schema-node.js";

type JsonObject = { [key: string]: JsonValue };

/** How strictly values are compared. */
export interface AdditiveOptions {
  readonly schema: SchemaNode;
  /** Whether live may have nothing besides. */
  readonly isStrict?: boolean;
  /** Whether what is empty in desired may be absent in live, as the server leaves out what is empty in built-in kinds. */
  readonly mayLackEmpty?: boolean;
}

/** Tells whether live has all that is desired. */
export function includes(
  desired: JsonValue | undefined,
  live: JsonValue | undefined,
  options: AdditiveOptions,
): boolean {
  if (isAbsent(desired)) return isAbsent(live) || options.isStrict !== true;
  if (isAbsent(live)) return options.mayLackEmpty === true && isEmpty(desired);
  if (desired === live) return true;
  if (isObject(desired)) return isObject(live) && includesMembers(desired, live, options);
  if (Array.isArray(desired)) return Array.isArray(live) && includesItems(desired, live, options);
  const isAmount = (value: JsonValue) => typeof value === "string" || typeof value === "number";
  return options.schema.isQuantity && isAmount(desired) && isAmount(live) && isSameQuantity(desired, live);
}

/** Finds the places where live lacks what is desired; they are below `path`. */
export function findMissing(
  desired: JsonValue | undefined,
  live: JsonValue | undefined,
  { path, ...options }: AdditiveOptions & { readonly path: readonly (string | number)[] },
): Difference[] {
  if (includes(desired, live, options)) return [];
  const inside = findMissingInside(desired, live, { ...options, path });
  // Lists may differ as a whole though their items, one by one, do not.
  return inside.length > 0 ? inside : [{ path: pathText(path), reason: isAbsent(live) ? "is missing" : "differs" }];
}

function findMissingInside(
  desired: JsonValue | undefined,
  live: JsonValue | undefined,
  { path, schema, ...options }: AdditiveOptions & { readonly path: readonly (string | number)[] },
): Difference[] {
  if (Array.isArray(desired))
    return Array.isArray(live) && desired.length === live.length
      ? desired.flatMap((item, index) =>
          findMissing(item, live[index], { ...options, schema: schema.items, path: [...path, index] }),
        )
      : [];
  if (!isObject(desired ?? null) || !isObject(live ?? null)) return [];
  const names = Object.keys(options.isStrict === true ? { ...(desired as object), ...(live as object) } : desired!);
  return names.flatMap((name) =>
    findMissing((desired as JsonObject)[name], (live as JsonObject)[name], {
      ...options,
      schema: schema.property(name),
      path: [...path, name],
    }),
  );
}

function includesMembers(desired: JsonObject, live: JsonObject, options: AdditiveOptions): boolean {
  const names = options.isStrict === true ? { ...desired, ...live } : desired;
  return Object.keys(names).every((name) =>
    includes(desired[name], live[name], { ...options, schema: options.schema.property(name) }),
  );
}

// Walks along the longest common subsequence: an item in front of it that only live has was added; items of both that are not in it
// stand for each other and are compared.
function includesItems(desired: JsonValue[], live: JsonValue[], options: AdditiveOptions): boolean {
  const inner = { ...options, schema: options.schema.items };
  if (options.isStrict === true)
    return desired.length === live.length && desired.every((item, index) => includes(item, live[index], inner));
  const common = commonSubsequence(desired, live);
  let at = 0;
  let liveAt = 0;
  for (const item of common) {
    while (!isDeepStrictEqual(desired[at], item)) {
      if (isDeepStrictEqual(live[liveAt], item) || !includes(desired[at], live[liveAt], inner)) return false;
      at++;
      liveAt++;
    }
    while (!isDeepStrictEqual(live[liveAt], item)) liveAt++;
    at++;
    liveAt++;
  }
  return desired.slice(at).every((item, index) => includes(item, live[liveAt + index], inner));
}

function commonSubsequence(a: readonly JsonValue[], b: readonly JsonValue[]): JsonValue[] {
  const width = b.length + 1;
  const lengths = new Array<number>((a.length + 1) * width).fill(0);
  const isSame = a.map((item) => b.map((other) => isDeepStrictEqual(item, other)));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * width + j] = isSame[i]![j]
        ? lengths[(i + 1) * width + j + 1]! + 1
        : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!);
  const common: JsonValue[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;)
    if (isSame[i]![j]) {
      common.push(a[i]!);
      i++;
      j++;
    } else if (lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!) i++;
    else j++;
  return common;
}

function isAbsent(value: JsonValue | undefined): value is null | undefined {
  return value === undefined || value === null;
}

function isEmpty(value: JsonValue): boolean {
  return Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
