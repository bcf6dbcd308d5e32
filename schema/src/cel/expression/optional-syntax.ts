// The parser does not support the operators of optional values, `a.?b` and `a[?b]`. They are rewritten to method calls before parsing.

/** The method that replaces `.?name`. */
export const OPTIONAL_FIELD = "optionalField__";

/** The method that replaces `[?index]`. */
export const OPTIONAL_INDEX = "optionalIndex__";

// String literals and comments, which are not rewritten. A raw string has no escapes.
const QUOTED =
  /\/\/[^\n]*|(?:[bB]?[rR]|[rR][bB])(?:"""[^]*?"""|'''[^]*?'''|"[^"\n]*"|'[^'\n]*')|"""(?:\\[^]|[^\\])*?"""|'''(?:\\[^]|[^\\])*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/y;
const FIELD = /\.\s*\?\s*([A-Za-z_]\w*)/y;
const BEFORE_INDEX = /[\w)\]}"'`]\s*$/;

/** The element that marks the next element of a literal as optional, for `[?a]` and `{?a: b}`. */
export const OPTIONAL_ENTRY = "optionalEntry__";

const CLOSING: { readonly [opening: string]: string } = { "[": "]", "{": "}", "(": ")" };

/** An expression without the operators of optional values, and the mapping to offsets in the original text. */
interface PlainText {
  readonly text: string;
  /** Returns the offset in the original text. */
  readonly originOf: (offset: number) => number;
}

/** Rewrites the operators of optional values to calls. */
export function withoutOptionalOperators(text: string): PlainText {
  // The parser rejects a comment that is not terminated by a newline.
  const end = text.includes("//") ? "\n" : "";
  if (!/[.[{,]\s*\?/.test(text)) return { text: text + end, originOf: (offset) => offset };
  // The open brackets, each with the character that opened it and the text that closes it in the result.
  const open: { readonly by: string; readonly closing: string }[] = [];
  // The offsets of each piece in the original text and in the result.
  const pieces: { readonly from: number; readonly to: number; readonly isCopied: boolean }[] = [];
  let [result, index] = ["", 0];
  const put = (piece: string, length: number) => {
    pieces.push({ from: index, to: result.length, isCopied: piece.length === length });
    result += piece;
    index += length;
  };
  while (index < text.length) {
    const quoted = quotedAt(text, index);
    const field = quoted === undefined ? matchAt(FIELD, text, index) : undefined;
    const character = text[index]!;
    if (quoted !== undefined) put(quoted, quoted.length);
    else if (field !== undefined) put(`.${OPTIONAL_FIELD}("${field[1]!}")`, field[0].length);
    else {
      const optional = matchAt(/[[{,]\s*\?/y, text, index);
      const isIndex = optional !== undefined && character === "[" && BEFORE_INDEX.test(result);
      const closing = isIndex ? ")" : CLOSING[character];
      if (closing !== undefined) open.push({ by: isIndex ? "(" : character, closing });
      const mark = `${OPTIONAL_ENTRY}${open.at(-1)?.by === "{" ? ": 0" : ""}`;
      const piece = isIndex
        ? `.${OPTIONAL_INDEX}(`
        : optional !== undefined
          ? `${character}${mark}, `
          : "]})".includes(character)
            ? (open.pop()?.closing ?? character)
            : character;
      put(piece, optional?.[0].length ?? 1);
    }
  }
  return {
    text: result + end,
    originOf(offset) {
      const piece = pieces.findLast(({ to }) => to <= offset);
      return piece === undefined ? offset : piece.from + (piece.isCopied ? offset - piece.to : 0);
    },
  };
}

/** Returns the string literal or comment that starts at an offset; undefined if there is none. */
export function quotedAt(text: string, index: number): string | undefined {
  return matchAt(QUOTED, text, index)?.[0];
}

function matchAt(pattern: RegExp, text: string, index: number): RegExpExecArray | undefined {
  pattern.lastIndex = index;
  return pattern.exec(text) ?? undefined;
}
