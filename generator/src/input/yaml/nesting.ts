import { Lexer } from "yaml";

/** How deep brackets, and entries on one line (`- - -`), may nest. The parser calls itself for each level, and overflows the stack at about 800. */
const MOST_LEVELS = 500;
const LONG_LINE = new RegExp(`(?:[-?][ \\t]+){${MOST_LEVELS}}`);

// Tokens of the library that stand for no text: a document, an error in brackets, and that the next token is a plain scalar.
const MARKS: ReadonlySet<string> = new Set(["\u0002", "\u0018"]);
const SCALAR = "\u001f";

/** Returns the offset where a text nests too deeply to be parsed; undefined if it does not. A stack that overflows may end the whole process. */
export function findTooDeep(text: string): number | undefined {
  // Nearly no text has so many brackets, or such a line.
  if ((text.match(/[[{]/g)?.length ?? 0) < MOST_LEVELS && !LONG_LINE.test(text)) return undefined;
  let [offset, brackets, entries] = [0, 0, 0];
  let isScalar = false;
  for (const token of new Lexer().lex(text)) {
    if (MARKS.has(token)) continue;
    if (token === SCALAR) {
      isScalar = true;
      continue;
    }
    if (!isScalar) {
      if (token === "[" || token === "{") brackets++;
      else if (token === "]" || token === "}") brackets--;
      else if (token === "-" || token === "?") entries++;
      else if (token.startsWith("\n") || token.startsWith("\r")) entries = 0;
      if (brackets + entries > MOST_LEVELS) return offset;
    }
    isScalar = false;
    offset += token.length;
  }
  return undefined;
}
