import type { Range } from "./json-scanner.js";

const LARGEST_BYTES = 1024 * 1024;

let scratch = Buffer.allocUnsafeSlow(16 * 1024);

/**
 * Tells whether ASCII bytes equal an ASCII text, without making a string of them.
 *
 * Most bytes of an event are known already, and a string of them would be garbage at once.
 */
export function hasText(bytes: Buffer, { start, end }: Range, text: string): boolean {
  return end - start === text.length && load(text) && isLoaded(bytes, { start, end }, 0);
}

/** Does the same, but ignores the first byte. */
export function hasTextBehindFirst(bytes: Buffer, { start, end }: Range, text: string): boolean {
  return end - start === text.length && load(text) && isLoaded(bytes, { start: start + 1, end }, 1);
}

/** Does the same, but ignores the bytes from `cutStart` to `cutEnd`. */
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

// A very long text is not compared: the scratch buffer would keep that much memory for ever.
function load(text: string): boolean {
  if (text.length > LARGEST_BYTES) return false;
  if (text.length > scratch.length) scratch = Buffer.allocUnsafeSlow(Math.min(LARGEST_BYTES, 2 * text.length));
  scratch.write(text, 0, text.length, "latin1");
  return true;
}

function isLoaded(bytes: Buffer, { start, end }: Range, from: number): boolean {
  return scratch.compare(bytes, start, end, from, from + end - start) === 0;
}
