import { canBeSame, DYN, type CheckedType } from "./types.js";

const BOOL: CheckedType = { kind: "bool" };
const NUMBERS: ReadonlySet<string> = new Set(["int", "uint", "double"]);
const ORDERED: ReadonlySet<string> = new Set([...NUMBERS, "bool", "string", "bytes", "timestamp", "duration"]);
const ARITHMETIC: ReadonlySet<string> = new Set(["_-_", "_*_", "_/_", "_%_"]);
const ORDER: ReadonlySet<string> = new Set(["_<_", "_<=_", "_>_", "_>=_"]);
const TIMES: ReadonlySet<string> = new Set(["timestamp", "duration"]);

/** Returns the type of an operator's result; undefined if the operator does not take these types, or is none. */
export function resultOf(name: string, types: readonly CheckedType[]): CheckedType | undefined {
  const [one = DYN, other = DYN, third = DYN] = types;
  const isOpen = one.kind === "dyn" || other.kind === "dyn";
  const areBoth = (kinds: ReadonlySet<string>) => isOpen || (kinds.has(one.kind) && one.kind === other.kind);
  if (name === "!_") return isOf(one, "bool") ? BOOL : undefined;
  if (name === "-_") return isOf(one, "int", "double") ? one : undefined;
  if (name === "_==_" || name === "_!=_") return canBeSame(one, other) ? BOOL : undefined;
  if (ORDER.has(name)) return areBoth(ORDERED) || (NUMBERS.has(one.kind) && NUMBERS.has(other.kind)) ? BOOL : undefined;
  if (name === "_?_:_") return isOf(one, "bool") && canBeSame(other, third) ? joined(other, third) : undefined;
  if (name === "_[_]") return elementAt(one, other);
  if (name === "@in" || name === "_in_") return isOf(other, "list", "map") ? BOOL : undefined;
  if (name === "_+_" && TIMES.has(one.kind) && TIMES.has(other.kind))
    return one.kind === "timestamp" && other.kind === "timestamp" ? undefined : { kind: either(one, other) };
  if (name === "_-_" && one.kind === "timestamp" && TIMES.has(other.kind))
    return { kind: other.kind === "timestamp" ? "duration" : "timestamp" };
  if (name === "_-_" && one.kind === "duration" && other.kind === "duration") return one;
  if (name === "_+_" && one.kind === "list" && other.kind === "list")
    return canBeSame(one, other) ? (one.element.kind === "dyn" ? other : one) : undefined;
  if (name === "_+_") return areBoth(new Set([...NUMBERS, "string", "bytes"])) ? (isOpen ? DYN : one) : undefined;
  if (ARITHMETIC.has(name)) return areBoth(NUMBERS) ? (isOpen ? DYN : one) : undefined;
  return undefined;
}

/** Tells whether a name is that of an operator. */
export function isOperator(name: string): boolean {
  return /^([!-]_|_[^a-z]+_|_\[_\]|_\?_:_|@in|_in_)$/.test(name);
}

function isOf(type: CheckedType, ...kinds: readonly CheckedType["kind"][]): boolean {
  return type.kind === "dyn" || kinds.includes(type.kind);
}

function either(one: CheckedType, other: CheckedType): "timestamp" | "duration" {
  return one.kind === "timestamp" || other.kind === "timestamp" ? "timestamp" : "duration";
}

function joined(one: CheckedType, other: CheckedType): CheckedType {
  if (one.kind === "list" && other.kind === "list" && one.element.kind === "dyn") return other;
  return one.kind === other.kind && one.kind !== "object" ? one : one.kind === "null" ? other : DYN;
}

function elementAt(type: CheckedType, index: CheckedType): CheckedType | undefined {
  if (type.kind === "optional") return type;
  if (type.kind === "list") return isOf(index, "int", "uint", "double") ? type.element : undefined;
  if (type.kind === "map") return isOf(index, "string") ? type.element : undefined;
  return type.kind === "dyn" ? DYN : undefined;
}
