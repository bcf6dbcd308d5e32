import { quote } from "../../diagnostic.js";

/** Returns whether a value is a JSON object. */
export function isRecord(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Parses a JSON text, also with several documents separated by lines of `---`. Undefined if it is not JSON, or requires further checks: for a
 * possible duplicate key, an infinite number, or a lone surrogate.
 */
export function parseJsonDocuments(text: string): readonly unknown[] | undefined {
  if (!/^\s*\{/.test(text) || /\\u[dD][89a-fA-F]/.test(text)) return undefined;
  try {
    const documents = text.split(/^---[ \t]*\r?$/m).filter((each) => each.trim() !== "");
    const values = documents.map((each): unknown => JSON.parse(each));
    return countKeys(values) === countWrittenKeys(text) ? values : undefined;
  } catch {
    return undefined;
  }
}

/** Counts the keys of all objects in a value. Throws if it contains an infinite number. */
function countKeys(value: unknown): number {
  if (typeof value === "number" && !Number.isFinite(value)) throw new RangeError("no number of JSON");
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) for (const item of value) count += countKeys(item);
  else
    for (const name of Object.keys(value)) count += 1 + countKeys((value as { readonly [key: string]: unknown })[name]);
  return count;
}

/** Counts text that looks like a key, possibly also in strings; Infinity if it is ambiguous. */
function countWrittenKeys(text: string): number {
  if (/:(?<=(?:"\s+|\\\\"):)/.test(text)) return Infinity;
  let count = 0;
  for (let at = text.indexOf('":'); at !== -1; at = text.indexOf('":', at + 2)) if (text[at - 1] !== "\\") count += 1;
  return count;
}

const INTEGER = /^[-+]?(?:0[xX][\da-fA-F_]*[\da-fA-F][\da-fA-F_]*|0[bB][01_]*[01][01_]*|0[oO]?[0-7_]*|[1-9][\d_]*)$/;

/**
 * Plain scalars as kubectl reads them.
 *
 * It implements YAML 1.1 without dates and sexagesimal numbers, which remain strings: `on` is true, and `0755` is 493.
 */
export const KUBECTL_SCALARS = [
  { tag: "tag:yaml.org,2002:null", pattern: /^(?:~|null|Null|NULL|)$/, read: (): unknown => null },
  {
    tag: "tag:yaml.org,2002:bool",
    pattern: /^(?:[yY]|yes|Yes|YES|true|True|TRUE|on|On|ON|[nN]|no|No|NO|false|False|FALSE|off|Off|OFF)$/,
    read: (text: string): unknown => /^(?:[yYtT]|[oO][nN]$)/.test(text),
  },
  {
    tag: "tag:yaml.org,2002:int",
    pattern: INTEGER,
    read: (text: string): unknown => (/[oO]_*$/.test(text) ? text : Number(digitsOf(text)) * signOf(text) + 0),
  },
  {
    tag: "tag:yaml.org,2002:float",
    pattern:
      /^(?:[-+]?(?:\.[\d_]*\d[\d_]*|\d[\d_]*(?:\.[\d_]*)?)(?:[eE][-+]?[\d_]*\d[\d_]*)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/,
    read: floatOf,
  },
] as const;

/** Tag of base64 data. */
export const BINARY_TAG = "tag:yaml.org,2002:binary";

/** Decodes a `!!binary` value. Calls `fail` if it is not base64. Invalid UTF-8 is replaced by U+FFFD. */
export function readBinary(text: string, fail: (message: string) => void): string {
  const base64 = text.replace(/[\r\n]/g, "");
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(base64))
    fail("!!binary value contains invalid base64 data");
  return Buffer.from(base64, "base64").toString();
}

/** Parses an integer like kubectl; undefined if it is not an integer, or longer than any 64-bit integer. */
export function parseInteger(text: string): bigint | undefined {
  if (text.length > MOST_DIGITS || !INTEGER.test(text) || /[oO]_*$/.test(text)) return undefined;
  return BigInt(digitsOf(text)) * BigInt(signOf(text));
}

/** Longer than 64 binary digits with a prefix and underscores. */
const MOST_DIGITS = 200;

function signOf(text: string): 1 | -1 {
  return text.startsWith("-") ? -1 : 1;
}

function digitsOf(text: string): string {
  const digits = text.replace(/^[-+]/, "").replaceAll("_", "");
  return /^0[0-7]+$/.test(digits) ? `0o${digits}` : digits;
}

// kubectl reads a number beyond the range of a 64-bit float, such as 1e400, as a string, which is never intended. It becomes infinite here, which is
// rejected.
function floatOf(text: string): unknown {
  if (/nan$/i.test(text)) return Number.NaN;
  if (/inf$/i.test(text)) return text.startsWith("-") ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  return Number(text.replaceAll("_", ""));
}

/** Returns the value that kubectl reads if YAML 1.2 reads another one; undefined if they agree. */
export function surprisingValueOf(text: string): { readonly value: boolean | number } | undefined {
  const kind = KUBECTL_SCALARS.find(({ pattern }) => pattern.test(text));
  if (kind === undefined) return undefined;
  const value = kind.read(text);
  if (typeof value === "boolean") return /^[tTfF]/.test(text) ? undefined : { value };
  if (typeof value !== "number" || /^[-+]?0[xXoO][^_]*$/.test(text) || /^[-+]?\.[iInN]/.test(text)) return undefined;
  return Number(text) === value ? undefined : { value };
}

/** Describes a value in a file, for example `the number 3`, `"text"`, `a list`, or `nothing`. */
export function describeValue(value: unknown): string {
  if (value === undefined || value === null) return "nothing";
  if (typeof value === "string") return quote(value);
  if (typeof value === "number" || typeof value === "boolean") return `the ${typeof value} ${String(value)}`;
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  return "an object";
}
