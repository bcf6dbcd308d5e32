// Quantities as kube-apiserver reads and prints them, digit by digit: neither exponents nor long numbers cost more than their text.
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/

// Digits belong to the suffix only after a letter or a sign, so nothing is tried twice.
const QUANTITY = /^([+-]?)(\d*)(?:\.(\d*))?([eEinumkKMGTP]+[-+]?\d*|[-+]\d*)?$/;
const EXPONENT = /^[eE]([+-]?)0*(\d{1,19})$/;

const FORM_PROBLEM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const SUFFIX_PROBLEM = "unable to parse quantity's suffix";

// The suffixes of powers of 1000, from 10^-9 on, and of powers of 1024.
const DECIMAL_SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY_SUFFIXES = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

// The smallest unit that is kept is 10^-9.
const FINEST = -9;
// With a binary suffix nothing is more than this.
const MAX_BINARY = 2n ** 63n - 1n;
// Further digits of a fraction only say that it is a little more.
const FRACTION_DIGITS = 80;
// Amounts beyond this power of ten are all the same in billionths.
const MAX_EXPONENT = 1000;

interface Quantity {
  isNegative: boolean;
  /** Without zeros at its ends; "0" for nothing. */
  digits: string;
  /** The power of ten by which the digits are multiplied. */
  exponent: number;
  /** The text in the form in which it is shown. */
  canonical: string;
}

/** Returns a quantity such as `500m` or `1Gi` in billionths, rounded up as the API server does; undefined if it is not one. */
export function parseQuantity(quantity: unknown): bigint | undefined {
  const parsed = parse(quantity);
  if (parsed === undefined || "problem" in parsed) return undefined;
  const { digits, exponent, isNegative } = parsed;
  const billionths = BigInt(digits) * 10n ** BigInt(Math.min(exponent, MAX_EXPONENT) - FINEST);
  return isNegative ? -billionths : billionths;
}

/** Tells whether two values are quantities of the same amount. */
export function isSameQuantity(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  const [x, y] = [parse(a), parse(b)];
  if (x === undefined || y === undefined || "problem" in x || "problem" in y) return false;
  return x.isNegative === y.isNegative && x.digits === y.digits && x.exponent === y.exponent;
}

/** Compares two quantities, for sorting; undefined if one is none. */
export function compareQuantities(a: string, b: string): number | undefined {
  const [x, y] = [parseQuantity(a), parseQuantity(b)];
  if (x === undefined || y === undefined) return undefined;
  return x < y ? -1 : x > y ? 1 : 0;
}

/** Returns a quantity as the API server shows it, `0.5` as `500m` and `1024Mi` as `1Gi`, or what it says about a text that is none. */
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

// The API server keeps an exponent in 32 bits, and reads it from 64.
function exponentOf(suffix: string): number | undefined {
  const decimal = DECIMAL_SUFFIXES.indexOf(suffix);
  if (decimal >= 0) return 3 * decimal + FINEST;
  const [, sign = "", digits] = EXPONENT.exec(suffix) ?? [];
  if (digits === undefined) return undefined;
  const exponent = BigInt(`${sign === "-" ? "-" : ""}${digits}`);
  return BigInt.asIntN(64, exponent) === exponent ? Number(BigInt.asIntN(32, exponent)) : undefined;
}

// A short text that looks canonical stays as it is written, be it canonical or not: `1E3`, `012`.
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

// Away from zero: who asks for a little gets something.
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

// A pattern would look at each zero once for every zero before it.
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
  // The API server prints 1000E as 1: there is no suffix for it.
  return number + (DECIMAL_SUFFIXES[step - FINEST / 3] ?? "");
}

// Below 1024 a binary suffix says nothing, and fractions could not be told exactly.
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
