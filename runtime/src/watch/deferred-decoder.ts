// Two states of one object mostly differ in a status and the version, and neighbours in a list have much in common. The decoder compares the
// bytes of a state with the known state, or else with its neighbour: equal parts are not parsed again, and share their memory.
import { isAscii } from "node:buffer";
import type { DecodedResource, FieldManagers, KubernetesObject, ManagedWrite } from "../base/kubernetes-object.js";
import { type Deferred, deferMembers, deferredOf } from "../cache/lazy-object.js";
import { JSON_BYTES, type Range, skipSpace, stringAt } from "../client/json-scanner.js";
import {
  type HeadSearch,
  ManagedFieldsReader,
  type ObjectHead,
  namesBehind,
  scanHead,
} from "../client/object-decoder.js";

const { QUOTE, COMMA, OPEN_BRACE, CLOSE_BRACE } = JSON_BYTES;

interface Decoding {
  readonly bytes: Buffer;
  readonly end: number;
  readonly encoding: "latin1" | "utf8";
  readonly head: ObjectHead;
  readonly before: Deferred | undefined;
}

/** Decodes the objects of one list-watch: the metadata at once, the members behind them when they are read, which most never are. */
export class DeferredDecoder {
  readonly #managedFields: ManagedFieldsReader;
  readonly #known: HeadSearch["known"];
  #last: DecodedResource | undefined;

  constructor({ fieldManagers, known }: Pick<HeadSearch, "known"> & { readonly fieldManagers: FieldManagers }) {
    this.#managedFields = new ManagedFieldsReader(fieldManagers);
    this.#known = known;
  }

  /** The latest write of the field managers to the object that was decoded last. */
  get latestWrite(): ManagedWrite | undefined {
    return this.#managedFields.latest;
  }

  /** Decodes the JSON object in a range into an object that reads the same as the result of `decodeResource`. Changes its bytes. */
  decode(bytes: Buffer, { start, end }: Range): DecodedResource {
    // Of an object without managed fields none are read.
    this.#managedFields.latest = undefined;
    // V8 reads and keeps text of one byte per character much faster than other text.
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

/** Decodes an object as Kubernetes writes it, with unique member names; undefined for any other. */
function decodeMembers(decoding: Decoding, known: KubernetesObject | undefined): KubernetesObject | undefined {
  const { bytes, encoding, head, before } = decoding;
  // With a brace behind the metadata, the text up to there is an object.
  const behind = bytes[head.end]!;
  bytes[head.end] = CLOSE_BRACE;
  let text = before?.head;
  let object = head.known && withVersion(decoding, head.known.object);
  if (object === undefined) {
    text = bytes.toString(encoding, head.start, head.end + 1);
    object = JSON.parse(text) as KubernetesObject;
    if (known !== undefined) shareEqual(object.metadata, known.metadata);
    // Of two members of one name a parser takes the last.
    if (Object.keys(object.metadata).length !== head.members || Object.hasOwn(object, "__proto__")) text = undefined;
  }
  bytes[head.end] = behind;
  return deferRest(object, text, decoding) ? object : undefined;
}

/** Returns the known object up to its metadata with another version, if the text says that this is all that has changed. */
function withVersion({ bytes, head, before }: Decoding, known: KubernetesObject): KubernetesObject | undefined {
  if (before?.head === undefined || head.version === 0) return undefined;
  const resourceVersion = stringAt(bytes, head.version);
  const { length } = resourceVersion;
  const start = head.version + 1;
  // A version with escapes is longer than it says.
  if (known.metadata.resourceVersion?.length !== length || bytes[start + length] !== QUOTE) return undefined;
  // The text is that of an earlier state, from which this one and the known one differ in the version.
  bytes.write(before.head.slice(start - head.start, start - head.start + length), start, "latin1");
  const isSame = hasText(bytes, { start: head.start, end: head.end + 1 }, before.head);
  bytes.write(resourceVersion, start, "latin1");
  if (!isSame) return undefined;
  const members: Record<string, unknown> = {};
  for (const name in known) {
    if (name === "metadata") break;
    // A name that is a number comes first, wherever it stands.
    if (!before.names.includes(name)) members[name] = (known as unknown as Record<string, unknown>)[name];
  }
  members["metadata"] = { ...known.metadata, resourceVersion };
  return members as unknown as KubernetesObject;
}

/** Adds the members behind the metadata, with the text of the state before if it is the same; false if their names are not unique. */
function deferRest(
  object: KubernetesObject,
  headText: string | undefined,
  { bytes, end, encoding, head, before }: Decoding,
): boolean {
  const comma = skipSpace(bytes, head.end);
  if (bytes[comma] === CLOSE_BRACE) return true;
  // With a brace in place of the comma, the rest of the text is an object.
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

// Memory that no text has needed yet is not resident.
const scratch = Buffer.allocUnsafeSlow(1024 * 1024);

/** Tells whether ASCII bytes equal an ASCII text, without making a string of them, which would be garbage at once. A longer text is not compared. */
function hasText(bytes: Buffer, { start, end }: Range, text: string): boolean {
  if (end - start !== text.length || text.length > scratch.length) return false;
  scratch.write(text, "latin1");
  return scratch.compare(bytes, start, end, 0, text.length) === 0;
}

/** Replaces members of `value` by equal members of `before`, so that they are kept once. Both are JSON values. */
function shareEqual(value: object, before: object): void {
  const [members, known] = [value as Members, before as Members];
  for (const name in members) {
    const [member, other] = [members[name], known[name]];
    if (typeof member === "string" ? member === other : isSameJson(member, other) && Object.hasOwn(known, name))
      members[name] = other;
  }
}

type Members = Record<string, unknown>;

/** Tells whether two JSON values are equal, and list their members in the same order. */
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
