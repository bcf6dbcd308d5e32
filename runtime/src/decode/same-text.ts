import type { Range } from "./json-scanner.js";

const LARGEST_BYTES = 1024 * 1024;

let scratch = Buffer.allocUnsafeSlow(16 * 1024);

/** Tells whether ASCII bytes equal an ASCII text, without making a string of them, which would be garbage at once. */
export function hasText(bytes: Buffer, { start, end }: Range, text: string): boolean {
  const { length } = text;
  // A very long text is not compared: the scratch buffer would keep that much memory for ever.
  if (end - start !== length || length > LARGEST_BYTES) return false;
  if (length > scratch.length) scratch = Buffer.allocUnsafeSlow(Math.min(LARGEST_BYTES, 2 * length));
  scratch.write(text, 0, length, "latin1");
  return scratch.compare(bytes, start, end, 0, length) === 0;
}
