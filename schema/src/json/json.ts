// JSON values, and JSON text as Go programs read and write it: int64 values that a JavaScript number would round, and the escapes of Go's
// encoder.

/** Any value that JSON can hold. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;

/** A JSON object; the order of its members is kept but never means anything. */
export type JsonObject = { [key: string]: JsonValue };

/** Tells whether a value is a JSON object: neither null nor a list. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the object's own member; names such as "constructor" are never inherited. */
export function memberOf<Value>(
  object: { readonly [name: string]: Value } | undefined,
  name: string,
): Value | undefined {
  return object !== undefined && Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Sets the object's own member, whatever its name; a plain assignment to "__proto__" would not. */
export function setMember(object: JsonObject, name: string, value: JsonValue): void {
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Copies a value deeply. */
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

/** Tells whether both are the same JSON value; the order of members does not matter, an absent value equals only itself. */
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
 * How deeply values may be nested. A kube-apiserver takes 10,000 levels; what walks over a value here needs the stack of the thread, which holds
 * about 2,500.
 */
export const MAX_DEPTH = 1_000;

/** Tells whether a value is nested too deeply. */
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

/** Gives the member `key` if it is an object. */
export function objectAt(object: JsonObject | undefined, key: string): JsonObject | undefined {
  const value = memberOf(object, key);
  return isJsonObject(value) ? value : undefined;
}

/** Gives the member `key` if it is an array. */
export function arrayAt(object: JsonObject | undefined, key: string): JsonValue[] | undefined {
  const value = memberOf(object, key);
  return Array.isArray(value) ? value : undefined;
}

/** Gives the member `key` if it is a string. */
export function stringAt(object: JsonObject | undefined, key: string): string | undefined {
  const value = memberOf(object, key);
  return typeof value === "string" ? value : undefined;
}

/** Orders strings by their UTF-8 bytes, as Go does. */
export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const x = a.charCodeAt(index);
    const y = b.charCodeAt(index);
    if (x === y) continue;
    // Surrogates stand for code points above every other UTF-16 unit.
    return codePointRank(x) - codePointRank(y);
  }
  return a.length - b.length;
}

function codePointRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

/** A member of an object. */
export type MemberPair = [name: string, value: JsonValue];

/** Lists the members of an object, sorted by name. */
export function sortedPairs(object: JsonObject): MemberPair[] {
  const names = Object.keys(object);
  if (names.length > 1) names.sort(compareText);
  return names.map((name) => [name, object[name] as JsonValue]);
}

/** Copies a value with the members of all its objects in order, as Go writes a map. */
export function sortedJson(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sortedJson);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(sortedPairs(value).map(([name, member]) => [name, sortedJson(member)]));
}

/** Writes a value as compact JSON with sorted members, with the escapes of Go's encoder. */
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

/** Writes a value as compact JSON with the escapes of Go's encoder, which are safe in HTML and in scripts. */
export function goJson(value: JsonValue): string {
  const escape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, escape);
}

const INT64_LIMIT = 2n ** 63n;
const LARGEST_INT64_NUMBER = 2 ** 63 - 1024;
// Whether a look at each token is needed: 2^53 has 16 digits.
const MAY_BE_LONG = /(?:^|[:[,\s])-?\d{16}/;
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MARK = `\u0000${crypto.randomUUID()}:`;
const MARKED = new RegExp(`"${JSON.stringify(MARK).slice(1, -1).replaceAll("\\", "\\\\")}(-?\\d+)"`, "g");

/** Tells whether a JSON text may have an integer that JavaScript rounds; false is certain. */
export function mayHaveLongIntegers(json: string): boolean {
  return MAY_BE_LONG.test(json);
}

/** Returns the int64 that a token of JSON is if JavaScript may round it; undefined for every other token, an integer beyond int64 included. */
function longIntegerOf(token: string): bigint | undefined {
  if (token.length < 16 || !/^-?\d+$/.test(token) || Number.isSafeInteger(Number(token))) return undefined;
  // No int64 has more digits.
  if (token.length > 20) return undefined;
  const value = BigInt(token);
  return value >= -INT64_LIMIT && value < INT64_LIMIT ? value : undefined;
}

/** Parses JSON; an int64 that JavaScript may round is a bigint. Throws a SyntaxError for what is no JSON. */
export function parseExactJson(json: string): unknown {
  if (!mayHaveLongIntegers(json)) return JSON.parse(json);
  // What is no JSON is reported as it is, without marks.
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

/** Returns the number within int64 that is nearest to an int64: the nearest of all may be beyond, as that of 2^63 - 1 is. */
export function int64Number(value: bigint): number {
  return Math.min(Math.max(Number(value), -LARGEST_INT64_NUMBER), LARGEST_INT64_NUMBER);
}

/** Returns a value as JSON; each bigint in it becomes the very integer. */
export function exactJson(value: unknown, indent?: number): string {
  return jsonWith(value, (each) => (typeof each === "bigint" ? each : undefined), indent);
}

/**
 * Returns a value as JSON in which a bigint is the very integer, and a number beyond 2^53 the int64 that is nearest to it: what JavaScript prints
 * for 2^63, to which it rounds the largest int64, is none.
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
 * Tells whether a number may be the rounding of an int64, of which several are rounded to one number beyond 2^53. The largest int64 is rounded
 * to 2^63.
 */
export function isRoundedInt64(value: number): boolean {
  return Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) <= 2 ** 63;
}

/** Returns an integer as a bigint, and for 2^63, to which JavaScript rounds the largest int64, that one. */
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
