// Two states of one object mostly differ in a status and the version, and neighbours in a list have much in common. The decoder compares the
// bytes of a state with the known state, or else with its neighbour: equal parts are not parsed again, and share their memory.
import { isAscii } from "node:buffer";
import { keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import {
  decodeResource,
  fieldsV1Of,
  ownedFieldsOf,
  type DecodedResource,
  type OwnedFields,
} from "./decode-resource.js";
import { deferMembers, deferredOf, type Deferred } from "./deferred-members.js";
import { endOfValue, skipSpace, type Range } from "./json-scanner.js";
import {
  namesBehind,
  refIn,
  scanHead,
  textWithoutCut,
  type HeadSearch,
  type ObjectHead,
  type OwnedRange,
} from "./object-head.js";
import { hasText, hasTextAround } from "./same-text.js";
import { shareEqual } from "./share-equal.js";

interface DeferredDecoding extends Pick<HeadSearch, "fieldManagers"> {
  known?: ((key: ObjectKey) => DecodedResource | undefined) | undefined;
}

interface Decoding extends Range {
  readonly bytes: Buffer;
  readonly encoding: "latin1" | "utf8";
  readonly head: ObjectHead;
  /** The known state of the object, or the object that was decoded before. */
  readonly before: DecodedResource | undefined;
  /** The text of that state, if it can be compared with the bytes. */
  readonly known: Deferred | undefined;
}

const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const COMMA = 0x2c;
const NONE: readonly OwnedFields[] = [];

/** Decodes the objects of one list-watch: the metadata at once, the members behind them when they are read, which most never are. */
export class DeferredDecoder {
  readonly #search: HeadSearch;
  readonly #known: DeferredDecoding["known"];
  /** The fields of the last object, by the index of their entry: fields of other managers are mostly the same everywhere. */
  readonly #lastFields: Buffer[] = [];
  #last: DecodedResource | undefined;

  constructor({ fieldManagers, known }: DeferredDecoding) {
    this.#known = known;
    this.#search = { fieldManagers, endOfFields: (bytes, start, entry) => this.#endOfFields(bytes, start, entry) };
  }

  /** Decodes the JSON object in a range to what `decodeResource` returns, as far as any reader can see. Changes its bytes. */
  decode(bytes: Buffer, range: Range): DecodedResource {
    this.#last = this.#decode(bytes, range);
    return this.#last ?? decodeResource(bytes, { ...range, fieldManagers: this.#search.fieldManagers });
  }

  /** Decodes an object as Kubernetes writes it, with metadata and unique member names; undefined for any other. */
  #decode(bytes: Buffer, { start, end }: Range): DecodedResource | undefined {
    // V8 reads and keeps text of one byte per character much faster than other text.
    const encoding = isAscii(bytes.subarray(start, end)) ? "latin1" : "utf8";
    const head = scanHead(bytes, start, this.#search);
    if (head === undefined) return undefined;
    const ref = refIn(bytes, head);
    const before = (ref && this.#known?.(keyOf(ref))) ?? this.#last;
    const text = before === undefined || encoding === "utf8" ? undefined : deferredOf(before.object);
    const known = text?.isAscii === true ? text : undefined;
    const decoding = { bytes, start, end, encoding, head, before, known } as const;
    const object = decodeObject(decoding);
    if (object === undefined) return undefined;
    const owned = readOwned(decoding);
    return owned.length === 0 ? { object } : { object, owned };
  }

  // A text that equals a whole JSON object ends where that does.
  #endOfFields(bytes: Buffer, start: number, entry: number): number {
    const last = this.#lastFields[entry];
    if (last !== undefined && start + last.length <= bytes.length)
      if (bytes.compare(last, 0, last.length, start, start + last.length) === 0) return start + last.length;
    const end = endOfValue(bytes, start);
    if (bytes[start] === OPEN_BRACE) this.#lastFields[entry] = Buffer.from(bytes.subarray(start, end));
    return end;
  }
}

// Undefined if the names of the members are not unique.
function decodeObject(decoding: Decoding): KubernetesObject | undefined {
  const { bytes, end, encoding, head, known } = decoding;
  const isKnownHead = known !== undefined && hasHead(decoding, known);
  const { before, behind } = isKnownHead ? known : headTextIn(decoding);
  const version = bytes.toString(encoding, head.versionStart, head.versionEnd);
  const state = decoding.before?.object;
  let object = isKnownHead ? withVersion(state!, version) : undefined;
  if (object === undefined) {
    object = JSON.parse(`${before}${version}${behind}}}`) as KubernetesObject;
    if (state !== undefined) shareEqual(object.metadata, state.metadata);
  }
  const comma = skipSpace(bytes, head.end);
  if (bytes[comma] === CLOSE_BRACE) return object;
  const isKnownRest = known !== undefined && hasText(bytes, { start: comma + 1, end }, known.text.slice(1));
  const names = isKnownRest ? known.names : namesBehind(bytes, head.end, known?.names);
  // Of two members of one name a parser takes the last.
  if (!isKnownHead) for (const name of names) if (Object.hasOwn(object, name)) return undefined;
  const isKnown = isKnownHead && isKnownRest;
  // With a brace in place of the comma, the rest of the text is an object.
  if (!isKnownRest) bytes[comma] = OPEN_BRACE;
  const text = isKnownRest ? known.text : bytes.toString(encoding, comma, end);
  bytes[comma] = COMMA;
  deferMembers(object, isKnown ? known : { names, text, before, behind, isAscii: encoding === "latin1" });
  return object;
}

function hasHead({ bytes, head }: Decoding, { before, behind }: Deferred): boolean {
  const { start, versionStart, versionEnd, end, cutStart, cutEnd } = head;
  const cut = { cutStart, cutEnd };
  return (
    hasTextAround(bytes, { start, end: versionStart, ...cut }, before) &&
    hasTextAround(bytes, { start: versionEnd, end: end - 1, ...cut }, behind)
  );
}

function headTextIn({ bytes, head, encoding, known }: Decoding): { before: string; behind: string } {
  const { start, versionStart, versionEnd, end } = head;
  const before = textWithoutCut(bytes, head, { start, end: versionStart, encoding });
  const behind = textWithoutCut(bytes, head, { start: versionEnd, end: end - 1, encoding });
  // Neighbours mostly differ in their names alone.
  return { before, behind: behind === known?.behind ? known.behind : behind };
}

/** Returns the members of an object up to its metadata, with another version, which is given with its quotes. */
function withVersion(object: KubernetesObject, version: string): KubernetesObject | undefined {
  const resourceVersion = version.slice(1, -1);
  if (!/^[0-9]+$/.test(resourceVersion)) return undefined;
  const head: { [name: string]: unknown } = {};
  for (const name in object) {
    if (name === "metadata") break;
    // A number comes before the metadata wherever it stood.
    if (name === "__proto__" || /^[0-9]/.test(name)) return undefined;
    head[name] = (object as unknown as { readonly [name: string]: unknown })[name];
  }
  head["metadata"] = { ...object.metadata, resourceVersion };
  return head as unknown as KubernetesObject;
}

function readOwned({ bytes, encoding, head: { owned }, before, known }: Decoding): readonly OwnedFields[] {
  const ownedBefore = before?.owned ?? NONE;
  const read = owned.map((range, at) => {
    const same = ownedBefore[at] && isOf(ownedBefore[at], range) ? ownedBefore[at] : undefined;
    const { fieldsStart: start, fieldsEnd: end } = range;
    if (same !== undefined && known !== undefined && hasText(bytes, { start, end }, same.fieldsV1)) return same;
    const fieldsV1 = fieldsV1Of(bytes, range, encoding);
    // V8 allocates these objects in the old space, where a needless one would keep its text alive for long.
    return same?.fieldsV1 === fieldsV1 ? same : ownedFieldsOf(range, fieldsV1);
  });
  const isSame = read.length === ownedBefore.length && read.every((fields, at) => fields === ownedBefore[at]);
  return isSame ? ownedBefore : read;
}

function isOf(fields: OwnedFields, range: OwnedRange): boolean {
  return (
    fields.fieldManager === range.fieldManager &&
    fields.subresource === range.subresource &&
    fields.apiVersion === range.apiVersion
  );
}
