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

/** Returns an expression without the operators of optional values; undefined if an optional entry of a literal, `[?a]` or `{?a: b}`, is left. */
export function withoutOptionalOperators(text: string): string | undefined {
  if (!/[.[{,]\s*\?/.test(text)) return text;
  const closing: string[] = [];
  let [result, index] = ["", 0];
  while (index < text.length) {
    const quoted = matchAt(QUOTED, text, index);
    const field = quoted === undefined ? matchAt(FIELD, text, index) : undefined;
    const character = text[index]!;
    if (quoted !== undefined) {
      result += quoted[0];
      index += quoted[0].length;
    } else if (field !== undefined) {
      result += `.${OPTIONAL_FIELD}("${field[1]!}")`;
      index += field[0].length;
    } else {
      const optional = matchAt(/[[{,]\s*\?/y, text, index);
      if (optional !== undefined && !(character === "[" && BEFORE_INDEX.test(result))) return undefined;
      if (optional !== undefined) closing.push(")");
      else if (character === "[") closing.push("]");
      if (optional !== undefined) result += `.${OPTIONAL_INDEX}(`;
      else result += character === "]" ? (closing.pop() ?? "]") : character;
      index += optional?.[0].length ?? 1;
    }
  }
  return result;
}

function matchAt(pattern: RegExp, text: string, index: number): RegExpExecArray | undefined {
  pattern.lastIndex = index;
  return pattern.exec(text) ?? undefined;
}
