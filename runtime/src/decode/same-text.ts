import type { Range } from "./json-scanner.js";

const LARGEST_BYTES = 1024 * 1024;

let scratch = Buffer.allocUnsafeSlow(16 * 1024);

/**
 * Tells whether ASCII bytes are this ASCII text; makes no string of them.
 *
 * What comes with every event of a watch is mostly known, and a string of it would be garbage at once.
 */
export function hasText(bytes: Buffer, { start, end }: Range, text: string): boolean {
  return end - start === text.length && load(text) && isLoaded(bytes, { start, end }, 0);
}

/** Does the same, whatever the first byte is. */
export function hasTextBehindFirst(bytes: Buffer, { start, end }: Range, text: string): boolean {
  return end - start === text.length && load(text) && isLoaded(bytes, { start: start + 1, end }, 1);
}

/** Does the same for a range of which the part from `cutStart` to `cutEnd` counts for nothing. */
export function hasTextAround(
  bytes: Buffer,
  { start, end, cutStart, cutEnd }: Range & { readonly cutStart: number; readonly cutEnd: number },
  text: string,
): boolean {
  if (cutEnd <= start || cutStart >= end) return hasText(bytes, { start, end }, text);
  const length = cutStart - start;
  if (length + end - cutEnd !== text.length || !load(text)) return false;
  return isLoaded(bytes, { start, end: cutStart }, 0) && isLoaded(bytes, { start: cutEnd, end }, length);
}

// A text that is very long would keep that much memory for ever; it is not compared.
function load(text: string): boolean {
  if (text.length > LARGEST_BYTES) return false;
  if (text.length > scratch.length) scratch = Buffer.allocUnsafeSlow(Math.min(LARGEST_BYTES, 2 * text.length));
  scratch.write(text, 0, text.length, "latin1");
  return true;
}

function isLoaded(bytes: Buffer, { start, end }: Range, from: number): boolean {
  return scratch.compare(bytes, start, end, from, from + end - start) === 0;
}
