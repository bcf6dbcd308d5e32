// Two states of one object mostly differ in a status and the version, and neighbours in a list have much in common. The decoder compares the
// bytes of a state with the known state, or else with its neighbour: equal parts are not parsed again, and share their memory.
import { isAscii } from "node:buffer";
import { keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import type { DecodedResource, OwnedFields } from "../base/decoded-resource.js";
import { decodeResource, fieldsV1Of, ownedFieldsOf } from "./decode-resource.js";
import { deferMembers, deferredOf, type Deferred } from "./deferred-members.js";
import { endOfValue, skipSpace, type Range } from "./json-scanner.js";
import {
  namesBehind,
  scanHead,
  textWithoutCut,
  type HeadSearch,
  type ObjectHead,
  type OwnedRange,
} from "./object-head.js";
import { hasText } from "./same-text.js";
import { shareEqual } from "./share-equal.js";

interface DeferredDecoding extends Pick<HeadSearch, "fieldManagers"> {
  known?: ((key: ObjectKey) => DecodedResource | undefined) | undefined;
}

interface Decoding extends Range {
  readonly bytes: Buffer;
  readonly encoding: "latin1" | "utf8";
  readonly head: ObjectHead;
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
    const decoding = { bytes, start, end, encoding, head } as const;
    // With a brace behind the metadata, the text up to there is an object.
    const behind = bytes[head.end]!;
    bytes[head.end] = CLOSE_BRACE;
    const text = textWithoutCut(bytes, head, { start, end: head.end + 1, encoding });
    bytes[head.end] = behind;
    const object = JSON.parse(text) as KubernetesObject;
    const before = this.#known?.(keyOf(object.metadata)) ?? this.#last;
    if (before !== undefined) shareEqual(object.metadata, before.object.metadata);
    if (!deferRest(object, decoding, before && deferredOf(before.object))) return undefined;
    const owned = readOwned(decoding, before?.owned);
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

/** Adds the members behind the metadata, with the text of the state before if it is the same; false if their names are not unique. */
function deferRest(
  object: KubernetesObject,
  { bytes, end, encoding, head }: Decoding,
  before: Deferred | undefined,
): boolean {
  const comma = skipSpace(bytes, head.end);
  if (bytes[comma] === CLOSE_BRACE) return true;
  const isKnown =
    before?.isAscii === true &&
    encoding === "latin1" &&
    hasText(bytes, { start: comma + 1, end }, before.text.slice(1));
  const names = isKnown ? before.names : namesBehind(bytes, head.end, before?.names);
  // Of two members of one name a parser takes the last.
  for (const name of names) if (Object.hasOwn(object, name)) return false;
  if (isKnown) deferMembers(object, before);
  else {
    // With a brace in place of the comma, the rest of the text is an object.
    bytes[comma] = OPEN_BRACE;
    deferMembers(object, { names, text: bytes.toString(encoding, comma, end), isAscii: encoding === "latin1" });
    bytes[comma] = COMMA;
  }
  return true;
}

function readOwned(
  { bytes, encoding, head: { owned } }: Decoding,
  before: readonly OwnedFields[] = NONE,
): readonly OwnedFields[] {
  const read = owned.map((range, at) => {
    const same = before[at] && isOf(before[at], range) ? before[at] : undefined;
    const fieldsV1 = fieldsV1Of(bytes, range, encoding);
    // V8 allocates these objects in the old space, where a needless one would keep its text alive for long.
    return same?.fieldsV1 === fieldsV1 ? same : ownedFieldsOf(range, fieldsV1);
  });
  const isSame = read.length === before.length && read.every((fields, at) => fields === before[at]);
  return isSame ? before : read;
}

function isOf(fields: OwnedFields, range: OwnedRange): boolean {
  return (
    fields.fieldManager === range.fieldManager &&
    fields.subresource === range.subresource &&
    fields.apiVersion === range.apiVersion
  );
}
