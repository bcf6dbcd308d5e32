// Two fifths of an object are managed fields, of which only those of our controllers are kept. But for their times, the entries of other
// managers are the same for most objects of a kind, and ours the same as in the known state, so that few are scanned byte by byte.
import type { FieldManagers, ManagedWrite, OwnedFields } from "../base/decoded-resource.js";
import {
  endOfValue,
  firstMember,
  isEndOfObject,
  nextMember,
  skipSpace,
  startsWith,
  stringAt,
  valueOfMember,
} from "./json-scanner.js";

/** An entry of the managed fields. */
interface ManagedEntry extends OwnedFields {
  readonly bytes: Buffer;
  readonly isApplied: boolean;
  /** Where its time begins and ends, from the start of the entry; both 0 without one. */
  readonly timeStart: number;
  readonly timeEnd: number;
}

/** What the bytes of an object are, and what was owned of its last known state, or of another object of its kind. */
export interface ManagedFieldsSource {
  readonly encoding: "latin1" | "utf8";
  readonly before?: readonly OwnedFields[] | undefined;
}

const COMMA = 0x2c;
const QUOTE = 0x22;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACKET = 0x5d;

/** Reads what our controllers own of the objects of one kind. */
export class ManagedFieldsReader {
  /** The latest write of our controllers to the object that was read last; undefined if there is none. */
  latest: ManagedWrite | undefined;
  readonly #fieldManagers: FieldManagers;
  readonly #lastEntries: (ManagedEntry | undefined)[] = [];

  constructor(fieldManagers: FieldManagers) {
    this.#fieldManagers = fieldManagers;
  }

  /** Reads the array of managed fields that begins at `start`; returns what is owned, and the index behind the array. */
  read(
    bytes: Buffer,
    start: number,
    source: ManagedFieldsSource,
  ): { readonly owned: readonly OwnedFields[]; readonly end: number } {
    const owned: OwnedFields[] = [];
    let index = skipSpace(bytes, start + 1);
    for (let at = 0; bytes[index] !== CLOSE_BRACKET; at++) {
      const entry = this.#readEntry(bytes, { start: index, at }, source);
      const { fieldManager, subresource, apiVersion, fieldsV1, isApplied } = entry;
      const isOurs = this.#isOurs(fieldManager);
      if (isOurs && entry.timeStart > 0) this.#noteTime(fieldManager, stringAt(bytes, index + entry.timeStart));
      if (isApplied && (subresource === "" || subresource === "status") && isOurs)
        owned.push({ fieldManager, subresource, apiVersion, fieldsV1 });
      else if (subresource === "" && this.#fieldManagers.former?.has(fieldManager) === true)
        owned.push({ fieldManager, subresource, apiVersion: "", fieldsV1: "{}", isFormer: true });
      index = skipSpace(bytes, index + entry.bytes.length);
      if (bytes[index] === COMMA) index = skipSpace(bytes, index + 1);
    }
    return { owned: shareOwned(owned, source.before), end: index + 1 };
  }

  #readEntry(
    bytes: Buffer,
    { start, at }: { readonly start: number; readonly at: number },
    source: ManagedFieldsSource,
  ): ManagedEntry {
    const last = this.#lastEntries[at];
    if (last !== undefined && isSameButTime(bytes, start, last)) return last;
    const entry = scanEntry(bytes, start, source);
    // Ours names the owner of the object, so that it differs from one object to the next.
    const isOurs = this.#isOurs(entry.fieldManager);
    this.#lastEntries[at] = isOurs ? undefined : { ...entry, bytes: Buffer.from(entry.bytes) };
    return entry;
  }

  #noteTime(fieldManager: string, time: string): void {
    if (time > (this.latest?.time ?? "")) this.latest = { fieldManager, time };
  }

  #isOurs(fieldManager: string): boolean {
    for (const name of this.#fieldManagers) if (name === fieldManager) return true;
    return false;
  }
}

/** Returns what is owned with the entries of `before` that are equal, which are kept once. */
export function shareOwned(owned: readonly OwnedFields[], before: typeof owned = []): readonly OwnedFields[] {
  const shared = owned.map((entry) => before.find((fields) => isSame(fields, entry)) ?? entry);
  return shared.length === before.length && shared.every((fields, at) => fields === before[at]) ? before : shared;
}

// Takes over the time, so that one comparison tells.
function isSameButTime(bytes: Buffer, start: number, { bytes: last, timeStart, timeEnd }: ManagedEntry): boolean {
  const end = start + last.length;
  if (end > bytes.length) return false;
  for (let at = timeStart + 1; at < timeEnd - 1; at++) {
    if (bytes[start + at] === QUOTE) return false;
    last[at] = bytes[start + at]!;
  }
  return bytes.compare(last, 0, last.length, start, end) === 0;
}

function isSame(fields: OwnedFields, entry: OwnedFields): boolean {
  return (
    fields.fieldsV1 === entry.fieldsV1 &&
    fields.fieldManager === entry.fieldManager &&
    fields.subresource === entry.subresource &&
    fields.isFormer === entry.isFormer &&
    fields.apiVersion === entry.apiVersion
  );
}

function scanEntry(bytes: Buffer, start: number, { encoding, before }: ManagedFieldsSource): ManagedEntry {
  let fieldManager = "";
  let subresource = "";
  let apiVersion = "";
  let fieldsV1 = "{}";
  let isApplied = false;
  let timeStart = 0;
  let timeEnd = 0;
  let key = firstMember(bytes, start);
  while (!isEndOfObject(bytes, key)) {
    const value = valueOfMember(bytes, key);
    const isFields = startsWith(bytes, key, '"fieldsV1"');
    const isLikely = isFields && encoding === "latin1" && bytes[value] === OPEN_BRACE;
    const known = isLikely ? before?.find((fields) => hasFields(bytes, value, fields)) : undefined;
    const end = known === undefined ? endOfValue(bytes, value) : value + known.fieldsV1.length;
    if (isFields) fieldsV1 = known?.fieldsV1 ?? bytes.toString(encoding, value, end);
    else if (startsWith(bytes, key, '"manager"')) fieldManager = stringAt(bytes, value, end);
    else if (startsWith(bytes, key, '"operation"')) isApplied = startsWith(bytes, value, '"Apply"');
    else if (startsWith(bytes, key, '"apiVersion"')) apiVersion = stringAt(bytes, value, end);
    else if (startsWith(bytes, key, '"subresource"')) subresource = stringAt(bytes, value, end);
    else if (startsWith(bytes, key, '"time"')) [timeStart, timeEnd] = [value - start, end - start];
    key = nextMember(bytes, end);
  }
  const entry = bytes.subarray(start, key + 1);
  return { bytes: entry, fieldManager, isApplied, subresource, apiVersion, fieldsV1, timeStart, timeEnd };
}

// A text that equals a whole JSON object ends where that does. It may be no ASCII, as `hasText` requires.
function hasFields(bytes: Buffer, start: number, { fieldsV1 }: OwnedFields): boolean {
  return bytes.toString("latin1", start, start + fieldsV1.length) === fieldsV1;
}
