// JSON with the integers that an int64 holds and a number of JavaScript does not. A Go program reads and writes them exactly.
const INT64_LIMIT = 2n ** 63n;
const LARGEST_INT64_NUMBER = 2 ** 63 - 1024;
// Whether a look at each token is needed: 2^53 has 16 digits.
const MAY_BE_LONG = /(?:^|[:[,\s])-?\d{16}/;
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MARK = `\u0000${crypto.randomUUID()}:`;
const MARKED = new RegExp(`"${JSON.stringify(MARK).slice(1, -1).replaceAll("\\", "\\\\")}(-?\\d+)"`, "g");

/** Tells whether a JSON text may have an integer that JavaScript rounds; false is certain. */
export function mayHaveLongIntegers(json: string): boolean {
  return MAY_BE_LONG.test(json);
}

/** Returns the int64 that a token of JSON is if JavaScript may round it; undefined for every other token, an integer beyond int64 included. */
function longIntegerOf(token: string): bigint | undefined {
  if (token.length < 16 || !/^-?\d+$/.test(token) || Number.isSafeInteger(Number(token))) return undefined;
  // No int64 has more digits.
  if (token.length > 20) return undefined;
  const value = BigInt(token);
  return value >= -INT64_LIMIT && value < INT64_LIMIT ? value : undefined;
}

/** Parses JSON; an int64 that JavaScript may round is a bigint. Throws a SyntaxError for what is no JSON. */
export function parseExactJson(json: string): unknown {
  if (!mayHaveLongIntegers(json)) return JSON.parse(json);
  // What is no JSON is reported as it is, without marks.
  const rounded: unknown = JSON.parse(json);
  let isLong = false;
  const marked = json.replace(TOKEN, (token) => {
    if (longIntegerOf(token) === undefined) return token;
    isLong = true;
    return JSON.stringify(MARK + token);
  });
  if (!isLong) return rounded;
  return JSON.parse(marked, (_key, value: unknown) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  );
}

/** Returns the number within int64 that is nearest to an int64: the nearest of all may be beyond, as that of 2^63 - 1 is. */
export function int64Number(value: bigint): number {
  return Math.min(Math.max(Number(value), -LARGEST_INT64_NUMBER), LARGEST_INT64_NUMBER);
}

/** Returns a value as JSON; each bigint in it becomes the very integer. */
export function exactJson(value: unknown, indent?: number): string {
  return jsonWith(value, (each) => (typeof each === "bigint" ? each : undefined), indent);
}

/**
 * Returns a value as JSON in which a bigint is the very integer, and a number beyond 2^53 the int64 that is nearest to it: what JavaScript prints
 * for 2^63, to which it rounds the largest int64, is none.
 */
export function int64Json(value: unknown): string {
  return jsonWith(value, (each) =>
    typeof each === "bigint" ? each : typeof each === "number" ? nearestInt64(each) : undefined,
  );
}

function nearestInt64(number: number): bigint | undefined {
  const isRounded = Number.isInteger(number) && !Number.isSafeInteger(number) && Math.abs(number) <= 2 ** 63;
  return isRounded ? bigintOf(number) : undefined;
}

/** Returns an integer as a bigint, and for 2^63, to which JavaScript rounds the largest int64, that one. */
export function bigintOf(integer: number): bigint {
  return integer === 2 ** 63 ? INT64_LIMIT - 1n : BigInt(integer);
}

function jsonWith(value: unknown, integerOf: (value: unknown) => bigint | undefined, indent?: number): string {
  let isLong = false;
  const text = JSON.stringify(
    value,
    (_key, each: unknown) => {
      const integer = integerOf(each);
      if (integer === undefined) return each;
      isLong = true;
      return `${MARK}${integer}`;
    },
    indent,
  );
  return isLong ? text.replace(MARKED, "$1") : text;
}
