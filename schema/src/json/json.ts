// JSON values, and JSON text as Go programs read and write it: int64 values that a JavaScript number would round, and the escapes of Go's encoder.

export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;

/** A JSON object. The order of its members is preserved but not significant. */
export type JsonObject = { [key: string]: JsonValue };

/** Returns whether a value is a JSON object, which excludes null and arrays. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns an own member; inherited properties such as "constructor" are ignored. */
export function memberOf<Value>(
  object: { readonly [name: string]: Value } | undefined,
  name: string,
): Value | undefined {
  return object !== undefined && Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Sets an own member. Unlike an assignment, this also works for "__proto__". */
export function setMember(object: JsonObject, name: string, value: JsonValue): void {
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Returns a deep copy. */
export function clone<Value extends JsonValue>(value: Value): Value {
  return cloneAny(value) as Value;
}

function cloneAny(value: JsonValue): JsonValue {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(cloneAny);
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) setMember(copy, key, cloneAny(value[key] as JsonValue));
  return copy;
}

/** Tests two JSON values for deep equality. The order of members is ignored; undefined equals only undefined. */
export function deepEqual(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => deepEqual(item, b[index]));
  }
  if (Array.isArray(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  for (const key of keys) {
    if (!Object.hasOwn(b, key) || !deepEqual(a[key], b[key])) return false;
  }
  return true;
}

/**
 * The maximum nesting depth of values. kube-apiserver accepts 10,000 levels; recursive functions here are limited by the stack of the thread, which
 * suffices for about 2,500.
 */
export const MAX_DEPTH = 1_000;

/** Returns whether a value is nested deeper than MAX_DEPTH. */
export function isTooDeep(value: JsonValue): boolean {
  let level: JsonValue[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return true;
    level = level.flatMap(childrenOf);
  }
  return false;
}

function childrenOf(value: JsonValue): JsonValue[] {
  if (typeof value !== "object" || value === null) return [];
  const children = Array.isArray(value) ? value : Object.values(value);
  return children.filter((child) => typeof child === "object" && child !== null);
}

/** Returns the member `key` if it is an object. */
export function objectAt(object: JsonObject | undefined, key: string): JsonObject | undefined {
  const value = memberOf(object, key);
  return isJsonObject(value) ? value : undefined;
}

/** Returns the member `key` if it is an array. */
export function arrayAt(object: JsonObject | undefined, key: string): JsonValue[] | undefined {
  const value = memberOf(object, key);
  return Array.isArray(value) ? value : undefined;
}

/** Returns the member `key` if it is a string. */
export function stringAt(object: JsonObject | undefined, key: string): string | undefined {
  const value = memberOf(object, key);
  return typeof value === "string" ? value : undefined;
}

/** Compares strings by their UTF-8 bytes, as Go does. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const x = a.charCodeAt(index);
    const y = b.charCodeAt(index);
    if (x === y) continue;
    // Surrogates encode code points that are greater than all other UTF-16 code units.
    return codePointRank(x) - codePointRank(y);
  }
  return a.length - b.length;
}

function codePointRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

export type MemberPair = [name: string, value: JsonValue];

/** Returns the members of an object, sorted by name. */
export function sortedPairs(object: JsonObject): MemberPair[] {
  const names = Object.keys(object);
  if (names.length > 1) names.sort(compareText);
  return names.map((name) => [name, object[name] as JsonValue]);
}

/** Returns a deep copy with sorted members, in the order in which Go encodes maps. */
export function sortedJson(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sortedJson);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(sortedPairs(value).map(([name, member]) => [name, sortedJson(member)]));
}

/** Returns compact JSON with sorted members and the escapes of Go's encoder. */
export function canonicalJson(value: JsonValue): string {
  if (typeof value === "string") return jsonText(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const members = sortedPairs(value).map(([name, member]) => `${jsonText(name)}:${canonicalJson(member)}`);
  return `{${members.join(",")}}`;
}

const PLAIN = /^[\w ./:-]*$/;

function jsonText(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : goJson(text);
}

/** Returns compact JSON with the escapes of Go's encoder, which make it safe to embed in HTML and scripts. */
export function goJson(value: JsonValue): string {
  const escape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, escape);
}

const INT64_LIMIT = 2n ** 63n;
const LARGEST_INT64_NUMBER = 2 ** 63 - 1024;
// Tests whether tokens have to be inspected. 2^53 has 16 digits.
const MAY_BE_LONG = /(?:^|[:[,\s])-?\d{16}/;
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MARK = `\u0000${crypto.randomUUID()}:`;
const MARKED = new RegExp(`"${JSON.stringify(MARK).slice(1, -1).replaceAll("\\", "\\\\")}(-?\\d+)"`, "g");

/** Returns whether JSON may contain an integer that JavaScript rounds. There are false positives, but no false negatives. */
export function mayHaveLongIntegers(json: string): boolean {
  return MAY_BE_LONG.test(json);
}

/** Returns the value of an int64 token that JavaScript may round; undefined for any other token, including integers beyond int64. */
function longIntegerOf(token: string): bigint | undefined {
  if (token.length < 16 || !/^-?\d+$/.test(token) || Number.isSafeInteger(Number(token))) return undefined;
  // No int64 has more than 20 characters.
  if (token.length > 20) return undefined;
  const value = BigInt(token);
  return value >= -INT64_LIMIT && value < INT64_LIMIT ? value : undefined;
}

/** Parses JSON; an int64 that JavaScript may round is returned as a bigint. Throws a SyntaxError for invalid JSON. */
export function parseExactJson(json: string): unknown {
  if (!mayHaveLongIntegers(json)) return JSON.parse(json);
  // Parse the original text first, so that a syntax error does not refer to the marked one.
  const rounded: unknown = JSON.parse(json);
  let isLong = false;
  const marked = json.replace(TOKEN, (token) => {
    if (longIntegerOf(token) === undefined) return token;
    isLong = true;
    return JSON.stringify(MARK + token);
  });
  if (!isLong) return rounded;
  return JSON.parse(marked, (_key, value: unknown) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  );
}

/** Returns the nearest number within the range of int64. Number(2n ** 63n - 1n) is beyond it. */
export function int64Number(value: bigint): number {
  return Math.min(Math.max(Number(value), -LARGEST_INT64_NUMBER), LARGEST_INT64_NUMBER);
}

/** Encodes a value as JSON; bigints become integers of the same value. */
export function exactJson(value: unknown, indent?: number): string {
  return jsonWith(value, (each) => (typeof each === "bigint" ? each : undefined), indent);
}

/**
 * Encodes a value as JSON; bigints become integers of the same value, and integers beyond 2^53 the nearest int64. JavaScript would print 2^63 for the
 * largest int64, which is out of range.
 */
export function int64Json(value: unknown): string {
  return jsonWith(value, (each) =>
    typeof each === "bigint" ? each : typeof each === "number" ? nearestInt64(each) : undefined,
  );
}

function nearestInt64(number: number): bigint | undefined {
  return isRoundedInt64(number) ? bigintOf(number) : undefined;
}

/**
 * Returns whether a number may be a rounded int64. Beyond 2^53, several int64 values are rounded to the same number; the largest int64 is rounded to
 * 2^63.
 */
export function isRoundedInt64(value: number): boolean {
  return Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) <= 2 ** 63;
}

/** Converts an integer to a bigint. 2^63, to which JavaScript rounds the largest int64, is converted to that. */
export function bigintOf(integer: number): bigint {
  return integer === 2 ** 63 ? INT64_LIMIT - 1n : BigInt(integer);
}

function jsonWith(value: unknown, integerOf: (value: unknown) => bigint | undefined, indent?: number): string {
  let isLong = false;
  const text = JSON.stringify(
    value,
    (_key, each: unknown) => {
      const integer = integerOf(each);
      if (integer === undefined) return each;
      isLong = true;
      return `${MARK}${integer}`;
    },
    indent,
  );
  return isLong ? text.replace(MARKED, "$1") : text;
}
