import type { Scalar } from "yaml";

/** Where the characters of a text are in the file that it comes from. */
export interface SourceOffsets {
  /** Returns the offset in the file of the character at `offset` of the text; the end of the text is allowed. */
  at(offset: number): number;
}

/**
 * Finds the characters of a scalar in its source.
 *
 * YAML folds lines, removes indentation and resolves escapes; whatever the style, it keeps the order of the characters that are no white space,
 * so the n-th of them in the text is the n-th in the source.
 */
export function sourceOffsets(scalar: Scalar, source: string): SourceOffsets {
  const text = String(scalar.value);
  const [start, end] = scalar.range ?? [0, 0];
  const visible = visibleOffsets(source.slice(start, end), String(scalar.type)).map((offset) => start + offset);
  return {
    at(offset) {
      const before = text.slice(0, offset).replace(/\s/g, "").length;
      // White space counts back from what follows it, and the end of the text from what precedes it.
      if (offset < text.length && !/\s/.test(text.charAt(offset))) return visible[before] ?? start;
      const previous = visible[before - 1];
      return previous === undefined ? start : previous + 1;
    },
  };
}

/** Returns the offsets of the characters of a scalar's source that stand for one that is no white space. */
function visibleOffsets(raw: string, style: string): number[] {
  if (style.startsWith("BLOCK")) {
    // The first line holds the style and perhaps a comment.
    const header = raw.indexOf("\n") + 1;
    return matchOffsets(raw.slice(header), /\S/g).map((offset) => header + offset);
  }
  if (style === "QUOTE_SINGLE") return matchOffsets(raw.slice(1, -1), /''|\S/g).map((offset) => offset + 1);
  if (style === "QUOTE_DOUBLE") return escapedOffsets(raw);
  return matchOffsets(raw, /\S/g);
}

function escapedOffsets(raw: string): number[] {
  const offsets: number[] = [];
  for (const { 0: token, index } of raw.slice(1, -1).matchAll(ESCAPE_OR_VISIBLE)) {
    if (WHITE_ESCAPE.test(token)) continue;
    // Beyond the basic plane an escape stands for two units of a JavaScript string.
    const code = /^\\U/.test(token) ? Number.parseInt(token.slice(2), 16) : 0;
    for (let unit = 0; unit < (code > 0xffff ? 2 : 1); unit++) offsets.push(index + 1);
  }
  return offsets;
}

const ESCAPE_OR_VISIBLE = /\\(?:x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}|\r?\n|[^])|\S/g;
// Tab, line feed, vertical tab, form feed, carriage return, space, no-break space, line and paragraph separators, line continuation.
const WHITE_ESCAPE = /^\\(?:[tnvfr \t_LP]|x(?:0[9a-dA-D]|20|[aA]0)|u(?:00(?:0[9a-dA-D]|20|[aA]0)|2028|2029)|\r?\n)$/;

function matchOffsets(raw: string, pattern: RegExp): number[] {
  return [...raw.matchAll(pattern)].map(({ index }) => index);
}
