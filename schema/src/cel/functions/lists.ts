// The Kubernetes CEL library for lists, the list and set extensions of CEL, and the functions that expanded macros call.
import type { CelList, CelValue } from "@bufbuild/cel";
import { spend } from "../budget.js";
import { equalityOf } from "../equality.js";
import { typesOf, type FunctionsOf } from "../kubernetes-value.js";
import type { CelInput } from "../adapt-value.js";

/** The functions on whole lists, such as `sum`, `isSorted`, and `sets.contains`. */
export const listFunctions: FunctionsOf = (library) => {
  const { celFunc, celMethod, celEnv, isCelError, isCelList } = library;
  const { BOOL, INT, DYN, LIST } = typesOf(library);
  const equals = equalityOf(library);
  const operator = (name: string, ...args: [CelValue, CelValue]): CelValue => {
    const result = celEnv().funcs.find(name)?.call(0, undefined, args);
    if (result === undefined || isCelError(result)) throw new Error(`no such overload: ${name}`);
    return result;
  };
  const isLess = (left: CelValue, right: CelValue) => operator("_<_", left, right) === true;
  const first = (list: CelList, isBetter: (one: CelValue, other: CelValue) => boolean): CelValue => {
    const items = itemsOf(list);
    if (items.length === 0) throw new Error("the list is empty");
    return items.reduce((best, item) => (isBetter(item, best) ? item : best));
  };
  const has = (list: CelList, item: CelValue) => itemsOf(list).some((each) => equals(each, item));
  const hasAll = (list: CelList, items: CelList) => itemsOf(items).every((item) => has(list, item));
  const flatten = (list: CelList, depth: bigint): CelValue[] =>
    itemsOf(list).flatMap((item) => (isCelList(item) && depth > 0n ? flatten(item, depth - 1n) : [item]));
  return [
    celMethod("isSorted", LIST, [], BOOL, function () {
      const items = itemsOf(this);
      return items.every((item, index) => index === 0 || !isLess(item, items[index - 1] ?? null));
    }),
    celMethod("sum", LIST, [], DYN, function () {
      const items = itemsOf(this);
      if (items.length === 0) return 0n;
      return items.reduce((sum, item) => operator("_+_", sum, item)) as bigint | number;
    }),
    celMethod("min", LIST, [], DYN, function () {
      return first(this, isLess);
    }),
    celMethod("max", LIST, [], DYN, function () {
      return first(this, (one, other) => isLess(other, one));
    }),
    celMethod("indexOf", LIST, [DYN], INT, function (item) {
      return BigInt(itemsOf(this).findIndex((each) => equals(each, item)));
    }),
    celMethod("lastIndexOf", LIST, [DYN], INT, function (item) {
      return BigInt(itemsOf(this).reduce<number>((last, each, index) => (equals(each, item) ? index : last), -1));
    }),
    celMethod("distinct", LIST, [], LIST, function () {
      return itemsOf(this).reduce<CelValue[]>(
        (kept, item) => (kept.some((each) => equals(each, item)) ? kept : [...kept, item]),
        [],
      );
    }),
    celMethod("reverse", LIST, [], LIST, function () {
      return itemsOf(this).reverse();
    }),
    celMethod("sort", LIST, [], LIST, function () {
      return itemsOf(this).sort((one, other) => (isLess(one, other) ? -1 : isLess(other, one) ? 1 : 0));
    }),
    celMethod("slice", LIST, [INT, INT], LIST, function (start, end) {
      if (start < 0n || end < start || end > BigInt(this.size))
        throw new Error(`cannot slice(${start}, ${end}), list is length ${this.size}`);
      return itemsOf(this).slice(Number(start), Number(end));
    }),
    celMethod("flatten", LIST, [], LIST, function () {
      return flatten(this, 1n);
    }),
    celMethod("flatten", LIST, [INT], LIST, function (depth) {
      if (depth < 0n) throw new Error("level must be non-negative");
      return flatten(this, depth);
    }),
    celFunc("lists.range", [INT], LIST, (end) => {
      spend(Number(end));
      return Array.from({ length: Math.max(0, Number(end)) }, (_, index) => BigInt(index));
    }),
    celFunc("sets.contains", [LIST, LIST], BOOL, hasAll),
    celFunc("sets.equivalent", [LIST, LIST], BOOL, (one, other) => hasAll(one, other) && hasAll(other, one)),
    celFunc("sets.intersects", [LIST, LIST], BOOL, (one, other) => itemsOf(one).some((item) => has(other, item))),
  ];
};

/** The functions that expanded macros call: `@keys`, `@at`, `@sortBy`, `@mapOf`, and `@merged`. */
export const macroFunctions: FunctionsOf = (library) => {
  const { celFunc, celEnv, celMap, isCelError, isCelList, isCelMap } = library;
  const { DYN, LIST, MAP } = typesOf(library);
  const isLess = (left: CelValue, right: CelValue): boolean => {
    const result = celEnv().funcs.find("_<_")?.call(0, undefined, [left, right]);
    if (result === undefined || isCelError(result)) throw new Error("no such overload");
    return result === true;
  };
  const mapOf = (entries: readonly (readonly [CelValue, CelValue])[]) => {
    const made = new Map<string, CelInput>();
    for (const [key, value] of entries) {
      if (made.has(key as string)) throw new Error(`insert failed: key ${String(key)} already exists`);
      made.set(key as string, value as CelInput);
    }
    return celMap(made);
  };
  return [
    celFunc("@keys", [DYN], LIST, (range) => {
      if (isCelMap(range)) return [...range.keys()] as CelInput[];
      if (isCelList(range)) return Array.from({ length: range.size }, (_, index) => BigInt(index));
      throw new Error("no such overload");
    }),
    celFunc("@at", [DYN, DYN], DYN, (range, key) => {
      const value = isCelMap(range) ? range.get(key as string) : isCelList(range) ? range.get(Number(key)) : undefined;
      return (value ?? null) as CelInput;
    }),
    celFunc("@sortBy", [LIST, LIST], LIST, (list, keys) => {
      const sortKeys = itemsOf(keys);
      const sorted = itemsOf(list).map((item, index) => ({ item, key: sortKeys[index] ?? null }));
      sorted.sort((one, other) => (isLess(one.key, other.key) ? -1 : isLess(other.key, one.key) ? 1 : 0));
      return sorted.map(({ item }) => item) as CelInput[];
    }),
    celFunc("@mapOf", [LIST], MAP, (pairs) =>
      mapOf(
        itemsOf(pairs).map((pair) => (isCelList(pair) ? [pair.get(0) ?? null, pair.get(1) ?? null] : [null, null])),
      ),
    ),
    celFunc("@merged", [LIST], MAP, (maps) =>
      mapOf(itemsOf(maps).flatMap((map) => (isCelMap(map) ? [...map.entries()] : []))),
    ),
  ];
};

function itemsOf(list: CelList): CelValue[] {
  spend(list.size);
  return [...list];
}
