import { END, readTokens } from "./tokens.js";

const NO_BLANK_AFTER = new Set(["(", "[", ".", "!"]);
const NO_BLANK_BEFORE = new Set([")", "]", ".", ","]);

/** Returns an expression with the same blanks however it is written, and without comments; one that has a syntax error, as it is. */
export function canonicalExpression(text: string): string {
  const { tokens, wrong } = readTokens(text);
  if (wrong.length > 0) return text.trim();
  let written = "";
  let before = "(";
  let isName = false;
  for (const { kind, text: token } of tokens) {
    if (kind === END) break;
    const isArgument = (token === "(" || token === "[") && (isName || before === ")" || before === "]");
    const isJoined = NO_BLANK_AFTER.has(before) || NO_BLANK_BEFORE.has(token) || isArgument;
    written += `${isJoined ? "" : " "}${token}`;
    before = token;
    isName = kind === "IDENTIFIER" || kind === "ESC_IDENTIFIER";
  }
  return written;
}
