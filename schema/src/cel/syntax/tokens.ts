// Splits an expression into tokens and finds invalid ones, as the lexer that ANTLR generates for cel-go does; also normalizes the whitespace of an
// expression. https://github.com/google/cel-go/blob/master/parser/gen/CEL.g4

/** The text of an operator or keyword, or the name of the lexer rule of any other token. */
export type TokenKind = string;

/** A token with the offset of its first character. */
export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  readonly offset: number;
}

/** The range of characters that do not form a token. */
export interface Wrong {
  readonly from: number;
  readonly to: number;
}

/** The kind of the token at the end of the input. */
export const END = "<EOF>";

/** All kinds in the order in which messages list them. Messages quote operators and keywords. */
export const KINDS: readonly TokenKind[] = [
  ..."== != in < <= >= > && || [ ] { } ( ) . , - ! ? : + * / % true false null".split(" "),
  ..."NUM_FLOAT NUM_INT NUM_UINT STRING BYTES IDENTIFIER ESC_IDENTIFIER".split(" "),
];

const ESCAPE = String.raw`\\(?:[abfnrtv"'\\?${"`"}]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7][0-7])`;
const RAW = String.raw`[rR](?:"""[^]*?"""|'''[^]*?'''|"[^"\n\r]*"|'[^'\n\r]*')`;
const QUOTED = String.raw`"(?:${ESCAPE}|[^\\"\n\r])*"|'(?:${ESCAPE}|[^\\'\n\r])*'|"""(?:${ESCAPE}|[^\\])*?"""|'''(?:${ESCAPE}|[^\\])*?'''`;
const EXPONENT = String.raw`[eE][+-]?\d+`;

const OPERATOR = /[=!<>]=|&&|\|\||[<>[\]{}().,\-!?:+*/%]/y;

// The longest match wins, and the first rule on a tie. The kind of an operator or keyword is its text.
const RULES: readonly (readonly [kind: TokenKind | undefined, pattern: RegExp])[] = [
  [undefined, OPERATOR],
  [undefined, /(?:in|true|false|null)(?!\w)/y],
  ["", /[\t \r\n\f]+/y],
  ["", /\/\/[^\n]*/y],
  ["NUM_FLOAT", new RegExp(String.raw`\d+\.\d+(?:${EXPONENT})?|\d+${EXPONENT}|\.\d+(?:${EXPONENT})?`, "y")],
  ["NUM_INT", /0x[0-9a-fA-F]+|\d+/y],
  ["NUM_UINT", /0x[0-9a-fA-F]+[uU]|\d+[uU]/y],
  ...alternativesOf("STRING", `${QUOTED}|${RAW}`),
  ...alternativesOf("BYTES", QUOTED, "[bB]"),
  ["BYTES", new RegExp(`[bB](?:${RAW})`, "y")],
  ["IDENTIFIER", /[A-Za-z_]\w*/y],
  ["ESC_IDENTIFIER", /`[\w.\-/ ]+`/y],
];

// Incomplete tokens, up to the character that makes them invalid.
const BEGUN: readonly RegExp[] = [
  new RegExp(String.raw`"""(?:${ESCAPE}|[^\\])*|'''(?:${ESCAPE}|[^\\])*`, "y"),
  new RegExp(String.raw`"(?:${ESCAPE}|[^\\"\n\r])*|'(?:${ESCAPE}|[^\\'\n\r])*`, "y"),
  /`[\w.\-/ ]*/y,
  /[=&|]/y,
];
const ESCAPE_BEGUN = /\\(?:[xX][0-9a-fA-F]{0,1}|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?|)/y;

/** Splits a text into tokens. Invalid characters are skipped and returned in `wrong`. */
export function readTokens(text: string): { readonly tokens: readonly Token[]; readonly wrong: readonly Wrong[] } {
  const tokens: Token[] = [];
  const wrong: Wrong[] = [];
  let offset = 0;
  while (offset < text.length) {
    const [kind, length] = longestAt(text, offset);
    if (length === 0) {
      const end = endOfWrong(text, offset);
      wrong.push({ from: offset, to: end });
      offset = end;
      continue;
    }
    if (kind !== "") tokens.push({ kind, text: text.slice(offset, offset + length), offset });
    offset += length;
  }
  return { tokens: [...tokens, { kind: END, text: END, offset }], wrong };
}

/** Escapes newlines and tabs as error messages do. */
export function shownText(text: string): string {
  return text.replaceAll("\n", "\\n").replaceAll("\t", "\\t").replaceAll("\r", "\\r");
}

function alternativesOf(kind: TokenKind, pattern: string, prefix = ""): readonly [TokenKind, RegExp][] {
  // Alternatives of a regular expression do not match the longest text, so triple-quoted strings have a separate pattern.
  const triple = String.raw`"""(?:${ESCAPE}|[^\\])*?"""|'''(?:${ESCAPE}|[^\\])*?'''`;
  return [
    [kind, new RegExp(`${prefix}(?:${pattern})`, "y")],
    [kind, new RegExp(`${prefix}(?:${triple})`, "y")],
  ];
}

function longestAt(text: string, offset: number): readonly [kind: TokenKind, length: number] {
  let longest: readonly [TokenKind, number] = ["", 0];
  for (const [kind, pattern] of RULES) {
    const length = lengthAt(pattern, text, offset);
    if (length > longest[1]) longest = [kind ?? text.slice(offset, offset + length), length];
  }
  return longest;
}

// Skips the start of an incomplete token and the character after it.
function endOfWrong(text: string, offset: number): number {
  const begun = Math.max(...BEGUN.map((pattern) => lengthAt(pattern, text, offset)));
  const end = offset + begun;
  const at = end + (begun > 0 && /["']/.test(text[offset]!) ? lengthAt(ESCAPE_BEGUN, text, end) : 0);
  const next = text.codePointAt(at);
  return next === undefined ? at : at + String.fromCodePoint(next).length;
}

function lengthAt(pattern: RegExp, text: string, offset: number): number {
  pattern.lastIndex = offset;
  return pattern.exec(text)?.[0].length ?? 0;
}

const NO_BLANK_AFTER = new Set(["(", "[", ".", "!"]);
const NO_BLANK_BEFORE = new Set([")", "]", ".", ","]);

/** Returns an expression with canonical whitespace and without comments. An expression with invalid tokens is only trimmed. */
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
