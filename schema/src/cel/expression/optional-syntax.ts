// The parser does not know the operators of optional values, `a.?b` and `a[?b]`, so they become calls before it reads the text.

/** The method that stands for `.?name`. */
export const OPTIONAL_FIELD = "optionalField__";

/** The method that stands for `[?index]`. */
export const OPTIONAL_INDEX = "optionalIndex__";

// Texts and comments, which are left as they are; a raw text has no escapes.
const QUOTED =
  /\/\/[^\n]*|(?:[bB]?[rR]|[rR][bB])(?:"""[^]*?"""|'''[^]*?'''|"[^"\n]*"|'[^'\n]*')|"""(?:\\[^]|[^\\])*?"""|'''(?:\\[^]|[^\\])*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/y;
const FIELD = /\.\s*\?\s*([A-Za-z_]\w*)/y;
const BEFORE_INDEX = /[\w)\]}"'`]\s*$/;

/** The entry of a literal that says of the next one that it is optional: `[?a]` and `{?a: b}`. */
export const OPTIONAL_ENTRY = "optionalEntry__";

const CLOSING: { readonly [opening: string]: string } = { "[": "]", "{": "}", "(": ")" };

/** An expression without the operators of optional values, and where its parts were before. */
interface PlainText {
  readonly text: string;
  /** Returns the offset in the text as it was. */
  readonly originOf: (offset: number) => number;
}

/** Returns an expression without the operators of optional values. */
export function withoutOptionalOperators(text: string): PlainText {
  // The parser knows no comment that ends with the text.
  const end = text.includes("//") ? "\n" : "";
  if (!/[.[{,]\s*\?/.test(text)) return { text: text + end, originOf: (offset) => offset };
  // What opened the brackets around, and what closes them now.
  const open: { readonly by: string; readonly closing: string }[] = [];
  // What each piece begins with, before and after.
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

/** Returns the text in quotes or the comment that begins at an offset; undefined if none does. */
export function quotedAt(text: string, index: number): string | undefined {
  return matchAt(QUOTED, text, index)?.[0];
}

function matchAt(pattern: RegExp, text: string, index: number): RegExpExecArray | undefined {
  pattern.lastIndex = index;
  return pattern.exec(text) ?? undefined;
}
