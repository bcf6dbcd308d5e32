// What expanded macros call (expand-macros.ts).
import type { CelList, CelValue } from "@bufbuild/cel";
import { spend } from "../budget.js";
import { typesOf, type FunctionsOf } from "../kubernetes-value.js";
import type { CelInput } from "../adapt-value.js";

/** `@keys`, `@at`, `@sortBy`, `@mapOf` and `@merged`. */
export const macroFunctions: FunctionsOf = (library) => {
  const { celFunc, celEnv, celMap, isCelError, isCelList, isCelMap } = library;
  const { DYN, LIST, MAP } = typesOf(library);
  const isLess = (left: CelValue, right: CelValue): boolean => {
    const result = celEnv().funcs.find("_<_")?.call(0, undefined, [left, right]);
    if (result === undefined || isCelError(result)) throw new Error("no such overload");
    return result === true;
  };
  const itemsOf = (list: CelList): CelValue[] => {
    spend(list.size);
    return [...list];
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
