const UNITS: { readonly [unit: string]: number } = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Returns the milliseconds of a duration that the schema of specs accepts, such as `2s` or `1h30m`. */
export function parseDuration(text: string): number {
  let milliseconds = 0;
  for (const [, amount, unit] of text.matchAll(/([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)/g))
    milliseconds += Number(amount) * (UNITS[String(unit)] ?? 0);
  return Math.round(milliseconds);
}
