// Upper bounds of the cost of calls and the size of their results, by the sizes of their arguments (k8s.io/apiserver/pkg/cel/library, cel-go's
// checker and ext). Sizes and costs are unsigned 64-bit integers with saturating arithmetic.
import type { CheckedType } from "../check/types.js";

/** The greatest size or cost, used for unbounded values. */
export const UNBOUNDED = 2 ** 64;

/** The inclusive bounds of a size. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/** The size of a value without known bounds. */
export const ANY_SIZE: Range = { min: 0, max: UNBOUNDED };

/** Returns the range of a known size. */
export function fixed(size: number): Range {
  return { min: size, max: size };
}

function plus(one: Range, other: Range): Range {
  return { min: bounded(one.min + other.min), max: bounded(one.max + other.max) };
}

function times(one: Range, other: Range): Range {
  return { min: product(one.min, other.min), max: product(one.max, other.max) };
}

/** Multiplies both bounds by a factor and rounds them up. */
function scaled({ min, max }: Range, factor: number): Range {
  return { min: bounded(Math.ceil(min * factor)), max: bounded(Math.ceil(max * factor)) };
}

/** Returns the smallest range that contains both ranges. */
export function union(one: Range, other: Range): Range {
  return { min: Math.min(one.min, other.min), max: Math.max(one.max, other.max) };
}

/** Limits a number to the maximum. */
export function bounded(value: number): number {
  return Math.min(value, UNBOUNDED);
}

function product(one: number, other: number): number {
  return one === 0 || other === 0 ? 0 : bounded(one * other);
}

/** The target or an argument of a call. */
export interface Operand {
  readonly type: CheckedType;
  readonly size: Range;
  /** The size of an element, if the operand is a list. */
  readonly itemSize: Range;
  /** Whether it is a quantity, address, or other opaque value, which is compared at constant cost. */
  readonly isOpaque: boolean;
  /** The value, if it is an integer literal. */
  readonly number: number | undefined;
}

/** The maximum cost of a call, excluding its arguments, and the size of its result. */
interface CallCost {
  readonly cost: number;
  readonly size?: Range;
}

type Estimate = (on: Operand | undefined, args: readonly Operand[]) => CallCost | undefined;

const CHARACTER = 0.1;
const PATTERN = 0.25;
const LIST_COST = 10;
const ONE: CallCost = { cost: 1 };

const read = (size: Range, factor = CHARACTER): CallCost => ({ cost: scaled(size, factor).max });
const readSame = (operand: Operand | undefined): CallCost | undefined =>
  operand && { ...read(operand.size), size: operand.size };
const ofFirst: Estimate = (_, [first]) => first && read(first.size);
const isText = ({ kind }: CheckedType) => kind === "string" || kind === "bytes";

const forEach: Estimate = (on) => {
  if (on === undefined) return undefined;
  if (on.type.kind !== "list") return read(on.size);
  const item = isText(on.type.element) ? 1 + scaled(on.itemSize, CHARACTER).max : 1;
  return { cost: on.size.max === 0 ? 0 : bounded(on.size.max * item) };
};
const find: Estimate = (on, [pattern]) => {
  if (on === undefined || pattern === undefined) return undefined;
  const text = scaled(plus(on.size, fixed(1)), CHARACTER).max;
  return { cost: product(text, scaled(pattern.size, PATTERN).max), size: { min: 0, max: on.size.max } };
};
const newList = (factor: number, size: Range): CallCost => ({
  cost: bounded(scaled(size, factor).max + 1 + LIST_COST),
  size,
});
const sort: Estimate = (on) =>
  on && newList(on.type.kind === "list" && isText(on.type.element) ? 2.1 : 2, times(on.size, on.size));
const sortBy: Estimate = (on, [keys]) => on && sort(keys, []);
const sets =
  (factor: number): Estimate =>
  (_, [one, other]) =>
    one && other && { cost: bounded(scaled(times(one.size, other.size), factor).max + 1) };

const replace: Estimate = (on, [part, by]) => {
  if (on === undefined || part === undefined || by === undefined) return undefined;
  const text = on.size;
  let [count, kept] = [fixed(0), fixed(0)];
  if (part.size.min === 0)
    [count, kept] = [
      { min: 0, max: bounded(text.max + 1) },
      { min: 0, max: text.max },
    ];
  else if (by.size.max <= part.size.min) kept = { min: 0, max: text.max };
  else count = { min: 0, max: Math.ceil(text.max / part.size.min) };
  if (part.size.max === 0)
    [count, kept] = [
      { ...count, min: bounded(text.min + 1) },
      { ...kept, min: text.min },
    ];
  else if (part.size.max <= by.size.min) kept = { ...kept, min: text.min };
  else count = { ...count, min: Math.ceil(text.min / part.size.max) };
  return { ...read(text, 2 * CHARACTER), size: plus(times(count, by.size), kept) };
};
const join: Estimate = (on, [separator]) => {
  if (on === undefined) return undefined;
  const between = { min: Math.max(0, on.size.min - 1), max: Math.max(0, on.size.max - 1) };
  const items = times(on.size, on.itemSize);
  const size = separator === undefined ? items : plus(items, times(separator.size, between));
  return { ...read(size), size };
};

// The binary size of two addresses, scaled as in the traversal of a string.
const ADDRESS = scaled(fixed(32), CHARACTER).max;
const contains =
  (more: number): Estimate =>
  (_, [other]) =>
    other && { cost: bounded(ADDRESS + more + (other.type.kind === "string" ? scaled(other.size, CHARACTER).max : 0)) };

// The fixed cost of an authorization check. Three checks exceed the cost limit of one expression (RULE_LIMIT).
const ACCESS_CHECK = 350_000;

const ESTIMATES: { readonly [name: string]: Estimate } = {
  ...forAll("isSorted sum max min indexOf lastIndexOf", forEach),
  ...forAll("url jsonpatch.escapeKey", (_, [first]) => readSame(first)),
  ...forAll("lowerAscii upperAscii substring trim", (on) => readSame(on)),
  ...forAll("cidr isIP isCIDR quantity isQuantity semver isSemver startsWith endsWith", ofFirst),
  ...forAll("find findAll", find),
  ip: (on, [first]) => (on !== undefined ? ONE : first && read(first.size)),
  "ip.isCanonical": (_, [first]) => first && read(first.size, 2 * CHARACTER),
  check: () => ({ cost: ACCESS_CHECK }),
  replace,
  split: (on, [, most]) =>
    on && { ...read(on.size, 2 * CHARACTER), size: { min: 0, max: most?.number ?? on.size.max } },
  join,
  containsIP: contains(0),
  containsCIDR: contains(scaled(fixed(16), CHARACTER).max + 1),
  validate: (_, [text]) => text && { cost: bounded(Math.ceil(scaled(text.size, CHARACTER).max * 128 * PATTERN)) },
  matches: (on, [pattern]) => {
    const found = find(on, pattern === undefined ? [] : [pattern]);
    return found && { cost: found.cost };
  },
  contains: (on, [part]) =>
    on && part && { cost: product(scaled(on.size, CHARACTER).max, scaled(part.size, CHARACTER).max) },
  "sets.contains": sets(1),
  "sets.intersects": sets(1),
  "sets.equivalent": sets(2),
  slice: (on, [start, end]) => on && newList(1, fixed((end?.number ?? on.size.max) - (start?.number ?? 0))),
  "lists.range": (_, [end]) => newList(1, fixed(end?.number ?? UNBOUNDED)),
  reverse: (on) => on && newList(1, on.size),
  flatten: (on, [depth]) => on && newList(depth === undefined ? 1 : (depth.number ?? UNBOUNDED), on.size),
  distinct: (on) => on && newList(2, times(on.size, on.size)),
  sort,
  "@sortByAssociatedKeys": sortBy,
  format: (on) => on && read(on.size),
  "strings.quote": (_, [text]) =>
    text && { ...read(text.size), size: { min: bounded(text.size.min + 2), max: bounded(text.size.max * 2 + 2) } },
  bytes: (_, [text]) =>
    text?.type.kind === "string"
      ? { ...read(text.size), size: { min: text.size.min, max: bounded(text.size.max * 4) } }
      : ONE,
  string: (_, [value]) =>
    value?.type.kind === "bytes"
      ? { ...read(value.size), size: { min: Math.floor(value.size.min / 4), max: value.size.max } }
      : ONE,
  "@in": (_, [, container]) => (container?.type.kind === "map" ? ONE : container && { cost: container.size.max }),
  "_+_": (_, [one, other]) => one && other && sum(one, other),
  ...forAll("_==_ _!=_", (_, [one, other]) => one && other && compared(one, other)),
  ...forAll("_<_ _<=_ _>_ _>=_", (_, [one, other]) =>
    one && other && (mayBeText(one) || mayBeText(other)) ? compared(one, other) : ONE,
  ),
};

/** Returns the maximum cost of a call, excluding its arguments. */
export function callCostOf(name: string, on: Operand | undefined, args: readonly Operand[]): CallCost {
  return ESTIMATES[name]?.(on, args) ?? ONE;
}

function sum(one: Operand, other: Operand): CallCost {
  const size = plus(one.size, other.size);
  const kinds = [one.type.kind, other.type.kind];
  if (kinds.includes("list")) return { cost: 1, size };
  const isSized = kinds.some((kind) => kind === "string" || kind === "bytes");
  if (!isSized && !kinds.every((kind) => kind === "dyn")) return ONE;
  return { cost: Math.max(isSized ? 0 : 1, read(size).cost), size };
}

function compared(one: Operand, other: Operand): CallCost {
  if (one.isOpaque || other.isOpaque) return ONE;
  return { cost: Math.ceil(bounded(Math.min(one.size.max, other.size.max) * CHARACTER)) };
}

function mayBeText({ type }: Operand): boolean {
  return isText(type) || type.kind === "dyn";
}

function forAll(names: string, estimate: Estimate): { [name: string]: Estimate } {
  return Object.fromEntries(names.split(" ").map((name) => [name, estimate]));
}
