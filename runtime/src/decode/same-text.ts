import type { Range } from "./json-scanner.js";

// Memory that no text has needed yet is not resident.
const scratch = Buffer.allocUnsafeSlow(1024 * 1024);

/** Tells whether ASCII bytes equal an ASCII text, without making a string of them, which would be garbage at once. A longer text is not compared. */
export function hasText(bytes: Buffer, { start, end }: Range, text: string): boolean {
  if (end - start !== text.length || text.length > scratch.length) return false;
  scratch.write(text, "latin1");
  return scratch.compare(bytes, start, end, 0, text.length) === 0;
}
