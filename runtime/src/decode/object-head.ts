// Scans the JSON bytes of an object before it is parsed: finds its metadata, their managed fields, and the fields that our controllers applied.
// It runs for every event of a watch, so it looks at each byte once and allocates next to nothing.
import type { ObjectRef } from "../base/kubernetes-object.js";
import {
  asciiString,
  endOfString,
  endOfValue,
  firstMember,
  isEndOfObject,
  isText,
  nextMember,
  skipSpace,
  startsWith,
  valueOfMember,
  walkElements,
  type Range,
} from "./json-scanner.js";

/** An entry of the managed fields that one of our controllers applied; its range is empty without fields. */
export interface OwnedRange {
  readonly fieldManager: string;
  readonly subresource: "" | "status";
  readonly apiVersion: string;
  readonly fieldsStart: number;
  readonly fieldsEnd: number;
}

/** An object up to the end of its metadata. */
export interface ObjectHead {
  readonly start: number;
  /** The index behind the metadata. */
  readonly end: number;
  /** Where the name and the namespace begin with their quotes; 0 if there is none. */
  readonly nameStart: number;
  readonly namespaceStart: number;
  /** The value of the resource version with its quotes; empty, and before the closing brace, if there is none. */
  readonly versionStart: number;
  readonly versionEnd: number;
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

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;

/** Scans the object that begins at `start` as far as its metadata go; undefined if it has none. */
export function scanHead(bytes: Buffer, start: number, search: HeadSearch): ObjectHead | undefined {
  let key = firstMember(bytes, start);
  while (!startsWith(bytes, key, '"metadata"')) {
    if (isEndOfObject(bytes, key)) return undefined;
    key = nextMember(bytes, endOfValue(bytes, valueOfMember(bytes, key)));
  }
  const metadata = valueOfMember(bytes, key);
  return bytes[metadata] === OPEN_BRACE ? new HeadScan(bytes, search).scan(start, metadata) : undefined;
}

/** One walk over the members of metadata. */
class HeadScan {
  readonly #bytes: Buffer;
  readonly #search: HeadSearch;
  readonly #owned: OwnedRange[] = [];
  #nameStart = 0;
  #namespaceStart = 0;
  #version: Range | undefined;
  #managed: Range | undefined;

  constructor(bytes: Buffer, search: HeadSearch) {
    this.#bytes = bytes;
    this.#search = search;
  }

  scan(start: number, metadata: number): ObjectHead {
    const bytes = this.#bytes;
    let key = firstMember(bytes, metadata);
    while (!isEndOfObject(bytes, key)) key = nextMember(bytes, this.#take(key, valueOfMember(bytes, key)));
    const end = key + 1;
    const { start: versionStart, end: versionEnd } = this.#version ?? { start: key, end: key };
    const { start: cutStart, end: cutEnd } =
      this.#managed === undefined ? { start: end, end } : withComma(bytes, this.#managed);
    // No spread of literals: what V8 makes for one is not freed before a full collection, and this is done for every event.
    const [nameStart, namespaceStart] = [this.#nameStart, this.#namespaceStart];
    return { start, end, nameStart, namespaceStart, versionStart, versionEnd, cutStart, cutEnd, owned: this.#owned };
  }

  /** Takes a member; returns the index behind its value. */
  #take(key: number, value: number): number {
    const bytes = this.#bytes;
    if (bytes[value] === OPEN_BRACKET && this.#managed === undefined && startsWith(bytes, key, '"managedFields"'))
      return this.#takeManaged(key, value);
    const end = endOfValue(bytes, value);
    // A value that is no string is no version and no name.
    const isString = bytes[value] === QUOTE;
    if (startsWith(bytes, key, '"resourceVersion"')) this.#version = isString ? { start: value, end } : undefined;
    else if (isString && startsWith(bytes, key, '"name"')) this.#nameStart = value;
    else if (isString && startsWith(bytes, key, '"namespace"')) this.#namespaceStart = value;
    return end;
  }

  #takeManaged(key: number, value: number): number {
    const [bytes, search] = [this.#bytes, this.#search];
    let entry = 0;
    const end = walkElements(bytes, value, (at) =>
      readEntry(bytes, at, { search, entry: entry++, found: this.#owned }),
    );
    this.#managed = { start: key, end };
    return end;
  }
}

/** Reads the name and the namespace of an object; undefined if it has no name. */
export function refIn(bytes: Buffer, { nameStart, namespaceStart }: ObjectHead): ObjectRef | undefined {
  if (nameStart === 0) return undefined;
  const namespace = namespaceStart === 0 ? undefined : asciiString(bytes, namespaceStart);
  return { name: asciiString(bytes, nameStart), namespace };
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
  return bytes.toString(encoding, start, cutStart) + bytes.toString(encoding, cutEnd, end);
}

// Adds the entry if one of our managers applied it to the object or its status; returns the index behind it.
function readEntry(
  bytes: Buffer,
  start: number,
  { search, entry, found }: { readonly search: HeadSearch; readonly entry: number; readonly found: OwnedRange[] },
): number {
  let fieldManager: string | undefined;
  let isApply = false;
  let [versionStart, versionEnd] = [0, 0];
  let subresource = "";
  let [fieldsStart, fieldsEnd] = [0, 0];
  let key = firstMember(bytes, start);
  while (!isEndOfObject(bytes, key)) {
    const value = valueOfMember(bytes, key);
    let end;
    if (startsWith(bytes, key, '"fieldsV1"')) {
      end = search.endOfFields?.(bytes, value, entry) ?? endOfValue(bytes, value);
      [fieldsStart, fieldsEnd] = [value, end];
    } else {
      end = endOfValue(bytes, value);
      if (startsWith(bytes, key, '"manager"')) fieldManager = managerAt(bytes, { start: value, end }, search);
      else if (startsWith(bytes, key, '"operation"')) isApply = startsWith(bytes, value, '"Apply"');
      else if (startsWith(bytes, key, '"apiVersion"')) [versionStart, versionEnd] = [value, end];
      else if (startsWith(bytes, key, '"subresource"')) subresource = stringAt(bytes, value, end);
    }
    key = nextMember(bytes, end);
  }
  if (fieldManager !== undefined && isApply && (subresource === "" || subresource === "status")) {
    const apiVersion = versionEnd === 0 ? "" : stringAt(bytes, versionStart, versionEnd);
    found.push({ fieldManager, subresource, apiVersion, fieldsStart, fieldsEnd });
  }
  return key + 1;
}

function managerAt(bytes: Buffer, range: Range, { fieldManagers }: HeadSearch): string | undefined {
  for (const name of fieldManagers) if (isText(bytes, range, quotedBytesOf(name))) return name;
  return undefined;
}

const BACKSLASH = 0x5c;

function stringAt(bytes: Buffer, start: number, end: number): string {
  for (let index = start + 1; index < end - 1; index++)
    if (bytes[index] === BACKSLASH || bytes[index]! >= 0x80)
      return JSON.parse(bytes.toString("utf8", start, end)) as string;
  return bytes.toString("latin1", start + 1, end - 1);
}

const quotedNames = new Map<string, string>();

// The bytes of a name in JSON, as characters; an operator has few field managers, and each is looked for in every object.
function quotedBytesOf(name: string): string {
  let quoted = quotedNames.get(name);
  if (quoted === undefined) quotedNames.set(name, (quoted = Buffer.from(JSON.stringify(name)).toString("latin1")));
  return quoted;
}

/** Returns the names of the members behind `index`, where one ends; none if the object ends there. */
export function namesBehind(bytes: Buffer, index: number): string[] {
  const names: string[] = [];
  for (let key = nextMember(bytes, index); !isEndOfObject(bytes, key);) {
    names.push(stringAt(bytes, key, endOfString(bytes, key)));
    key = nextMember(bytes, endOfValue(bytes, valueOfMember(bytes, key)));
  }
  return names;
}
