// CEL's optional values, without the operators `.?` and `[?]`, which the parser does not know.
import type { CelMap } from "@bufbuild/cel";
import type { CelInput } from "../adapt-value.js";
import type { Library } from "../library.js";
import { kindOf, typesOf, type FunctionsOf } from "./values.js";

/** Returns an optional value; none if nothing is given. */
export function optionalOf({ celMap }: Library, value: CelInput | undefined): CelMap {
  const entries: [string, CelInput][] = [["@kind", "optional"]];
  return celMap(new Map(value === undefined ? entries : [...entries, ["value", value]]));
}

/** `optional.of`, `optional.none` and what an optional value can do. */
export const optionalFunctions: FunctionsOf = (library) => {
  const { celFunc, celMethod } = library;
  const { BOOL, DYN, MAP } = typesOf(library);
  const valueOf = (optional: CelMap) => {
    if (kindOf(optional) !== "optional") throw new Error("no such overload: the value is not optional");
    return optional.get("value");
  };
  return [
    celFunc("optional.of", [DYN], MAP, (value) => optionalOf(library, value)),
    celFunc("optional.none", [], MAP, () => optionalOf(library, undefined)),
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
