// Runs for every event of a watch, so it looks at each byte once and allocates next to nothing.
import { keyOf, type ObjectKey } from "../base/kubernetes-object.js";
import type { DecodedResource, OwnedFields } from "../base/decoded-resource.js";
import {
  endOfValue,
  findMember,
  firstMember,
  isEndOfObject,
  nextMember,
  skipSpace,
  startsWith,
  stringAt,
  valueOfMember,
  type Range,
} from "./json-scanner.js";
import { shareOwned, type ManagedFieldsReader } from "./managed-fields.js";

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

const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;

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
