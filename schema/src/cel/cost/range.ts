// Sizes and costs are unsigned 64-bit numbers that stay at their greatest.

/** The greatest size or cost: that of what nobody bounds. */
export const UNBOUNDED = 2 ** 64;

/** What a size is between. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/** The size of what nothing is known of. */
export const ANY_SIZE: Range = { min: 0, max: UNBOUNDED };

/** Returns the range of one size alone. */
export function fixed(size: number): Range {
  return { min: size, max: size };
}

/** Returns the sum of two ranges. */
export function plus(one: Range, other: Range): Range {
  return { min: bounded(one.min + other.min), max: bounded(one.max + other.max) };
}

/** Returns the product of two ranges. */
export function times(one: Range, other: Range): Range {
  return { min: product(one.min, other.min), max: product(one.max, other.max) };
}

/** Returns a range with a factor, each end rounded up. */
export function scaled({ min, max }: Range, factor: number): Range {
  return { min: bounded(Math.ceil(min * factor)), max: bounded(Math.ceil(max * factor)) };
}

/** Returns the range that has both. */
export function union(one: Range, other: Range): Range {
  return { min: Math.min(one.min, other.min), max: Math.max(one.max, other.max) };
}

/** Returns a number, or the greatest. */
export function bounded(value: number): number {
  return Math.min(value, UNBOUNDED);
}

function product(one: number, other: number): number {
  return one === 0 || other === 0 ? 0 : bounded(one * other);
}
