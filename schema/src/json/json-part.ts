import { isJsonObject, memberOf, type JsonObject, type JsonValue } from "./json.js";

export { clone, deepEqual, isJsonObject as isObject, memberOf, setMember } from "./json.js";
export type { JsonObject, JsonValue };

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
  if (PLAIN.test(text)) return `"${text}"`;
  const escape = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(text).replace(/[<>&\u2028\u2029]/g, escape);
}
