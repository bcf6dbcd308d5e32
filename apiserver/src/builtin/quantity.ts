// Quantities as Kubernetes prints them: with the largest suffix that leaves a whole number, in the family of suffixes given.

/** What Kubernetes says about text that is no quantity. */
export const QUANTITY_PATTERN_MESSAGE =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

const QUANTITY = /^([+-]?)(\d*)(?:\.(\d*))?(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?\d+)?$/;
const DECIMAL_SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY_SUFFIXES = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const NANO = 10n ** 9n;

interface Parsed {
  /** The amount in billionths, rounded away from zero. */
  nano: bigint;
  family: "decimal" | "binary" | "exponent";
}

/** Prints a quantity canonically, e.g. `0.5` as `500m` and `1024Mi` as `1Gi`; undefined if the text is no quantity. */
export function canonicalQuantity(text: string): string | undefined {
  const parsed = parse(text);
  if (parsed === undefined) return undefined;
  const { nano, family } = parsed;
  if (nano === 0n) return "0";
  // Below 1024 a binary suffix says nothing, and fractions could not be told exactly.
  if (family === "binary" && absolute(nano) >= 1024n * NANO) return printBinary(nano);
  return printDecimal(nano, family);
}

/** Returns a quantity in billionths, the unit in which Kubernetes counts at its finest; undefined if the text is none. */
export function billionthsOf(text: string): bigint | undefined {
  return parse(text)?.nano;
}

/** Compares two quantities; undefined if one is none. */
export function compareQuantities(a: string, b: string): number | undefined {
  const [x, y] = [parse(a), parse(b)];
  if (x === undefined || y === undefined) return undefined;
  return x.nano < y.nano ? -1 : x.nano > y.nano ? 1 : 0;
}

function parse(text: string): Parsed | undefined {
  const match = QUANTITY.exec(text);
  if (match === null) return undefined;
  const [, sign, whole = "", fraction = "", suffix = ""] = match;
  if (whole === "" && fraction === "") return undefined;
  const binary = BINARY_SUFFIXES.indexOf(suffix);
  const isExponent = /^[eE]./.test(suffix);
  const exponent = isExponent ? Number(suffix.slice(1)) : (DECIMAL_SUFFIXES.indexOf(suffix) - 3) * 3;
  const factor = binary > 0 ? 1024n ** BigInt(binary) * NANO : undefined;
  const scale = 10n ** BigInt(fraction.length);
  const digits = BigInt(whole + fraction);
  const nano =
    factor !== undefined
      ? divideUp(digits * factor, scale)
      : exponent + 9 >= 0
        ? divideUp(digits * 10n ** BigInt(exponent + 9), scale)
        : divideUp(digits, scale * 10n ** BigInt(-exponent - 9));
  const family = binary > 0 ? "binary" : isExponent ? "exponent" : "decimal";
  return { nano: sign === "-" ? -nano : nano, family };
}

function printDecimal(nano: bigint, family: Parsed["family"]): string {
  let [amount, step] = [nano, 0];
  while (step < DECIMAL_SUFFIXES.length - 1 && amount % 1000n === 0n) {
    amount /= 1000n;
    step++;
  }
  const exponent = (step - 3) * 3;
  if (family !== "exponent") return `${amount}${DECIMAL_SUFFIXES[step]}`;
  return exponent === 0 ? `${amount}` : `${amount}e${exponent}`;
}

function printBinary(nano: bigint): string {
  let [amount, step] = [divideUp(absolute(nano), NANO), 0];
  while (step < BINARY_SUFFIXES.length - 1 && amount % 1024n === 0n) {
    amount /= 1024n;
    step++;
  }
  return `${nano < 0n ? "-" : ""}${amount}${BINARY_SUFFIXES[step]}`;
}

function divideUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}

function absolute(value: bigint): bigint {
  return value < 0n ? -value : value;
}
