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

/** Returns an expression without the operators of optional values. */
export function withoutOptionalOperators(text: string): string {
  if (!/[.[{,]\s*\?/.test(text)) return text;
  // What opened the brackets around, and what closes them now.
  const open: { readonly by: string; readonly closing: string }[] = [];
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
      const isIndex = optional !== undefined && character === "[" && BEFORE_INDEX.test(result);
      const closing = isIndex ? ")" : CLOSING[character];
      if (closing !== undefined) open.push({ by: isIndex ? "(" : character, closing });
      if (isIndex) result += `.${OPTIONAL_INDEX}(`;
      else if (optional !== undefined)
        result += `${character}${OPTIONAL_ENTRY}${open.at(-1)?.by === "{" ? ": 0" : ""}, `;
      else result += "]})".includes(character) ? (open.pop()?.closing ?? character) : character;
      index += optional?.[0].length ?? 1;
    }
  }
  return result;
}

function matchAt(pattern: RegExp, text: string, index: number): RegExpExecArray | undefined {
  pattern.lastIndex = index;
  return pattern.exec(text) ?? undefined;
}
