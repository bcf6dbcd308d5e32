// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
const QUANTITY = /^([+-]?)(\d+)?(?:\.(\d*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d+))?$/;

// The suffixes of powers of 1000, from 10^-9 on, and of powers of 1024.
const DECIMAL_SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY_SUFFIXES = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

// The smallest unit that the API server keeps.
const NANO_EXPONENT = 9;

/** Returns a quantity such as `500m` or `1Gi` in billionths, rounded up as the API server does; undefined if it is not one. */
export function parseQuantity(quantity: unknown): bigint | undefined {
  if (typeof quantity !== "string" && typeof quantity !== "number") return undefined;
  const [, sign, whole = "", fraction = "", suffix = "", exponentText] = QUANTITY.exec(String(quantity).trim()) ?? [];
  if (whole + fraction === "") return undefined;
  const binary = Math.max(0, BINARY_SUFFIXES.indexOf(suffix));
  const decimal = binary > 0 ? 0 : 3 * DECIMAL_SUFFIXES.indexOf(suffix) - NANO_EXPONENT;
  const exponent = exponentText === undefined ? decimal : Number(exponentText);
  if (Math.abs(exponent) > 64) return undefined;
  let value = BigInt(whole + fraction) << BigInt(10 * binary);
  const shift = exponent - fraction.length + NANO_EXPONENT;
  const divisor = 10n ** BigInt(Math.max(0, -shift));
  value = (value * 10n ** BigInt(Math.max(0, shift)) + divisor - 1n) / divisor;
  return sign === "-" ? -value : value;
}

/** Tells whether two values are quantities of the same amount. */
export function isSameQuantity(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  const amount = parseQuantity(a);
  return amount !== undefined && amount === parseQuantity(b);
}
