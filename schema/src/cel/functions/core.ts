// Functions and operators of CEL for which the evaluator differs from the API server, or that must be charged to the cost budget.
import type { CelValue } from "@bufbuild/cel";
import { spend, spendText } from "../budget.js";
import { parseDuration, timeOf, type CelInput } from "../adapt-value.js";
import { equalityOf, joinLists, keepMerging } from "../equality.js";
import { kindOf, typesOf, valueOfKind, type FunctionsOf } from "../kubernetes-value.js";

const INTEGER = /^[+-]?\d+$/;
const GO_DURATION = /^[+-]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|\u03bcs|ms|s|m|h))+)$/;
const TRUE = /^(1|t|T|TRUE|true|True)$/;
const FALSE = /^(0|f|F|FALSE|false|False)$/;
const NUMBER = /^[+-]?((\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)$/i;

/** The CEL type names of Kubernetes values. */
const KIND_TYPES: { readonly [kind: string]: string } = {
  ip: "net.IP",
  cidr: "net.CIDR",
  optional: "optional_type",
  quantity: "kubernetes.Quantity",
  semver: "kubernetes.Semver",
  url: "kubernetes.URL",
  format: "kubernetes.NamedFormat",
};

/** The functions of the language itself, and the internal ones that prepared expressions call. */
export const coreFunctions: FunctionsOf = (library) => {
  const { celFunc, celMethod, celList, isCelList, isCelMap, objectType, celEnv, DurationSchema, TimestampSchema } =
    library;
  const { BOOL, STRING, INT, UINT, DOUBLE, DYN, LIST, MAP, TYPE } = typesOf(library);
  const DURATION = objectType(DurationSchema);
  const TIMESTAMP = objectType(TimestampSchema);
  const equals = equalityOf(library);
  const standardType = celEnv().funcs.find("type")!;
  const collected = new WeakMap<object, CelValue[]>();
  return [
    celFunc("@step", [BOOL], BOOL, (goesOn) => {
      spend(1);
      return goesOn;
    }),
    celFunc("@range", [DYN], DYN, (range) => {
      if (isCelList(range) || isCelMap(range)) spend(Math.ceil(range.size / 10));
      return range;
    }),
    celFunc("@collector", [LIST], LIST, () => {
      const items: CelValue[] = [];
      const list = celList(items);
      collected.set(list, items);
      return list;
    }),
    celFunc("@collect", [LIST, LIST], LIST, (list, added) => {
      collected.get(list)?.push(...added);
      return list;
    }),
    celFunc("@type", [STRING], MAP, (name) => valueOfKind(library, "type", { name })),
    celFunc("type", [DYN], TYPE, (value) => {
      const kind = isCelMap(value) ? kindOf(value) : undefined;
      if (typeof kind !== "string") return standardType.call(0, undefined, [value]) as CelInput;
      return kind === "type" ? TYPE : valueOfKind(library, "type", { name: KIND_TYPES[kind] ?? kind });
    }),
    // Only maps have fields.
    celFunc("@has", [DYN, STRING], BOOL, (value, name) => isCelMap(value) && value.get(name) !== undefined),
    celFunc("@in", [STRING, MAP], BOOL, (key, map) => map.get(key) !== undefined),
    celFunc("@in", [DYN, LIST], BOOL, (value, list) => {
      for (const each of list) {
        spend(1);
        if (equals(each, value)) return true;
      }
      return false;
    }),
    celFunc("_==_", [DYN, DYN], BOOL, equals),
    celFunc("_!=_", [DYN, DYN], BOOL, (left, right) => !equals(left, right)),
    celFunc("_+_", [STRING, STRING], STRING, (left, right) => {
      spendText(left);
      spendText(right);
      return left + right;
    }),
    celFunc("_+_", [LIST, LIST], LIST, (left, right) => {
      spend(left.size + right.size);
      return keepMerging(celList(joinLists([left, right], equals) as CelInput[]), left);
    }),
    celMethod("contains", STRING, [STRING], BOOL, function (part) {
      spendText(this);
      return this.includes(part);
    }),
    celFunc("int", [STRING], INT, (text) => checkInteger(text, { type: "int", min: -(2n ** 63n), end: 2n ** 63n })),
    celFunc("uint", [STRING], UINT, (text) =>
      library.celUint(checkInteger(text, { type: "uint", min: 0n, end: 2n ** 64n })),
    ),
    celFunc("double", [STRING], DOUBLE, checkNumber),
    celFunc("bool", [STRING], BOOL, (text) => {
      if (!TRUE.test(text) && !FALSE.test(text)) throw conversionError("bool");
      return TRUE.test(text);
    }),
    celFunc("duration", [STRING], DURATION, (text) => {
      const duration = GO_DURATION.test(text) ? parseDuration(text) : undefined;
      if (duration === undefined) throw conversionError("google.protobuf.Duration");
      return duration;
    }),
    celFunc("timestamp", [INT], TIMESTAMP, (seconds) => timeOf(seconds)),
    celMethod("getMilliseconds", DURATION, [], INT, function () {
      return this.message.seconds * 1000n + BigInt(Math.trunc(this.message.nanos / 1e6));
    }),
    celFunc("string", [MAP], STRING, (map) => {
      if (kindOf(map) !== "ip" && kindOf(map) !== "cidr") throw new Error("no such overload: string(map)");
      return map.get("text") as string;
    }),
  ];
};

function conversionError(type: string): Error {
  return new Error(`type conversion error from 'string' to '${type}'`);
}

function checkInteger(text: string, { type, min, end }: { type: string; min: bigint; end: bigint }): bigint {
  if (!INTEGER.test(text) || text.length > 25) throw conversionError(type);
  const value = BigInt(text.replace("+", ""));
  if (value < min || value >= end) throw conversionError(type);
  return value;
}

function checkNumber(text: string): number {
  if (!NUMBER.test(text)) throw conversionError("double");
  const [, sign, name] = /^([+-]?)(inf|nan)/i.exec(text) ?? [];
  if (name === undefined) {
    if (!Number.isFinite(Number(text))) throw conversionError("double");
    return Number(text);
  }
  return name.toLowerCase() === "nan" ? NaN : sign === "-" ? -Infinity : Infinity;
}
