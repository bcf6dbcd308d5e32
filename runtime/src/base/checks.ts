// Checks of what users state; code without types states anything.

/** The values of options by their names, with the least and the greatest number that each may be. */
interface NumberOptions {
  readonly [option: string]: readonly [value: unknown, least?: number, most?: number];
}

/** Throws unless each of these options is left out, or a number that it may be; Infinity is a number, NaN is none. */
export function checkNumbers(owner: string, options: NumberOptions): void {
  requireNumbers(owner, Object.fromEntries(Object.entries(options).filter(([, [value]]) => value !== undefined)));
}

/** Throws unless each of these options is a number that it may be. */
export function requireNumbers(owner: string, options: NumberOptions): void {
  for (const [option, [value, least = -Infinity, most = Infinity]] of Object.entries(options)) {
    if (typeof value === "number" && value >= least && value <= most) continue;
    const range = most < Infinity ? `${least} to ${most}` : `${least} or more`;
    const needed = least === -Infinity ? "a number" : range;
    throw new RangeError(`${owner} has ${describe(value)} for ${option}; it needs ${needed}`);
  }
}

function describe(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
