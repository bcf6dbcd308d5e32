// A set of field paths, stored as a tree. A path in the set is a member; membership of `.a.b` does not imply membership of `.a`. Sets are immutable
// and share subtrees; an empty subtree is always FieldSet.empty.
import { formatValue } from "../errors/field-error.js";
import { quote } from "../errors/go-format.js";
import {
  type JsonObject,
  type JsonValue,
  type MemberPair,
  canonicalJson,
  compareText,
  isObject,
  sortedPairs,
} from "../json.js";

/** A path element in a set: whether the path that ends here is a member, and the set of paths below. */
export interface FieldEntry {
  readonly isMember: boolean;
  readonly below: FieldSet;
}

export class FieldSet {
  static readonly empty: FieldSet = new FieldSet(new Map());
  /** A member without paths below it. */
  static readonly leaf: FieldEntry = { isMember: true, below: FieldSet.empty };

  readonly entries: ReadonlyMap<PathElement, FieldEntry>;

  private constructor(entries: ReadonlyMap<PathElement, FieldEntry>) {
    this.entries = entries;
  }

  /** Builds a set of field paths such as `.metadata.labels`. */
  static of(...paths: string[]): FieldSet {
    const builder = new FieldSetBuilder();
    for (const path of paths) builder.insert(path.split(".").slice(1).map(fieldElement));
    return builder.build();
  }

  /** Builds a set from its top-level entries, none of which may be empty. */
  static from(entries: ReadonlyMap<PathElement, FieldEntry>): FieldSet {
    return entries.size === 0 ? FieldSet.empty : new FieldSet(entries);
  }

  get isEmpty(): boolean {
    return this.entries.size === 0;
  }

  has(path: readonly PathElement[]): boolean {
    let entry: FieldEntry | undefined;
    let set: FieldSet = FieldSet.empty;
    path.forEach((element, index) => {
      entry = (index === 0 ? this : set).entries.get(element);
      set = entry?.below ?? FieldSet.empty;
    });
    return entry?.isMember ?? false;
  }

  /** Returns the union of both sets. */
  union(other: FieldSet): FieldSet {
    if (this === other || other.isEmpty) return this;
    if (this.isEmpty) return other;
    const entries = new Map(this.entries);
    for (const [element, theirs] of other.entries) {
      const ours = entries.get(element);
      if (ours === undefined) entries.set(element, theirs);
      else if (ours !== theirs) {
        const isMember = ours.isMember || theirs.isMember;
        entries.set(element, { isMember, below: ours.below.union(theirs.below) });
      }
    }
    return new FieldSet(entries);
  }

  /** Returns the intersection of both sets. */
  intersection(other: FieldSet): FieldSet {
    if (this === other) return this;
    const entries = new Map<PathElement, FieldEntry>();
    for (const [element, ours] of this.entries) {
      const theirs = other.entries.get(element);
      if (theirs === undefined) continue;
      const isMember = ours.isMember && theirs.isMember;
      const below = ours.below.intersection(theirs.below);
      if (isMember || !below.isEmpty) entries.set(element, { isMember, below });
    }
    return FieldSet.from(entries);
  }

  /** Returns the paths that are not in the other set; children of removed paths are kept. */
  difference(other: FieldSet): FieldSet {
    return this.without(other, (ours, theirs) => ({
      isMember: ours.isMember && !theirs.isMember,
      below: ours.below.difference(theirs.below),
    }));
  }

  /** Returns the paths that are neither in the other set nor below one of its members. */
  differenceWithBelow(other: FieldSet): FieldSet {
    return this.without(other, (ours, theirs) => ({
      isMember: ours.isMember && !theirs.isMember,
      below: theirs.isMember ? FieldSet.empty : ours.below.differenceWithBelow(theirs.below),
    }));
  }

  equals(other: FieldSet): boolean {
    if (this === other) return true;
    if (this.entries.size !== other.entries.size) return false;
    for (const [element, ours] of this.entries) {
      const theirs = other.entries.get(element);
      if (theirs === undefined || ours.isMember !== theirs.isMember || !ours.below.equals(theirs.below)) return false;
    }
    return true;
  }

  /** Returns the top-level path elements in the order of structured-merge-diff. */
  sortedElements(): PathElement[] {
    const elements = [...this.entries.keys()];
    return elements.length > 1 ? elements.sort(comparePathElements) : elements;
  }

  /** Formats the members like `.spec.ports[port=80].name`; at each level, members precede the paths below them. */
  paths(prefix = ""): string[] {
    const elements = this.sortedElements();
    const members = elements.filter((element) => this.entries.get(element)?.isMember);
    return [
      ...members.map((element) => prefix + pathElementText(element)),
      ...elements.flatMap((element) => this.entries.get(element)?.below.paths(prefix + pathElementText(element)) ?? []),
    ];
  }

  private without(other: FieldSet, remaining: (ours: FieldEntry, theirs: FieldEntry) => FieldEntry): FieldSet {
    if (this.isEmpty || other.isEmpty) return this;
    const entries = new Map<PathElement, FieldEntry>();
    let hasChanged = false;
    for (const [element, ours] of this.entries) {
      const theirs = other.entries.get(element);
      const left = theirs === undefined ? ours : remaining(ours, theirs);
      if (left.isMember === ours.isMember && left.below === ours.below) {
        entries.set(element, ours);
        continue;
      }
      hasChanged = true;
      if (left.isMember || !left.below.isEmpty) entries.set(element, left);
    }
    return hasChanged ? FieldSet.from(entries) : this;
  }
}

/** Builds a set from paths. */
export class FieldSetBuilder {
  readonly #root = new Map<PathElement, GrowingEntry>();

  /** Adds a path; the empty path is ignored. */
  insert(path: readonly PathElement[]): void {
    let level = this.#root;
    path.forEach((element, index) => {
      let entry = level.get(element);
      if (entry === undefined) level.set(element, (entry = { isMember: false, below: new Map() }));
      if (index === path.length - 1) entry.isMember = true;
      level = entry.below;
    });
  }

  /** Returns the set of all paths added so far. */
  build(): FieldSet {
    return setOf(this.#root);
  }
}

interface GrowingEntry {
  isMember: boolean;
  below: Map<PathElement, GrowingEntry>;
}

function setOf(level: Map<PathElement, GrowingEntry>): FieldSet {
  const entries = new Map<PathElement, FieldEntry>();
  for (const [element, { isMember, below }] of level) entries.set(element, { isMember, below: setOf(below) });
  return FieldSet.from(entries);
}

// A path element is stored in its canonical FieldsV1 encoding, so that equal elements are equal strings: `f:<name>`, `k:<JSON of the key fields>`,
// `v:<JSON>`, `i:<index>`.

/** A path element in canonical FieldsV1 encoding. */
export type PathElement = string;

/** Returns the path element of a struct field or map key. */
export function fieldElement(name: string): PathElement {
  return `f:${name}`;
}

/** Returns the path element of an item of a keyed list; `keys` contains the key fields that the item sets. */
export function keyElement(keys: JsonObject): PathElement {
  return `k:${canonicalJson(keys)}`;
}

/** Returns the path element of an item of a set. */
export function valueElement(value: JsonValue): PathElement {
  return `v:${canonicalJson(value)}`;
}

/**
 * Parses a FieldsV1 key into its canonical form.
 *
 * Returns undefined for an unknown prefix, which is skipped; throws if the rest is invalid.
 */
function parsePathElement(text: string): PathElement | undefined {
  if (text.length < 2 || text[1] !== ":") throw new Error(`unable to parse path element ${quote(text)}`);
  const rest = text.slice(2);
  switch (text[0]) {
    case "f":
      return text;
    case "k": {
      const keys: unknown = JSON.parse(rest);
      if (!isObject(keys)) throw new Error(`unable to parse path element ${quote(text)}: not an object`);
      if (Object.keys(keys).length === 0) throw new Error(`unable to parse path element ${quote(text)}: no keys`);
      return keyElement(keys);
    }
    case "v":
      return valueElement(JSON.parse(rest) as JsonValue);
    case "i":
      if (!/^[+-]?\d+$/.test(rest)) throw new Error(`unable to parse path element ${quote(text)}: not a number`);
      return `i:${Number(rest)}`;
    default:
      return undefined;
  }
}

/** Formats a path element for messages: `.name`, `[port=80,protocol="TCP"]`, `[="value"]`, `[3]`. */
export function pathElementText(element: PathElement): string {
  const rest = element.slice(2);
  switch (element[0]) {
    case "f":
      return `.${rest}`;
    case "k":
      return `[${keyPairs(element)
        .map(([name, value]) => `${name}=${valueText(value)}`)
        .join(",")}]`;
    case "v":
      return `[=${valueText(JSON.parse(rest) as JsonValue)}]`;
    default:
      return `[${rest}]`;
  }
}

// As in structured-merge-diff, the fields of a map are printed without separators.
function valueText(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(valueText).join(",")}]`;
  if (!isObject(value)) return formatValue(value);
  return sortedPairs(value)
    .map(([name, member]) => `${name}=${valueText(member)}`)
    .join("");
}

/** Orders path elements as structured-merge-diff does: fields, keys, values, indices. */
function comparePathElements(a: PathElement, b: PathElement): number {
  if (a === b) return 0;
  if (a[0] !== b[0]) return "fkvi".indexOf(a[0] as string) - "fkvi".indexOf(b[0] as string);
  switch (a[0]) {
    case "f":
      return compareText(a, b);
    case "k":
      return compareKeys(keyPairs(a), keyPairs(b));
    case "v":
      return compareValues(JSON.parse(a.slice(2)) as JsonValue, JSON.parse(b.slice(2)) as JsonValue);
    default:
      return Number(a.slice(2)) - Number(b.slice(2));
  }
}

/** Orders values: numbers, strings, booleans, lists, maps, null. */
export function compareValues(a: JsonValue, b: JsonValue): number {
  const rank = valueRank(a) - valueRank(b);
  if (rank !== 0) return rank;
  if (typeof a === "number") return a - (b as number);
  if (typeof a === "string") return compareText(a, b as string);
  if (typeof a === "boolean") return Number(a) - Number(b);
  if (Array.isArray(a)) return compareLists(a, b as JsonValue[]);
  if (a === null) return 0;
  return compareKeys(sortedPairs(a), sortedPairs(b as JsonObject));
}

// Sorting compares the same elements repeatedly, so cache the parsed keys.
const PARSED_KEYS_LIMIT = 4096;
const parsedKeys = new Map<PathElement, MemberPair[]>();

function keyPairs(element: PathElement): MemberPair[] {
  let pairs = parsedKeys.get(element);
  if (pairs === undefined) {
    pairs = sortedPairs(JSON.parse(element.slice(2)) as JsonObject);
    if (parsedKeys.size >= PARSED_KEYS_LIMIT) parsedKeys.clear();
    parsedKeys.set(element, pairs);
  }
  return pairs;
}

function compareKeys(a: MemberPair[], b: MemberPair[]): number {
  for (let index = 0; index < a.length && index < b.length; index++) {
    const [nameA, valueA] = a[index] as MemberPair;
    const [nameB, valueB] = b[index] as MemberPair;
    const order = compareText(nameA, nameB) || compareValues(valueA, valueB);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareLists(a: JsonValue[], b: JsonValue[]): number {
  for (let index = 0; index < a.length && index < b.length; index++) {
    const order = compareValues(a[index] as JsonValue, b[index] as JsonValue);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function valueRank(value: JsonValue): number {
  if (value === null) return 5;
  if (Array.isArray(value)) return 3;
  return { number: 0, string: 1, boolean: 2, object: 4 }[typeof value as "number" | "string" | "boolean" | "object"];
}

// FieldsV1, the JSON encoding of a field set: `{"f:spec":{"f:replicas":{}}}`. A member without paths below is `{}`; a member with paths below
// contains ".".

// managedFields rarely change between writes, so the same encodings are decoded repeatedly.
const DECODED_LIMIT = 4096;
const decoded = new Map<string, FieldSet>();
const encoded = new WeakMap<FieldSet, JsonObject>();

/** Decodes a field set; throws if it is not valid FieldsV1. */
export function decodeFieldsV1(fields: JsonObject): FieldSet {
  const text = JSON.stringify(fields);
  const known = decoded.get(text);
  if (known !== undefined) return known;
  const set = decodeEntry(fields).below;
  if (decoded.size >= DECODED_LIMIT) decoded.delete(decoded.keys().next().value as string);
  decoded.set(text, set);
  return set;
}

/** Encodes a field set with its members in the order of Kubernetes. The result is cached and must not be modified. */
export function encodeFieldsV1(set: FieldSet): JsonObject {
  let fields = encoded.get(set);
  if (fields === undefined) {
    fields = {};
    for (const element of set.sortedElements()) {
      const { isMember, below } = set.entries.get(element) as FieldEntry;
      const inner = encodeFieldsV1(below);
      fields[element] = isMember && !below.isEmpty ? { ".": {}, ...inner } : inner;
    }
    encoded.set(set, fields);
  }
  return fields;
}

function decodeEntry(value: JsonValue | undefined): FieldEntry {
  if (value === null) return FieldSet.leaf;
  if (!isObject(value)) throw new Error("a FieldsV1 member is not an object");
  const names = Object.keys(value);
  if (names.length === 0) return FieldSet.leaf;
  const entries = new Map<PathElement, FieldEntry>();
  let isMember = false;
  for (const name of names) {
    if (name === ".") {
      isMember = true;
      continue;
    }
    const element = parsePathElement(name);
    if (element !== undefined) entries.set(element, decodeEntry(value[name]));
  }
  // An entry that contains only unknown path elements is treated as a leaf.
  return { isMember: isMember || entries.size === 0, below: FieldSet.from(entries) };
}
