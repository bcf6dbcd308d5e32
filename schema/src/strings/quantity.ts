// Quantities as kube-apiserver parses and formats them. Works on digits, so that large exponents and long numbers take time in proportion to the
// length of the text only. https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/

// Digits are part of the suffix only after a letter or sign, so the pattern does not backtrack.
const QUANTITY = /^([+-]?)(\d*)(?:\.(\d*))?([eEinumkKMGTP]+[-+]?\d*|[-+]\d*)?$/;
const EXPONENT = /^[eE]([+-]?)0*(\d{1,19})$/;

const FORM_PROBLEM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const SUFFIX_PROBLEM = "unable to parse quantity's suffix";

// Suffixes for powers of 1000, starting at 10^-9, and for powers of 1024.
const DECIMAL_SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY_SUFFIXES = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

// The exponent of the smallest unit; smaller fractions are rounded up.
const FINEST = -9;
// The maximum with a binary suffix.
const MAX_BINARY = 2n ** 63n - 1n;
// Further fraction digits only affect whether the value is rounded up.
const FRACTION_DIGITS = 80;
// The limit of exponents when converting to a bigint.
const MAX_EXPONENT = 1000;

interface Quantity {
  isNegative: boolean;
  /** The significant digits without leading and trailing zeros; "0" for zero. */
  digits: string;
  /** The power of ten to multiply the digits by. */
  exponent: number;
  /** The canonical form of the quantity. */
  canonical: string;
}

/** Parses a quantity such as `500m` or `1Gi` to billionths, rounded up as in the API server; undefined if it is invalid. */
export function parseQuantity(quantity: unknown): bigint | undefined {
  const parsed = parse(quantity);
  if (parsed === undefined || "problem" in parsed) return undefined;
  const { digits, exponent, isNegative } = parsed;
  const billionths = BigInt(digits) * 10n ** BigInt(Math.min(exponent, MAX_EXPONENT) - FINEST);
  return isNegative ? -billionths : billionths;
}

/** Returns whether two values are equal quantities. */
export function isSameQuantity(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  const [x, y] = [parse(a), parse(b)];
  if (x === undefined || y === undefined || "problem" in x || "problem" in y) return false;
  return x.isNegative === y.isNegative && x.digits === y.digits && x.exponent === y.exponent;
}

/** Compares two quantities for sorting; undefined if one is invalid. */
export function compareQuantities(a: string, b: string): number | undefined {
  const [x, y] = [parseQuantity(a), parseQuantity(b)];
  if (x === undefined || y === undefined) return undefined;
  return x < y ? -1 : x > y ? 1 : 0;
}

/** Returns the canonical form of a quantity, `500m` for `0.5` or `1Gi` for `1024Mi`, or the API server's error message. */
export function canonicalQuantity(text: string): { text: string } | { problem: string } {
  const parsed = parse(text);
  if (parsed === undefined) return { problem: FORM_PROBLEM };
  return "problem" in parsed ? parsed : { text: parsed.canonical };
}

function parse(quantity: unknown): Quantity | { problem: string } | undefined {
  if (typeof quantity !== "string" && typeof quantity !== "number") return undefined;
  const text = String(quantity).trim();
  const match = QUANTITY.exec(text);
  if (text === "" || match === null) return undefined;
  const [, sign, digits = "", fraction = "", suffix = ""] = match;
  const binary = Math.max(0, BINARY_SUFFIXES.indexOf(suffix));
  const exponent = binary > 0 ? 0 : exponentOf(suffix);
  if (exponent === undefined) return { problem: SUFFIX_PROBLEM };
  const whole = withoutLeadingZeros(digits) || "0";
  const amount =
    binary > 0 ? binaryAmount(whole, fraction, binary) : rounded(whole + fraction, exponent - fraction.length);
  const quantityOf = (canonical: string): Quantity => ({
    ...amount,
    isNegative: sign === "-" && amount.digits !== "0",
    canonical,
  });
  if (isKept({ whole, fraction, exponent, binary })) return quantityOf(text);
  const minus = sign === "-" && amount.digits !== "0" ? "-" : "";
  const shown = binary > 0 ? printBinary(amount) : undefined;
  return quantityOf(minus + (shown ?? printDecimal(amount, { isExponent: /^[eE]./.test(suffix) })));
}

// The API server parses the exponent as 64 bits and truncates it to 32.
function exponentOf(suffix: string): number | undefined {
  const decimal = DECIMAL_SUFFIXES.indexOf(suffix);
  if (decimal >= 0) return 3 * decimal + FINEST;
  const [, sign = "", digits] = EXPONENT.exec(suffix) ?? [];
  if (digits === undefined) return undefined;
  const exponent = BigInt(`${sign === "-" ? "-" : ""}${digits}`);
  return BigInt.asIntN(64, exponent) === exponent ? Number(BigInt.asIntN(32, exponent)) : undefined;
}

// The API server keeps a short text that it parses on its fast path, even if it is not canonical: `1E3`, `012`.
function isKept(text: { whole: string; fraction: string; exponent: number; binary: number }): boolean {
  const { whole, fraction, exponent, binary } = text;
  if (binary > 0) return fraction === "" && whole.length + 3 * binary <= 14 && Number(whole) % 8 !== 0;
  const digits = whole + fraction;
  const scale = exponent - fraction.length;
  const isShort = digits.length <= 18 && scale >= FINEST;
  return isShort && scale % 3 === 0 && !digits.endsWith("000") && !digits.startsWith("0");
}

type Amount = Pick<Quantity, "digits" | "exponent">;

function binaryAmount(whole: string, fraction: string, binary: number): Amount {
  const most = { digits: String(MAX_BINARY), exponent: 0 };
  if (whole.length > String(MAX_BINARY).length) return most;
  const shown = fraction.slice(0, FRACTION_DIGITS);
  const read = /[1-9]/.test(fraction.slice(FRACTION_DIGITS)) ? `${shown}1` : shown;
  const amount = BigInt(whole + read) << BigInt(10 * binary);
  if (amount > MAX_BINARY * 10n ** BigInt(read.length)) return most;
  return rounded(String(amount), -read.length);
}

// Rounds away from zero, so that a small request does not become zero.
function rounded(digits: string, exponent: number): Amount {
  const left = withoutLeadingZeros(digits);
  const kept = Math.max(0, left.length - Math.max(0, FINEST - exponent));
  const head = left.slice(0, kept);
  const isMore = /[1-9]/.test(left.slice(kept));
  const amount = { digits: isMore ? incremented(head) : head, exponent: Math.max(exponent, FINEST) };
  const end = lastIndexOfOther(amount.digits, "0") + 1;
  if (end === 0) return { digits: "0", exponent: 0 };
  return { digits: amount.digits.slice(0, end), exponent: amount.exponent + amount.digits.length - end };
}

function incremented(digits: string): string {
  const last = lastIndexOfOther(digits, "9");
  const zeros = "0".repeat(digits.length - last - 1);
  return last < 0 ? `1${zeros}` : `${digits.slice(0, last)}${Number(digits[last]) + 1}${zeros}`;
}

function withoutLeadingZeros(digits: string): string {
  return digits.replace(/^0+/, "");
}

// A regular expression such as `0+$` takes quadratic time for many zeros.
function lastIndexOfOther(text: string, character: string): number {
  let index = text.length - 1;
  while (index >= 0 && text[index] === character) index--;
  return index;
}

function printDecimal({ digits, exponent }: Amount, { isExponent }: { isExponent: boolean }): string {
  if (digits === "0") return "0";
  const step = Math.floor(exponent / 3);
  const number = digits + "0".repeat(exponent - 3 * step);
  if (isExponent) return step === 0 ? number : `${number}e${3 * step}`;
  // The API server prints 1000E as 1, because there is no suffix for it.
  return number + (DECIMAL_SUFFIXES[step - FINEST / 3] ?? "");
}

// Amounts below 1024 have no binary suffix; fractions cannot be represented exactly.
function printBinary({ digits, exponent }: Amount): string | undefined {
  if (exponent < 0) return undefined;
  let amount = BigInt(digits) * 10n ** BigInt(exponent);
  if (amount < 1024n) return undefined;
  let step = 0;
  while (amount % 1024n === 0n) {
    amount /= 1024n;
    step++;
  }
  return `${amount}${BINARY_SUFFIXES[step]}`;
}
