import {
  type DecodedResource,
  type FieldManagers,
  type KubernetesObject,
  type ManagedWrite,
  type ObjectKey,
  type OwnedFields,
  keyOf,
} from "../base/kubernetes-object.js";
import {
  JSON_BYTES,
  type Range,
  endOfValue,
  findMember,
  firstMember,
  isEndOfObject,
  nextMember,
  skipSpace,
  startsWith,
  stringAt,
  valueOfMember,
} from "./json-scanner.js";

const { QUOTE, COMMA, OPEN_BRACE, OPEN_BRACKET, CLOSE_BRACKET } = JSON_BYTES;

/** Reads the key and the version of the JSON object that begins at `start`: what is known already need not be decoded. */
export function peekIdentity(bytes: Buffer, start = 0): { key: ObjectKey; version: string } | undefined {
  const metadata = findMember(bytes, start, '"metadata"');
  if (metadata === undefined) return undefined;
  const name = stringMember(bytes, metadata, '"name"');
  const version = stringMember(bytes, metadata, '"resourceVersion"');
  if (name === undefined || version === undefined) return undefined;
  return { key: keyOf({ name, namespace: stringMember(bytes, metadata, '"namespace"') }), version };
}

function stringMember(bytes: Buffer, start: number, quotedKey: string): string | undefined {
  const value = findMember(bytes, start, quotedKey);
  return value === undefined ? undefined : stringAt(bytes, value);
}

/** Decodes an object, with what `fieldManagers` applied. Changes its bytes: to cut the managed fields before parsing halves time and memory. */
export function decodeResource<Resource extends KubernetesObject>(
  bytes: Buffer,
  { start = 0, end = bytes.length, fieldManagers }: { start?: number; end?: number; fieldManagers: FieldManagers },
): DecodedResource<Resource> {
  const managedFields = new ManagedFieldsReader(fieldManagers);
  const head = scanHead(bytes, start, { managedFields, encoding: "utf8" });
  const object = JSON.parse(bytes.toString("utf8", head?.start ?? start, end)) as Resource;
  return head === undefined || head.owned.length === 0 ? { object } : { object, owned: head.owned };
}

// Runs for every event of a watch, so it looks at each byte once and allocates next to nothing.

/** An object without its managed fields, up to the end of its metadata. */
export interface ObjectHead extends Range {
  readonly owned: readonly OwnedFields[];
  /** How many members the metadata have, and where the value of their version begins; 0 without one. */
  readonly members: number;
  readonly version: number;
  /** What the search knows of the object. */
  readonly known: DecodedResource | undefined;
}

/** Settings of a scan: what it reads with, and what the managed fields are compared with, the known state or else the neighbour. */
export interface HeadSearch {
  readonly managedFields: ManagedFieldsReader;
  readonly encoding: "latin1" | "utf8";
  readonly known?: ((key: ObjectKey) => DecodedResource | undefined) | undefined;
  readonly neighbour?: DecodedResource | undefined;
}

/** Scans an object as far as its metadata go, and moves what is in front of its managed fields over these; undefined if it has no metadata. */
export function scanHead(bytes: Buffer, start: number, search: HeadSearch): ObjectHead | undefined {
  const metadata = findMember(bytes, start, '"metadata"');
  if (metadata === undefined || bytes[metadata] !== OPEN_BRACE) return undefined;
  let members = 0;
  let name = 0;
  let namespace = 0;
  let version = 0;
  let owned: readonly OwnedFields[] = [];
  let isSought = false;
  let known: DecodedResource | undefined;
  const lookUp = () => {
    isSought = name !== 0;
    if (!isSought) return undefined;
    const scope = namespace === 0 ? undefined : stringAt(bytes, namespace);
    return search.known?.(keyOf({ name: stringAt(bytes, name), namespace: scope }));
  };
  const first = firstMember(bytes, metadata);
  let key = first;
  let end = first;
  let [cutStart, cutEnd] = [end, end];
  while (!isEndOfObject(bytes, key)) {
    const value = valueOfMember(bytes, key);
    if (bytes[value] === OPEN_BRACKET && cutStart === cutEnd && startsWith(bytes, key, '"managedFields"')) {
      // Of built-in kinds, the name comes before.
      known = lookUp();
      const before = (known ?? search.neighbour)?.owned;
      const read = search.managedFields.read(bytes, value, { encoding: search.encoding, before });
      owned = read.owned;
      // With the comma in front of the member, or else the one behind.
      cutStart = end;
      end = cutEnd = read.end;
      const behind = skipSpace(bytes, end);
      if (cutStart === first && bytes[behind] === COMMA) cutEnd = behind + 1;
    } else {
      end = endOfValue(bytes, value);
      members++;
      if (startsWith(bytes, key, '"name"')) name = value;
      else if (startsWith(bytes, key, '"namespace"')) namespace = value;
      else if (startsWith(bytes, key, '"resourceVersion"')) version = value;
    }
    key = nextMember(bytes, end);
  }
  if (!isSought && (known = lookUp()) !== undefined) owned = shareOwned(owned, known.owned);
  const shift = cutEnd - cutStart;
  bytes.copyWithin(start + shift, start, cutStart);
  if (version !== 0 && version < cutStart) version += shift;
  return { start: start + shift, end: key + 1, owned, members, version, known };
}

/** Returns the names of the members behind `index`, where one ends: the very array `likely` if it has the same. */
export function namesBehind(bytes: Buffer, index: number, likely: readonly string[] = []): readonly string[] {
  const names: string[] = [];
  for (let key = nextMember(bytes, index); !isEndOfObject(bytes, key);) {
    names.push(stringAt(bytes, key));
    key = nextMember(bytes, endOfValue(bytes, valueOfMember(bytes, key)));
  }
  return names.length === likely.length && names.every((name, at) => name === likely[at]) ? likely : names;
}

// Two fifths of an object are managed fields, of which only those of our controllers are kept. But for their times, the entries of other
// managers are the same for most objects of a kind, and ours the same as in the known state, so that few are scanned byte by byte.

/** An entry of the managed fields. */
interface ManagedEntry extends OwnedFields {
  readonly bytes: Buffer;
  readonly isApplied: boolean;
  /** Where its time begins and ends, from the start of the entry; both 0 without one. */
  readonly timeStart: number;
  readonly timeEnd: number;
}

/** What the bytes of an object are, and what was owned of its last known state, or of another object of its kind. */
interface ManagedFieldsSource {
  readonly encoding: "latin1" | "utf8";
  readonly before?: readonly OwnedFields[] | undefined;
}

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
      const isFormer = !isOurs && this.#fieldManagers.former?.has(fieldManager) === true;
      const isKept = subresource === "status" ? isOurs || isFormer : isOurs && subresource === "";
      if (isApplied && isKept) owned.push({ fieldManager, subresource, apiVersion, fieldsV1 });
      else if (isFormer && subresource === "")
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
function shareOwned(owned: readonly OwnedFields[], before: typeof owned = []): readonly OwnedFields[] {
  const shared = owned.map((entry) => before.find((fields) => isSameEntry(fields, entry)) ?? entry);
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

function isSameEntry(fields: OwnedFields, entry: OwnedFields): boolean {
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
