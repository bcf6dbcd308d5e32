// Decodes objects from the JSON bytes of an API server, which are assumed to be valid JSON. A scanner finds values without parsing them,
// `decodeResource` decodes a single object, and `DeferredDecoder` decodes the objects of a list-watch.
import { isAscii } from "node:buffer";
import {
  type DecodedResource,
  type FieldManagers,
  type KubernetesObject,
  type ManagedWrite,
  type ObjectKey,
  type OwnedFields,
  keyOf,
} from "../base/kubernetes-object.js";
import { type Deferred, deferMembers, deferredOf } from "../base/lazy-object.js";

/** Destructure it at the top of a module: V8 inlines constants of the module itself, but loads imported ones for every byte. */
export const JSON_BYTES = {
  QUOTE: 0x22,
  BACKSLASH: 0x5c,
  COMMA: 0x2c,
  COLON: 0x3a,
  OPEN_BRACE: 0x7b,
  CLOSE_BRACE: 0x7d,
  OPEN_BRACKET: 0x5b,
  CLOSE_BRACKET: 0x5d,
} as const;

const { QUOTE, BACKSLASH, COMMA, COLON, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET } = JSON_BYTES;

/** The position of a value: from `start` up to but excluding `end`. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

// Strings are short, and a call of indexOf costs as much as checking this many bytes.
const SHORT_STRING_BYTES = 64;

/** Returns the index after the string that starts at `start`. */
function endOfString(bytes: Buffer, start: number): number {
  const short = Math.min(start + SHORT_STRING_BYTES, bytes.length);
  let index = start + 1;
  // Two bytes per iteration, because most scanned bytes are in strings.
  for (; index < short; index += 2) {
    const byte = bytes[index];
    if (byte === QUOTE) return index + 1;
    if (byte === BACKSLASH) continue;
    const next = bytes[index + 1];
    if (next === QUOTE) return index + 2;
    if (next === BACKSLASH) index++;
  }
  for (let quote = bytes.indexOf(QUOTE, index); quote !== -1; quote = bytes.indexOf(QUOTE, quote + 1)) {
    let backslashes = 0;
    while (quote - 1 - backslashes >= index && bytes[quote - 1 - backslashes] === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return quote + 1;
  }
  throw new SyntaxError("unterminated string in JSON");
}

/** Returns the index of the first non-whitespace byte at or after `index`. */
export function skipSpace(bytes: Buffer, index: number): number {
  while (bytes[index]! <= 0x20) index++;
  return index;
}

/** Returns the index after the value that starts at `start`. */
export function endOfValue(bytes: Buffer, start: number): number {
  const first = bytes[start];
  if (first === QUOTE) return endOfString(bytes, start);
  if (first === OPEN_BRACE || first === OPEN_BRACKET) {
    const length = bytes.length;
    let depth = 0;
    for (let index = start; index < length; index++) {
      const byte = bytes[index]!;
      if (byte === QUOTE) index = endOfString(bytes, index) - 1;
      // This bit distinguishes brackets from braces.
      else if ((byte | 0x20) === OPEN_BRACE) depth++;
      else if ((byte | 0x20) === CLOSE_BRACE && --depth === 0) return index + 1;
    }
    throw new SyntaxError("unterminated object or array in JSON");
  }
  for (let index = start; index < bytes.length; index++) {
    const byte = bytes[index];
    if (byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET) return index;
  }
  return bytes.length;
}

/** Returns whether an ASCII text is at `start`. */
function startsWith(bytes: Buffer, start: number, text: string): boolean {
  for (let index = 0; index < text.length; index++) if (bytes[start + index] !== text.charCodeAt(index)) return false;
  return true;
}

/**
 * Returns the index of the value of a member, given the index of its key. Together with `nextMember`, it iterates over an object without allocations.
 */
export function valueOfMember(bytes: Buffer, key: number): number {
  const colon = skipSpace(bytes, endOfString(bytes, key));
  if (bytes[colon] !== COLON) throw new SyntaxError("expected a colon in JSON");
  return skipSpace(bytes, colon + 1);
}

/** Returns the index of the first key of the object that starts at `start`, or of its closing brace. */
export function firstMember(bytes: Buffer, start: number): number {
  return skipSpace(bytes, start + 1);
}

/** Returns the index of the key after the value that ends at `end`, or of the closing brace of the object. */
export function nextMember(bytes: Buffer, end: number): number {
  const index = skipSpace(bytes, end);
  if (bytes[index] === COMMA) return skipSpace(bytes, index + 1);
  if (bytes[index] !== CLOSE_BRACE) throw new SyntaxError("expected a comma or a closing brace in JSON");
  return index;
}

/** Returns whether an iteration over the members of an object has reached its closing brace. */
export function isEndOfObject(bytes: Buffer, index: number): boolean {
  return bytes[index] === CLOSE_BRACE;
}

/** Returns the index of the value of a member of the object that starts at `start`. `quotedKey` is ASCII and includes the quotes. */
export function findMember(bytes: Buffer, start: number, quotedKey: string): number | undefined {
  let key = firstMember(bytes, start);
  while (!isEndOfObject(bytes, key)) {
    const value = valueOfMember(bytes, key);
    if (startsWith(bytes, key, quotedKey)) return value;
    key = nextMember(bytes, endOfValue(bytes, value));
  }
  return undefined;
}

/** Returns the string that starts at `start`. */
export function stringAt(bytes: Buffer, start: number, end = endOfString(bytes, start)): string {
  for (let index = start + 1; index < end - 1; index++)
    if (bytes[index] === BACKSLASH || bytes[index]! >= 0x80)
      return JSON.parse(bytes.toString("utf8", start, end)) as string;
  return bytes.toString("latin1", start + 1, end - 1);
}

/** Reads the key and the resourceVersion of the JSON object that starts at `start`, to skip decoding if this version is already cached. */
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

/**
 * Decodes an object together with the fields that `fieldManagers` applied. Modifies the bytes: removing the managed fields before parsing halves time
 * and memory.
 */
export function decodeResource<Resource extends KubernetesObject>(
  bytes: Buffer,
  { start = 0, end = bytes.length, fieldManagers }: { start?: number; end?: number; fieldManagers: FieldManagers },
): DecodedResource<Resource> {
  const managedFields = new ManagedFieldsReader(fieldManagers);
  const head = scanHead(bytes, start, { managedFields, encoding: "utf8" });
  const object = JSON.parse(bytes.toString("utf8", head?.start ?? start, end)) as Resource;
  return head === undefined || head.owned.length === 0 ? { object } : { object, owned: head.owned };
}

// The following runs for every watch event, so it reads each byte once and allocates almost nothing.

/** The part of an object up to the end of its metadata, without managed fields. */
interface ObjectHead extends Range {
  readonly owned: readonly OwnedFields[];
  /** The number of members of the metadata, and the index of the value of the resourceVersion, or 0 if there is none. */
  readonly members: number;
  readonly version: number;
  /** The cached state of the object, if there is one. */
  readonly known: DecodedResource | undefined;
}

/** Options of a scan. Managed fields are compared with those of the cached state, or of the neighbor in the list if there is none. */
interface HeadSearch {
  readonly managedFields: ManagedFieldsReader;
  readonly encoding: "latin1" | "utf8";
  readonly known?: ((key: ObjectKey) => DecodedResource | undefined) | undefined;
  readonly neighbour?: DecodedResource | undefined;
}

/**
 * Scans an object up to the end of its metadata, and moves the bytes before the managed fields over them. Returns undefined if it has no metadata.
 */
function scanHead(bytes: Buffer, start: number, search: HeadSearch): ObjectHead | undefined {
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
      // For built-in kinds, the name precedes the managed fields, so the object can be looked up.
      known = lookUp();
      const before = (known ?? search.neighbour)?.owned;
      const read = search.managedFields.read(bytes, value, { encoding: search.encoding, before });
      owned = read.owned;
      // Remove the comma before the member or, for the first member, the one after it.
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

/** Returns the names of the members after `index`, where a member ends. Returns the array `likely` itself if the names are equal. */
function namesBehind(bytes: Buffer, index: number, likely: readonly string[] = []): readonly string[] {
  const names: string[] = [];
  for (let key = nextMember(bytes, index); !isEndOfObject(bytes, key);) {
    names.push(stringAt(bytes, key));
    key = nextMember(bytes, endOfValue(bytes, valueOfMember(bytes, key)));
  }
  return names.length === likely.length && names.every((name, at) => name === likely[at]) ? likely : names;
}

// About 40% of an object are managed fields, of which only those of our controllers are kept. Apart from their times, the entries of other managers
// are equal in most objects of a kind, and our entries are equal to those in the cached state, so only few have to be scanned byte by byte.

/** An entry of the managed fields. */
interface ManagedEntry extends OwnedFields {
  readonly bytes: Buffer;
  readonly isApplied: boolean;
  /** The range of the time within the entry; both are 0 if there is none. */
  readonly timeStart: number;
  readonly timeEnd: number;
}

/** The encoding of an object, and the owned fields of its cached state or of another object of its kind. */
interface ManagedFieldsSource {
  readonly encoding: "latin1" | "utf8";
  readonly before?: readonly OwnedFields[] | undefined;
}

/** Reads the fields that our controllers own, for objects of one kind. */
class ManagedFieldsReader {
  /** The latest write by our controllers to the object that was read last, or undefined if there is none. */
  latest: ManagedWrite | undefined;
  readonly #fieldManagers: FieldManagers;
  readonly #lastEntries: (ManagedEntry | undefined)[] = [];

  constructor(fieldManagers: FieldManagers) {
    this.#fieldManagers = fieldManagers;
  }

  /** Reads the array of managed fields that starts at `start`. Returns the owned fields and the index after the array. */
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
    // Our entries contain the name of the owner, so they differ between objects.
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

/** Returns the owned fields, with entries that are equal to entries of `before` replaced by these to share memory. */
function shareOwned(owned: readonly OwnedFields[], before: typeof owned = []): readonly OwnedFields[] {
  const shared = owned.map((entry) => before.find((fields) => isSameEntry(fields, entry)) ?? entry);
  return shared.length === before.length && shared.every((fields, at) => fields === before[at]) ? before : shared;
}

// Copies the time of the entry into `last`, so that a single comparison is sufficient.
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

// A text that equals a complete JSON object ends where the object ends. Unlike in `hasText`, it need not be ASCII.
function hasFields(bytes: Buffer, start: number, { fieldsV1 }: OwnedFields): boolean {
  return bytes.toString("latin1", start, start + fieldsV1.length) === fieldsV1;
}

// Two states of an object usually differ only in the status and the resourceVersion, and neighbors in a list have much in common. The decoder
// compares the bytes with those of the cached state, or of the neighbor if there is none: equal parts are not parsed again and share memory.

interface Decoding {
  readonly bytes: Buffer;
  readonly end: number;
  readonly encoding: "latin1" | "utf8";
  readonly head: ObjectHead;
  readonly before: Deferred | undefined;
}

/** Decodes the objects of a list-watch. The metadata is parsed immediately, the members after it only when they are read, which most are not. */
export class DeferredDecoder {
  readonly #managedFields: ManagedFieldsReader;
  readonly #known: HeadSearch["known"];
  #last: DecodedResource | undefined;

  constructor({ fieldManagers, known }: Pick<HeadSearch, "known"> & { readonly fieldManagers: FieldManagers }) {
    this.#managedFields = new ManagedFieldsReader(fieldManagers);
    this.#known = known;
  }

  /** The latest write by the field managers to the object that was decoded last. */
  get latestWrite(): ManagedWrite | undefined {
    return this.#managedFields.latest;
  }

  /** Decodes the JSON object in a range. The result reads like that of `decodeResource`. Modifies the bytes. */
  decode(bytes: Buffer, { start, end }: Range): DecodedResource {
    // Reset, because an object without managed fields does not update it.
    this.#managedFields.latest = undefined;
    // V8 reads and stores strings with one byte per character much faster than others.
    const encoding = isAscii(bytes.subarray(start, end)) ? "latin1" : "utf8";
    const search = { managedFields: this.#managedFields, encoding, known: this.#known, neighbour: this.#last } as const;
    const head = scanHead(bytes, start, search);
    if (head === undefined) return { object: JSON.parse(bytes.toString(encoding, start, end)) as KubernetesObject };
    const known = head.known ?? this.#last;
    const before = known && encoding === "latin1" ? deferredOf(known.object) : undefined;
    const decoding = { bytes, end, encoding, head, before: before?.isAscii ? before : undefined } as const;
    const members = decodeMembers(decoding, known?.object);
    const object = members ?? (JSON.parse(bytes.toString(encoding, head.start, end)) as KubernetesObject);
    const entry = head.owned.length === 0 ? { object } : { object, owned: head.owned };
    this.#last = members && entry;
    return entry;
  }
}

/** Decodes an object as Kubernetes serializes it, with unique member names. Returns undefined for any other object. */
function decodeMembers(decoding: Decoding, known: KubernetesObject | undefined): KubernetesObject | undefined {
  const { bytes, encoding, head, before } = decoding;
  // With a closing brace after the metadata, the text up to there is a valid object.
  const behind = bytes[head.end]!;
  bytes[head.end] = CLOSE_BRACE;
  let text = before?.head;
  let object = head.known && withVersion(decoding, head.known.object);
  if (object === undefined) {
    text = bytes.toString(encoding, head.start, head.end + 1);
    object = JSON.parse(text) as KubernetesObject;
    if (known !== undefined) shareEqual(object.metadata, known.metadata);
    // If a member name occurs twice, JSON.parse keeps only the last one.
    if (Object.keys(object.metadata).length !== head.members || Object.hasOwn(object, "__proto__")) text = undefined;
  }
  bytes[head.end] = behind;
  return deferRest(object, text, decoding) ? object : undefined;
}

/** Returns the cached object up to its metadata with a new resourceVersion, if the bytes show that nothing else has changed. */
function withVersion({ bytes, head, before }: Decoding, known: KubernetesObject): KubernetesObject | undefined {
  if (before?.head === undefined || head.version === 0) return undefined;
  const resourceVersion = stringAt(bytes, head.version);
  const { length } = resourceVersion;
  const start = head.version + 1;
  // A resourceVersion with escape sequences has more bytes than characters.
  if (known.metadata.resourceVersion?.length !== length || bytes[start + length] !== QUOTE) return undefined;
  // The text may be from an earlier state, which differs from this one and from the cached one only in the resourceVersion.
  bytes.write(before.head.slice(start - head.start, start - head.start + length), start, "latin1");
  const isSame = hasText(bytes, { start: head.start, end: head.end + 1 }, before.head);
  bytes.write(resourceVersion, start, "latin1");
  if (!isSame) return undefined;
  const members: Record<string, unknown> = {};
  for (const name in known) {
    if (name === "metadata") break;
    // Integer-like names come first in the property order, independently of their position in the text.
    if (!before.names.includes(name)) members[name] = (known as unknown as Record<string, unknown>)[name];
  }
  members["metadata"] = { ...known.metadata, resourceVersion };
  return members as unknown as KubernetesObject;
}

/** Adds the members after the metadata, sharing the text of the previous state if it is equal. Returns false if the member names are not unique. */
function deferRest(
  object: KubernetesObject,
  headText: string | undefined,
  { bytes, end, encoding, head, before }: Decoding,
): boolean {
  const comma = skipSpace(bytes, head.end);
  if (bytes[comma] === CLOSE_BRACE) return true;
  // With an opening brace in place of the comma, the rest of the text is a valid object.
  bytes[comma] = OPEN_BRACE;
  const known = before && hasText(bytes, { start: comma, end }, before.text) ? before : undefined;
  const text = known?.text ?? bytes.toString(encoding, comma, end);
  bytes[comma] = COMMA;
  const names = known?.names ?? namesBehind(bytes, head.end, before?.names);
  for (const name of names) if (Object.hasOwn(object, name)) return false;
  const isSame = known !== undefined && known.head === headText;
  deferMembers(object, isSame ? known : { names, text, isAscii: encoding === "latin1", head: headText });
  return true;
}

// Memory that has not been used yet is not resident.
const scratch = Buffer.allocUnsafeSlow(1024 * 1024);

/**
 * Returns whether ASCII bytes equal an ASCII string, without allocating a string for them. Returns false for strings longer than the scratch buffer.
 */
function hasText(bytes: Buffer, { start, end }: Range, text: string): boolean {
  if (end - start !== text.length || text.length > scratch.length) return false;
  scratch.write(text, "latin1");
  return scratch.compare(bytes, start, end, 0, text.length) === 0;
}

/** Replaces members of `value` with equal members of `before` to share memory. Both are JSON values. */
function shareEqual(value: object, before: object): void {
  const [members, known] = [value as Members, before as Members];
  for (const name in members) {
    const [member, other] = [members[name], known[name]];
    if (typeof member === "string" ? member === other : isSameJson(member, other) && Object.hasOwn(known, name))
      members[name] = other;
  }
}

type Members = Record<string, unknown>;

/** Returns whether two JSON values are equal and have their members in the same order. */
function isSameJson(value: unknown, other: unknown): boolean {
  if (value === other) return true;
  if (typeof value !== "object" || typeof other !== "object" || value === null || other === null) return false;
  if (Array.isArray(value) || Array.isArray(other)) return isSameArray(value, other);
  const names = Object.keys(other);
  let at = 0;
  for (const name in value)
    if (name !== names[at++] || !isSameJson((value as Members)[name], (other as Members)[name])) return false;
  return at === names.length;
}

function isSameArray(value: object, other: object): boolean {
  if (!Array.isArray(value) || !Array.isArray(other) || value.length !== other.length) return false;
  return value.every((item, at) => isSameJson(item, other[at]));
}
