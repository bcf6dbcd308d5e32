// Finds values in JSON bytes without parsing them. The text is what an API server sent, so it is taken to be valid JSON.

/** Destructure it at the top of a module: V8 folds a constant of the module itself, and loads an imported one for every byte. */
export const JSON_BYTES = {
  QUOTE: 0x22,
  BACKSLASH: 0x5c,
  COMMA: 0x2c,
  COLON: 0x3a,
  OPEN_BRACE: 0x7b,
  CLOSE_BRACE: 0x7d,
  OPEN_BRACKET: 0x5b,
  CLOSE_BRACKET: 0x5d,
} as const;

const { QUOTE, BACKSLASH, COMMA, COLON, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET } = JSON_BYTES;

/** Where a value stands: from `start` up to, not including, `end`. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

// Strings are short, and a call of indexOf costs as much as looking at this many bytes.
const SHORT_STRING_BYTES = 64;

/** Returns the index behind the string that begins at `start`. */
function endOfString(bytes: Buffer, start: number): number {
  const short = Math.min(start + SHORT_STRING_BYTES, bytes.length);
  let index = start + 1;
  // Two bytes at a time: most of what is scanned are strings.
  for (; index < short; index += 2) {
    const byte = bytes[index];
    if (byte === QUOTE) return index + 1;
    if (byte === BACKSLASH) continue;
    const next = bytes[index + 1];
    if (next === QUOTE) return index + 2;
    if (next === BACKSLASH) index++;
  }
  for (let quote = bytes.indexOf(QUOTE, index); quote !== -1; quote = bytes.indexOf(QUOTE, quote + 1)) {
    let backslashes = 0;
    while (quote - 1 - backslashes >= index && bytes[quote - 1 - backslashes] === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return quote + 1;
  }
  throw new SyntaxError("unterminated string in JSON");
}

/** Returns the index of the first byte from `index` on that is no white space. */
export function skipSpace(bytes: Buffer, index: number): number {
  while (bytes[index]! <= 0x20) index++;
  return index;
}

/** Returns the index behind the value that begins at `start`. */
export function endOfValue(bytes: Buffer, start: number): number {
  const first = bytes[start];
  if (first === QUOTE) return endOfString(bytes, start);
  if (first === OPEN_BRACE || first === OPEN_BRACKET) {
    const length = bytes.length;
    let depth = 0;
    for (let index = start; index < length; index++) {
      const byte = bytes[index]!;
      if (byte === QUOTE) index = endOfString(bytes, index) - 1;
      // Brackets and braces differ in this bit.
      else if ((byte | 0x20) === OPEN_BRACE) depth++;
      else if ((byte | 0x20) === CLOSE_BRACE && --depth === 0) return index + 1;
    }
    throw new SyntaxError("unterminated object or array in JSON");
  }
  for (let index = start; index < bytes.length; index++) {
    const byte = bytes[index];
    if (byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET) return index;
  }
  return bytes.length;
}

/** Tells whether this ASCII text stands at `start`. */
export function startsWith(bytes: Buffer, start: number, text: string): boolean {
  for (let index = 0; index < text.length; index++) if (bytes[start + index] !== text.charCodeAt(index)) return false;
  return true;
}

/** Returns where the value of the member begins whose key begins at `key`; with `nextMember` this is a walk without any allocation. */
export function valueOfMember(bytes: Buffer, key: number): number {
  const colon = skipSpace(bytes, endOfString(bytes, key));
  if (bytes[colon] !== COLON) throw new SyntaxError("expected a colon in JSON");
  return skipSpace(bytes, colon + 1);
}

/** Returns where the key of the first member stands of the object that begins at `start`, or its closing brace. */
export function firstMember(bytes: Buffer, start: number): number {
  return skipSpace(bytes, start + 1);
}

/** Returns where the key of the member behind the value that ends at `end` stands, or the closing brace of the object. */
export function nextMember(bytes: Buffer, end: number): number {
  const index = skipSpace(bytes, end);
  if (bytes[index] === COMMA) return skipSpace(bytes, index + 1);
  if (bytes[index] !== CLOSE_BRACE) throw new SyntaxError("expected a comma or a closing brace in JSON");
  return index;
}

/** Tells whether a walk over the members of an object is at its closing brace. */
export function isEndOfObject(bytes: Buffer, index: number): boolean {
  return bytes[index] === CLOSE_BRACE;
}

/** Finds where the value of a member begins of the object that begins at `start`; `quotedKey` is ASCII with its quotes. */
export function findMember(bytes: Buffer, start: number, quotedKey: string): number | undefined {
  let key = firstMember(bytes, start);
  while (!isEndOfObject(bytes, key)) {
    const value = valueOfMember(bytes, key);
    if (startsWith(bytes, key, quotedKey)) return value;
    key = nextMember(bytes, endOfValue(bytes, value));
  }
  return undefined;
}

/** Returns the string value that begins at `start`. */
export function stringAt(bytes: Buffer, start: number, end = endOfString(bytes, start)): string {
  for (let index = start + 1; index < end - 1; index++)
    if (bytes[index] === BACKSLASH || bytes[index]! >= 0x80)
      return JSON.parse(bytes.toString("utf8", start, end)) as string;
  return bytes.toString("latin1", start + 1, end - 1);
}
