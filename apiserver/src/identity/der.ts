/**
 * The few ASN.1 types of a certificate in their DER encoding (ITU-T X.690).
 *
 * The server needs one certificate that lives as long as the process; a certificate library costs more start-up time than
 * everything else together.
 */

/** Encodes one element from its tag and the encodings of its parts. */
export function der(tag: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content]);
}

/** Encodes a SEQUENCE. */
export function sequence(...parts: Uint8Array[]): Buffer {
  return der(0x30, ...parts);
}

/** Encodes a small, non-negative INTEGER. */
export function integer(value: number): Buffer {
  return der(0x02, Buffer.from([value]));
}

/** Encodes a BIT STRING whose last byte leaves `unusedBits` unused. */
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

/** Encodes a UTCTime, which holds the years 1950 to 2049. */
export function utcTime(date: Date): Buffer {
  const digits = date.toISOString().replace(/\.\d+|[-:T]/g, "");
  return der(0x17, Buffer.from(digits.slice(2)));
}

/** Wraps an element in the explicit context tag `number`. */
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
