/**
 * DER encoding (ITU-T X.690) of the few ASN.1 types in certificates and certificate signing requests.
 *
 * Every server creates a certificate at startup; loading a certificate library would take more time than the rest of the startup.
 */

/** Encodes an element from its tag and its encoded parts. */
export function der(tag: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content]);
}

/** Encodes a SEQUENCE. */
export function sequence(...parts: Uint8Array[]): Buffer {
  return der(0x30, ...parts);
}

/** Encodes an INTEGER below 128, or one of several bytes, of which the first is between 1 and 127. */
export function integer(value: number | Uint8Array): Buffer {
  return der(0x02, typeof value === "number" ? Buffer.from([value]) : value);
}

/** BOOLEAN TRUE. */
export const TRUE = der(0x01, Buffer.from([0xff]));

/** Encodes a BIT STRING; `unusedBits` is the number of unused bits in its last byte. */
export function bitString(bits: Uint8Array, unusedBits = 0): Buffer {
  return der(0x03, Buffer.from([unusedBits]), bits);
}

/** Encodes an OCTET STRING. */
export function octetString(bytes: Uint8Array): Buffer {
  return der(0x04, bytes);
}

/** Encodes an OBJECT IDENTIFIER such as `2.5.29.17`. */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return der(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** Encodes a RelativeDistinguishedName with one attribute, as UTF8String. */
export function nameAttribute(id: string, text: string): Buffer {
  return der(0x31, sequence(objectIdentifier(id), der(0x0c, Buffer.from(text))));
}

/** Encodes a UTCTime, which supports the years 1950 to 2049. */
export function utcTime(date: Date): Buffer {
  const digits = date.toISOString().replace(/\.\d+|[-:T]/g, "");
  return der(0x17, Buffer.from(digits.slice(2)));
}

/** Wraps an element in an explicit context-specific tag. */
export function explicit(number: number, content: Uint8Array): Buffer {
  return der(0xa0 + number, content);
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  if (length < 0x100) return Buffer.from([0x81, length]);
  return Buffer.from([0x82, length >> 8, length & 0xff]);
}

function base128(value: number): number[] {
  const digits = [value & 0x7f];
  for (let rest = value >> 7; rest > 0; rest >>= 7) digits.unshift((rest & 0x7f) | 0x80);
  return digits;
}

/** An element: tag, content, and complete encoding. */
export interface Element {
  tag: number;
  content: Buffer;
  raw: Buffer;
}

/**
 * Parses consecutive elements.
 *
 * @throws if the bytes are not valid DER.
 */
export function readElements(bytes: Buffer): Element[] {
  const elements: Element[] = [];
  for (let at = 0; at < bytes.length;) {
    const { start, end } = extentOf(bytes, at);
    elements.push({ tag: bytes[at] ?? 0, content: bytes.subarray(start, end), raw: bytes.subarray(at, end) });
    at = end;
  }
  return elements;
}

function extentOf(bytes: Buffer, at: number): { start: number; end: number } {
  const first = bytes[at + 1] ?? 0x80;
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  const start = at + 2 + lengthBytes;
  if ((first >= 0x80 && lengthBytes === 0) || lengthBytes > 4 || start > bytes.length)
    throw new Error("malformed length");
  const end = start + (lengthBytes === 0 ? first : bytes.readUIntBE(at + 2, lengthBytes));
  if (end > bytes.length) throw new Error("truncated element");
  return { start, end };
}
