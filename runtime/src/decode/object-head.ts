// Runs for every event of a watch, so it looks at each byte once and allocates next to nothing.
import type { OwnedFields } from "../base/decoded-resource.js";
import {
  endOfString,
  endOfValue,
  findMember,
  firstMember,
  isEndOfObject,
  nextMember,
  skipSpace,
  startsWith,
  valueOfMember,
  type Range,
} from "./json-scanner.js";

/** An entry of the managed fields that one of our controllers applied; its range is empty without fields. */
export interface OwnedRange extends Omit<OwnedFields, "fieldsV1"> {
  readonly fieldsStart: number;
  readonly fieldsEnd: number;
}

/** An object up to the end of its metadata. */
export interface ObjectHead {
  readonly end: number;
  /** The managed fields with one of the commas around them; empty if there are none. */
  readonly cutStart: number;
  readonly cutEnd: number;
  readonly owned: readonly OwnedRange[];
}

/** Settings of a scan. */
export interface HeadSearch {
  readonly fieldManagers: Iterable<string>;
  /** Returns the end of the fields that begin at `start`, in the entry of the managed fields at this index. Default: scans them. */
  endOfFields?(bytes: Buffer, start: number, entry: number): number;
}

const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Scans the object that begins at `start` as far as its metadata go; undefined if it has none. */
export function scanHead(bytes: Buffer, start: number, search: HeadSearch): ObjectHead | undefined {
  const metadata = findMember(bytes, start, '"metadata"');
  if (metadata === undefined || bytes[metadata] !== OPEN_BRACE) return undefined;
  const owned: OwnedRange[] = [];
  let managed: Range | undefined;
  let key = firstMember(bytes, metadata);
  while (!isEndOfObject(bytes, key)) {
    const value = valueOfMember(bytes, key);
    let end: number;
    if (bytes[value] === OPEN_BRACKET && managed === undefined && startsWith(bytes, key, '"managedFields"')) {
      end = readManagedFields(bytes, value, { search, found: owned });
      managed = { start: key, end };
    } else end = endOfValue(bytes, value);
    key = nextMember(bytes, end);
  }
  const end = key + 1;
  const { start: cutStart, end: cutEnd } = managed === undefined ? { start: end, end } : withComma(bytes, managed);
  return { end, cutStart, cutEnd, owned };
}

// The cut takes the comma in front of the member, or else the one behind.
function withComma(bytes: Buffer, { start, end }: Range): Range {
  let before = start - 1;
  while (bytes[before]! <= 0x20) before--;
  if (bytes[before] === COMMA) return { start: before, end };
  const behind = skipSpace(bytes, end);
  return bytes[behind] === COMMA ? { start, end: behind + 1 } : { start, end };
}

/** Returns the text of a range without the managed fields of a head, if they are in it. */
export function textWithoutCut(
  bytes: Buffer,
  { cutStart, cutEnd }: ObjectHead,
  { start, end, encoding }: Range & { readonly encoding: "latin1" | "utf8" },
): string {
  if (cutStart === cutEnd || cutStart >= end || cutEnd <= start) return bytes.toString(encoding, start, end);
  if (cutEnd === end) return bytes.toString(encoding, start, cutStart);
  const length = cutStart - start + end - cutEnd;
  if (length > SHORT_TEXT.length)
    return bytes.toString(encoding, start, cutStart) + bytes.toString(encoding, cutEnd, end);
  bytes.copy(SHORT_TEXT, 0, start, cutStart);
  bytes.copy(SHORT_TEXT, cutStart - start, cutEnd, end);
  return SHORT_TEXT.toString(encoding, 0, length);
}

// A text of one piece is parsed faster than one that was joined.
const SHORT_TEXT = Buffer.alloc(16_384);

function readManagedFields(bytes: Buffer, start: number, reading: Parameters<typeof readEntry>[2]): number {
  let index = skipSpace(bytes, start + 1);
  for (let entry = 0; bytes[index] !== CLOSE_BRACKET; entry++) {
    index = skipSpace(bytes, readEntry(bytes, { start: index, entry }, reading));
    if (bytes[index] === COMMA) index = skipSpace(bytes, index + 1);
  }
  return index + 1;
}

// Adds the entry if one of our managers applied it to the object or its status; returns the index behind it.
function readEntry(
  bytes: Buffer,
  { start, entry }: { readonly start: number; readonly entry: number },
  { search, found }: { readonly search: HeadSearch; readonly found: OwnedRange[] },
): number {
  let fieldManager: string | undefined;
  let isApply = false;
  let versionStart = 0;
  let versionEnd = 0;
  let subresource = "";
  let fieldsStart = 0;
  let fieldsEnd = 0;
  let key = firstMember(bytes, start);
  while (!isEndOfObject(bytes, key)) {
    const value = valueOfMember(bytes, key);
    let end;
    if (startsWith(bytes, key, '"fieldsV1"')) {
      end = search.endOfFields?.(bytes, value, entry) ?? endOfValue(bytes, value);
      fieldsStart = value;
      fieldsEnd = end;
    } else {
      end = endOfValue(bytes, value);
      if (startsWith(bytes, key, '"manager"')) fieldManager = managerAt(bytes, value, search);
      else if (startsWith(bytes, key, '"operation"')) isApply = startsWith(bytes, value, '"Apply"');
      else if (startsWith(bytes, key, '"apiVersion"')) {
        versionStart = value;
        versionEnd = end;
      } else if (startsWith(bytes, key, '"subresource"')) subresource = stringAt(bytes, value, end);
    }
    key = nextMember(bytes, end);
  }
  if (fieldManager !== undefined && isApply && (subresource === "" || subresource === "status")) {
    const apiVersion = versionEnd === 0 ? "" : stringAt(bytes, versionStart, versionEnd);
    found.push({ fieldManager, subresource, apiVersion, fieldsStart, fieldsEnd });
  }
  return key + 1;
}

function managerAt(bytes: Buffer, start: number, { fieldManagers }: HeadSearch): string | undefined {
  for (const name of fieldManagers) if (startsWith(bytes, start, quotedBytesOf(name))) return name;
  return undefined;
}

const BACKSLASH = 0x5c;

function stringAt(bytes: Buffer, start: number, end: number): string {
  for (let index = start + 1; index < end - 1; index++)
    if (bytes[index] === BACKSLASH || bytes[index]! >= 0x80)
      return JSON.parse(bytes.toString("utf8", start, end)) as string;
  return bytes.toString("latin1", start + 1, end - 1);
}

const NO_NAMES: readonly string[] = [];

const quotedNames = new Map<string, string>();

// The bytes of a name in JSON, as characters; an operator has few field managers, and its kinds few members.
function quotedBytesOf(name: string): string {
  let quoted = quotedNames.get(name);
  if (quoted === undefined) quotedNames.set(name, (quoted = Buffer.from(JSON.stringify(name)).toString("latin1")));
  return quoted;
}

/** Returns the names of the members behind `index`, where one ends: the very array `likely` if it has them all. */
export function namesBehind(bytes: Buffer, index: number, likely: readonly string[] = NO_NAMES): readonly string[] {
  let names: string[] | undefined;
  let count = 0;
  for (let key = nextMember(bytes, index); !isEndOfObject(bytes, key); count++) {
    const expected = likely[count];
    const isLikely = names === undefined && expected !== undefined && startsWith(bytes, key, quotedBytesOf(expected));
    if (!isLikely) (names ??= likely.slice(0, count)).push(stringAt(bytes, key, endOfString(bytes, key)));
    key = nextMember(bytes, endOfValue(bytes, valueOfMember(bytes, key)));
  }
  return names ?? (count === likely.length ? likely : likely.slice(0, count));
}
