// Encodes protobuf fields. https://protobuf.dev/programming-guides/encoding
const VARINT = 0;
const DELIMITED = 2;

/** Encodes a length-delimited field: a string or a message. */
export function delimited(number: number, parts: readonly Buffer[]): Buffer[] {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return [varint(number * 8 + DELIMITED), varint(length), ...parts];
}

/** Encodes a string field. */
export function textField(number: number, text: string): Buffer[] {
  return delimited(number, [Buffer.from(text)]);
}

/** Encodes an integer field. */
export function integerField(number: number, value: number): Buffer[] {
  return [varint(number * 8 + VARINT), varint(value)];
}

/** Encodes a varint. */
export function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  return Buffer.from([...bytes, Number(rest)]);
}
