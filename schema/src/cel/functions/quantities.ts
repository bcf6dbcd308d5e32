// The Kubernetes CEL library for quantities.
import type { CelMap } from "@bufbuild/cel";
import { canonicalQuantity, parseQuantity } from "../../strings/quantity.js";
import { spendText } from "../budget.js";
import { compareVersions } from "./semver.js";
import { fieldOf, kindOf, typesOf, valueOfKind, type FunctionsOf } from "../kubernetes-value.js";

const ONE = 1_000_000_000n;
const MAX_INT = 2n ** 63n;

/** `quantity`, `isQuantity`, and the methods of quantities. The comparison methods also accept versions, which have methods of the same names. */
export const quantityFunctions: FunctionsOf = (library) => {
  const { celFunc, celMethod } = library;
  const { BOOL, STRING, INT, DOUBLE, MAP } = typesOf(library);
  const quantity = (nanos: bigint) => valueOfKind(library, "quantity", { nanos });
  const nanosOf = (value: CelMap): bigint => fieldOf(value, "quantity", "nanos");
  const compare = (one: CelMap, other: CelMap): number =>
    kindOf(one) === "semver" ? compareVersions(one, other) : Number(nanosOf(one) - nanosOf(other));
  const isInteger = (nanos: bigint) => nanos % ONE === 0n && nanos / ONE < MAX_INT && nanos / ONE >= -MAX_INT;
  return [
    celFunc("quantity", [STRING], MAP, (text) => {
      const nanos = read(text);
      if (nanos === undefined) throw new Error(problemOf(text));
      return quantity(nanos);
    }),
    celFunc("isQuantity", [STRING], BOOL, (text) => read(text) !== undefined),
    // The Kubernetes documentation lists `sign` as a method, but the API server declares a function.
    celFunc("sign", [MAP], INT, (value) => BigInt(Math.sign(Number(nanosOf(value))))),
    celMethod("isInteger", MAP, [], BOOL, function () {
      return isInteger(nanosOf(this));
    }),
    celMethod("asInteger", MAP, [], INT, function () {
      if (!isInteger(nanosOf(this))) throw new Error("cannot convert value to integer");
      return nanosOf(this) / ONE;
    }),
    celMethod("asApproximateFloat", MAP, [], DOUBLE, function () {
      return Number(nanosOf(this)) / Number(ONE);
    }),
    celMethod("isGreaterThan", MAP, [MAP], BOOL, function (other) {
      return compare(this, other) > 0;
    }),
    celMethod("isLessThan", MAP, [MAP], BOOL, function (other) {
      return compare(this, other) < 0;
    }),
    celMethod("compareTo", MAP, [MAP], INT, function (other) {
      return BigInt(Math.sign(compare(this, other)));
    }),
    celMethod("add", MAP, [MAP], MAP, function (other) {
      return quantity(nanosOf(this) + nanosOf(other));
    }),
    celMethod("add", MAP, [INT], MAP, function (other) {
      return quantity(nanosOf(this) + other * ONE);
    }),
    celMethod("sub", MAP, [MAP], MAP, function (other) {
      return quantity(nanosOf(this) - nanosOf(other));
    }),
    celMethod("sub", MAP, [INT], MAP, function (other) {
      return quantity(nanosOf(this) - other * ONE);
    }),
  ];
};

function read(text: string): bigint | undefined {
  spendText(text);
  return text === text.trim() ? parseQuantity(text) : undefined;
}

function problemOf(text: string): string {
  // Surrounding spaces are invalid in a quantity.
  const read = canonicalQuantity(text === text.trim() ? text : "");
  return "problem" in read ? read.problem : "";
}
