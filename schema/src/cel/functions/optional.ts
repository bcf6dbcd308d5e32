// CEL's optional values. Their operators `.?` and `[?]` have been rewritten to calls (optional-syntax.ts).
import type { CelMap, CelValue } from "@bufbuild/cel";
import { OPTIONAL_FIELD, OPTIONAL_INDEX } from "../expression/optional-syntax.js";
import type { CelInput } from "../adapt-value.js";
import type { Library } from "../library.js";
import { kindOf, typesOf, type FunctionsOf } from "../kubernetes-value.js";

/** Returns an optional value, or `optional.none` if `value` is undefined. */
export function optionalOf({ celMap }: Library, value: CelInput | undefined): CelMap {
  const entries: [string, CelInput][] = [["@kind", "optional"]];
  return celMap(new Map(value === undefined ? entries : [...entries, ["value", value]]));
}

// The zero value of Go's time.Time is in the year 1.
function isZeroTime(value: CelValue): boolean {
  const { $typeName, seconds, nanos } =
    (value as { message?: { $typeName?: string; seconds?: bigint; nanos?: number } })?.message ?? {};
  if (nanos !== 0) return false;
  return $typeName === "google.protobuf.Timestamp" ? seconds === -62_135_596_800n : seconds === 0n;
}

/** `optional.of`, `optional.none`, and the methods of optional values. */
export const optionalFunctions: FunctionsOf = (library) => {
  const { celFunc, celMethod, isCelList, isCelMap } = library;
  const { BOOL, DYN, LIST, MAP, STRING } = typesOf(library);
  const valueOf = (optional: CelMap) => {
    if (kindOf(optional) !== "optional") throw new Error("no such overload: the value is not optional");
    return optional.get("value");
  };
  const memberOf = (value: CelValue, index: CelValue): CelValue | undefined => {
    if (isCelMap(value)) {
      const inner = kindOf(value) === "optional" ? value.get("value") : undefined;
      return kindOf(value) === "optional" ? inner && memberOf(inner, index) : value.get(index as string);
    }
    if (!isCelList(value)) throw new Error("no such overload");
    return value.get(Number(index));
  };
  const isZero = (value: CelValue): boolean =>
    [null, false, 0, 0n, ""].includes(value as null) ||
    ((isCelList(value) || isCelMap(value)) && value.size === 0) ||
    (value instanceof Uint8Array && value.length === 0) ||
    (library.isCelUint(value) && value.value === 0n) ||
    isZeroTime(value);
  const present = (value: CelValue): CelValue[] => {
    const inner = isCelMap(value) ? valueOf(value) : undefined;
    if (!isCelMap(value)) throw new Error("no such overload: the value is not optional");
    return inner === undefined ? [] : [inner];
  };
  return [
    celFunc("@present", [LIST, LIST], LIST, (items, optional) => {
      const indexes = new Set([...optional].map(Number));
      return [...items].flatMap((item, index) => (indexes.has(index) ? present(item) : [item])) as CelInput[];
    }),
    celFunc("@present", [MAP, LIST], MAP, (map, optional) => {
      const keys = new Set(optional);
      const entries = [...map.entries()].flatMap(([key, value]) =>
        (keys.has(key) ? present(value) : [value]).map((each): [string, CelInput] => [key as string, each as CelInput]),
      );
      return library.celMap(new Map(entries));
    }),
    celFunc("optional.of", [DYN], MAP, (value) => optionalOf(library, value)),
    celMethod(OPTIONAL_FIELD, DYN, [STRING], MAP, function (name) {
      return optionalOf(library, memberOf(this, name));
    }),
    celMethod(OPTIONAL_INDEX, DYN, [DYN], MAP, function (index) {
      return optionalOf(library, memberOf(this, index));
    }),
    celFunc("@oldField", [DYN, STRING], DYN, (value, name) => {
      if (!isCelMap(value)) throw new Error("no such overload");
      const member = memberOf(value, name);
      if (kindOf(value) === "optional") return optionalOf(library, member as CelInput | undefined);
      if (member === undefined) throw new Error(`no such key: ${name}`);
      return member;
    }),
    celFunc(
      "@hasOldField",
      [DYN, STRING],
      BOOL,
      (value, name) => isCelMap(value) && memberOf(value, name) !== undefined,
    ),
    celFunc("optional.ofNonZeroValue", [DYN], MAP, (value) =>
      optionalOf(library, isZero(value) ? undefined : (value as CelInput)),
    ),
    celFunc("optional.none", [], MAP, () => optionalOf(library, undefined)),
    celFunc("optional.unwrap", [LIST], LIST, (list) => [...list].flatMap(present) as CelInput[]),
    celMethod("unwrapOpt", LIST, [], LIST, function () {
      return [...this].flatMap(present) as CelInput[];
    }),
    celMethod("first", LIST, [], MAP, function () {
      return optionalOf(library, this.get(0) as CelInput | undefined);
    }),
    celMethod("last", LIST, [], MAP, function () {
      return optionalOf(library, this.get(this.size - 1) as CelInput | undefined);
    }),
    celMethod("hasValue", MAP, [], BOOL, function () {
      return valueOf(this) !== undefined;
    }),
    celMethod("value", MAP, [], DYN, function () {
      const value = valueOf(this);
      if (value === undefined) throw new Error("optional.none() dereference");
      return value;
    }),
    celMethod("orValue", MAP, [DYN], DYN, function (other) {
      return valueOf(this) ?? other;
    }),
    celMethod("or", MAP, [MAP], MAP, function (other) {
      return valueOf(this) === undefined ? other : this;
    }),
  ];
};
