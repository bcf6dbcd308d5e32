// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
const QUANTITY = /^([+-]?)(\d+)?(?:\.(\d*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d+))?$/;

const DECIMAL_EXPONENTS: { readonly [suffix: string]: number } = {
  n: -9,
  u: -6,
  m: -3,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const BINARY_POWERS: { readonly [suffix: string]: bigint } = { Ki: 10n, Mi: 20n, Gi: 30n, Ti: 40n, Pi: 50n, Ei: 60n };

// The smallest unit that the API server keeps.
const NANO_EXPONENT = 9;

/**
 * Returns a quantity such as `500m` or `1Gi` in billionths, rounded up as the API server does; undefined if it is not one.
 */
export function parseQuantity(quantity: string | number): bigint | undefined {
  const match = QUANTITY.exec(String(quantity).trim());
  const [, sign, whole = "", fraction = "", suffix, exponentText] = match ?? [];
  if (match === null || whole + fraction === "") return undefined;
  const binary = suffix === undefined ? undefined : BINARY_POWERS[suffix];
  const exponent = exponentText === undefined ? (DECIMAL_EXPONENTS[suffix ?? ""] ?? 0) : Number(exponentText);
  if (Math.abs(exponent) > 64) return undefined;
  let value = BigInt(whole + fraction);
  if (binary !== undefined) value <<= binary;
  const shift = exponent - fraction.length + NANO_EXPONENT;
  value = shift >= 0 ? value * 10n ** BigInt(shift) : divideUp(value, 10n ** BigInt(-shift));
  return sign === "-" ? -value : value;
}

/** Tells whether two quantities are the same amount. */
export function isSameQuantity(a: string | number, b: string | number): boolean {
  if (a === b) return true;
  const amount = parseQuantity(a);
  return amount !== undefined && amount === parseQuantity(b);
}

function divideUp(value: bigint, divisor: bigint): bigint {
  return (value + divisor - 1n) / divisor;
}
