const INTEGER = /^[-+]?(?:0[xX][\da-fA-F_]*[\da-fA-F][\da-fA-F_]*|0[bB][01_]*[01][01_]*|0[oO]?[0-7_]*|[1-9][\d_]*)$/;

/**
 * How kubectl reads a plain scalar.
 *
 * It reads YAML 1.1, but for dates and sexagesimal numbers, which stay texts: `on` is true, and `0755` is 493.
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

/** The tag of a text in base64. */
export const BINARY_TAG = "tag:yaml.org,2002:binary";

/** Decodes a text with the tag `!!binary`; `fail` is told if it is not base64. Bytes that are not UTF-8 become U+FFFD. */
export function readBinary(text: string, fail: (message: string) => void): string {
  const base64 = text.replace(/[\r\n]/g, "");
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(base64))
    fail("!!binary value contains invalid base64 data");
  return Buffer.from(base64, "base64").toString();
}

/** Returns the integer that kubectl reads from a plain scalar; undefined if it is none, or longer than any of 64 bits. */
export function parseInteger(text: string): bigint | undefined {
  if (text.length > MOST_DIGITS || !INTEGER.test(text) || /[oO]_*$/.test(text)) return undefined;
  return BigInt(digitsOf(text)) * BigInt(signOf(text));
}

/** Of 64 bits as binary digits, with a prefix and underscores. */
const MOST_DIGITS = 200;

function signOf(text: string): 1 | -1 {
  return text.startsWith("-") ? -1 : 1;
}

function digitsOf(text: string): string {
  const digits = text.replace(/^[-+]/, "").replaceAll("_", "");
  return /^0[0-7]+$/.test(digits) ? `0o${digits}` : digits;
}

// kubectl keeps what no 64-bit number can hold as a text, which nobody means: it becomes infinite here, which is refused.
function floatOf(text: string): unknown {
  if (/nan$/i.test(text)) return Number.NaN;
  if (/inf$/i.test(text)) return text.startsWith("-") ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  return Number(text.replaceAll("_", ""));
}

/** Returns what kubectl reads where YAML 1.2 would read something else; undefined where both agree. */
export function surprisingValueOf(text: string): { readonly value: boolean | number } | undefined {
  const kind = KUBECTL_SCALARS.find(({ pattern }) => pattern.test(text));
  if (kind === undefined) return undefined;
  const value = kind.read(text);
  if (typeof value === "boolean") return /^[tTfF]/.test(text) ? undefined : { value };
  if (typeof value !== "number" || /^[-+]?0[xXoO][^_]*$/.test(text) || /^[-+]?\.[iInN]/.test(text)) return undefined;
  return Number(text) === value ? undefined : { value };
}
