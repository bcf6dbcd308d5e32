// Equality and concatenation of CEL values by list type: the order of a set does not matter, and the items of a `map` list are identified by their
// keys (UnstructuredToVal of k8s.io/apiserver/pkg/cel/common). CEL values do not carry a list type, so weak maps record it.
import { isDeepStrictEqual } from "node:util";
import type { CelList, CelMap, CelValue } from "@bufbuild/cel";
import type { Library } from "./library.js";
import { spend, spendText } from "./budget.js";

/** A list type for which the order of the items does not matter. */
type Merging = "set" | "map";

/** The identity of an item of a `map` list: the values of its keys as JSON. */
const itemKeys = new WeakMap<object, string>();
const mergings = new WeakMap<object, Merging>();
const unknowns = new WeakMap<object, ReadonlyMap<string, unknown>>();
const NOTHING: ReadonlyMap<string, unknown> = new Map();

/** Records the list type of a list. */
export function setMerging(list: CelList, merging: Merging): void {
  mergings.set(list, merging);
}

/** Records the keys that identify an item of a `map` list. */
export function setKey(item: object, key: string): void {
  itemKeys.set(item, key);
}

/** Records the fields of an object that its schema does not declare. */
export function setUnknown(map: CelMap, members: ReadonlyMap<string, unknown>): void {
  if (members.size > 0) unknowns.set(map, members);
}

/** Returns a function that compares values by the list types of the left one. `isSame` compares values that are neither lists nor maps. */
function createComparison(
  library: Library,
  isSame: (left: CelValue, right: CelValue) => boolean,
): (left: CelValue, right: CelValue) => boolean {
  const { isCelList, isCelMap } = library;
  const areEqualLists = (left: CelList, right: CelList): boolean => {
    if (left.size !== right.size) return false;
    const merging = mergings.get(left);
    const others = [...right];
    if (merging === undefined) return [...left].every((item, index) => equal(item, others[index] as CelValue));
    const index = new ItemIndex(merging, equal);
    for (const item of left) index.add(item);
    return others.every((item) => {
      const found = index.find(item);
      return found !== undefined && equal(found, item);
    });
  };
  const areEqualMaps = (left: CelMap, right: CelMap): boolean => {
    const [own, others] = [unknowns.get(left) ?? NOTHING, unknowns.get(right) ?? NOTHING];
    if (left.size + own.size !== right.size + others.size) return false;
    const isKnown = [...left.entries()].every(([name, member]) => {
      const other = right.get(name);
      return other !== undefined && equal(member, other);
    });
    const isSameUnknown = (name: string, member: unknown) =>
      !others.has(name) || isDeepStrictEqual(member, others.get(name));
    return isKnown && [...own].every(([name, member]) => isSameUnknown(name, member));
  };
  const equal = (left: CelValue, right: CelValue): boolean => {
    if (isCelList(left) && isCelList(right)) return areEqualLists(left, right);
    if (isCelMap(left) && isCelMap(right)) return areEqualMaps(left, right);
    return isSame(left, right);
  };
  return equal;
}

/** An index of the items of a list by identity. If several items of a `map` list have the same keys, the last one is found. */
class ItemIndex {
  readonly #merging: Merging;
  readonly #equal: (left: CelValue, right: CelValue) => boolean;
  readonly #items = new Map<string | undefined, CelValue[]>();

  constructor(merging: Merging, equal: (left: CelValue, right: CelValue) => boolean) {
    this.#merging = merging;
    this.#equal = equal;
  }

  find(item: CelValue): CelValue | undefined {
    const alike = this.#items.get(this.#keyOf(item)) ?? [];
    return this.#merging === "map" ? alike.at(-1) : alike.find((each) => this.#equal(each, item));
  }

  add(item: CelValue): void {
    const key = this.#keyOf(item);
    const alike = this.#items.get(key);
    if (alike === undefined) this.#items.set(key, [item]);
    else alike.push(item);
  }

  #keyOf(item: CelValue): string | undefined {
    if (this.#merging === "map") return itemKeys.get(item as object);
    // An int equals a double of the same value.
    if (typeof item === "number" || typeof item === "bigint") return `number ${Number(item)}`;
    return typeof item === "object" ? undefined : `${typeof item} ${item}`;
  }
}

/**
 * Concatenates two lists by the list type of the left one: a set is extended by the missing items, and an item of a `map` list is replaced by the
 * item of the right list with the same keys.
 */
export function joinLists(
  [left, right]: readonly [CelList, CelList],
  equal: (left: CelValue, right: CelValue) => boolean,
): CelValue[] {
  const merging = mergings.get(left);
  if (merging === undefined) return [...left, ...right];
  const index = new ItemIndex(merging, equal);
  const places = new Map<CelValue, number>();
  const joined: CelValue[] = [];
  const put = (item: CelValue, at = joined.length) => {
    joined[at] = item;
    places.set(item, at);
    index.add(item);
  };
  for (const item of left) put(item);
  for (const item of right) {
    const found = index.find(item);
    if (found === undefined) put(item);
    else if (merging === "map") put(item, places.get(found));
  }
  return joined;
}

/** Copies the list type of another list. */
export function keepMerging(list: CelList, of: CelList): CelList {
  const merging = mergings.get(of);
  if (merging !== undefined) mergings.set(list, merging);
  return list;
}

/** Tests two values for equality in CEL. The comparison is not charged; the caller does that. */
type Equals = (left: CelValue, right: CelValue) => boolean;

let loaded: Equals | undefined;

/** Returns the equality of CEL, which the evaluator exposes only as an operator. */
export function equalityOf(library: Library): Equals {
  return (loaded ??= createEquality(library));
}

function createEquality(library: Library): Equals {
  const { celEnv, isCelList, isCelMap } = library;
  const operator = celEnv().funcs.find("_==_");
  const weigh = (value: CelValue): void => {
    if (typeof value === "string" || value instanceof Uint8Array) spendText(value);
    else if (isCelList(value) || isCelMap(value)) {
      spend(value.size);
      for (const each of value.values()) weigh(each);
    } else spend(1);
  };
  const differsInSize = (left: CelValue, right: CelValue) =>
    isCelList(left) && isCelList(right) && left.size !== right.size;
  const compare = createComparison(library, (left, right) => operator?.call(0, undefined, [left, right]) === true);
  return (left, right) => {
    if (differsInSize(left, right)) return false;
    weigh(left);
    return compare(left, right);
  };
}
