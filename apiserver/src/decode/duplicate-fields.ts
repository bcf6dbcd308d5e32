import { quote } from "../errors/quote.js";
import type { JsonValue } from "../json.js";
import { endOfString } from "./check-limits.js";

interface Level {
  path: string;
  /** The names seen so far; undefined in a list. */
  names: Set<string> | undefined;
  index: number;
}

/**
 * Returns the paths of members that occur twice in their object, such as `data.a`; a parsed value no longer shows them.
 *
 * The text must be valid JSON.
 */
export function duplicateFields(json: string): string[] {
  const duplicates: string[] = [];
  const levels: Level[] = [];
  let level: Level | undefined;
  let path = "";
  for (let at = 0; at < json.length; at++) {
    switch (json.charCodeAt(at)) {
      case 0x22: {
        const end = endOfString(json, at);
        if (level?.names !== undefined && isName(json, end)) {
          const name = textOf(json.slice(at, end + 1));
          path = level.path === "" ? name : `${level.path}.${name}`;
          if (level.names.has(name)) duplicates.push(path);
          level.names.add(name);
        }
        at = end;
        break;
      }
      case 0x7b: // {
      case 0x5b: // [
        if (level !== undefined && level.names === undefined) path = `${level.path}[${level.index}]`;
        level = { path, names: json[at] === "{" ? new Set() : undefined, index: 0 };
        levels.push(level);
        break;
      case 0x7d: // }
      case 0x5d: // ]
        levels.pop();
        level = levels.at(-1);
        break;
      case 0x2c: // ,
        if (level !== undefined) level.index++;
        break;
    }
  }
  return duplicates;
}

function isName(json: string, end: number): boolean {
  let at = end + 1;
  while (json.charCodeAt(at) <= 0x20) at++;
  return json[at] === ":";
}

function textOf(quoted: string): string {
  return quoted.includes("\\") ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);
}

// The end of a name, or what looks like one in a text.
const NAME_END = /"[\t\n\r ]*:/g;

/** False if a text surely says no member twice: it has no more names than what was parsed of it has members. */
export function mayHaveDuplicates(json: string, memberCount: number): boolean {
  NAME_END.lastIndex = 0;
  let names = 0;
  while (NAME_END.test(json)) names++;
  return names !== memberCount;
}

/** Counts the members of all objects in a value. */
export function memberCountOf(value: JsonValue): number {
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) for (const item of value) count += memberCountOf(item);
  else
    for (const key in value) {
      count += 1 + memberCountOf(value[key] as JsonValue);
    }
  return count;
}

/** Returns how strict decoding reports repeated members. */
export function duplicateFieldTexts(json: string): string[] {
  return duplicateFields(json).map((path) => `duplicate field ${quote(path)}`);
}
