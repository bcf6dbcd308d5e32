// The grammar of CEL as data, with the predictions at choices and loops. https://github.com/google/cel-go/blob/master/parser/gen/CEL.g4
import { END, type TokenKind } from "./tokens.js";

/** An element of a grammar rule. */
export type Part =
  /** `isName` rejects reserved words. */
  | { readonly type: "token"; readonly kinds: readonly TokenKind[]; readonly isName?: boolean }
  | { readonly type: "rule"; readonly rule: RuleName; readonly precedence: number }
  | { readonly type: "choice"; readonly among: readonly (readonly Part[])[]; readonly choose: Choose }
  | { readonly type: "optional" | "star" | "plus"; readonly of: readonly Part[]; readonly enters: Enters };

/** The input of a prediction: the kinds of the upcoming tokens, starting at 1, and the precedence of the rule. */
export interface Ahead {
  readonly kind: (index: number) => TokenKind;
  readonly precedence: number;
}

/** Predicts an alternative; the index is -1 if none matches. `read` is the number of tokens that were examined. */
type Choose = (ahead: Ahead) => { readonly index: number; readonly read?: number };
/** Predicts whether a loop or optional part is entered. A number means that neither alternative is viable after so many tokens. */
type Enters = (ahead: Ahead) => boolean | number;

export type RuleName =
  | "start"
  | "expr"
  | "conditionalOr"
  | "conditionalAnd"
  | "relation"
  | "calc"
  | "unary"
  | "member"
  | "primary"
  | "exprList"
  | "listInit"
  | "fieldInitializerList"
  | "optField"
  | "mapInitializerList"
  | "escapeIdent"
  | "optExpr"
  | "literal";

const LITERALS = ["true", "false", "null", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES"];
const PRIMARY: ReadonlySet<TokenKind> = new Set(["(", "[", "{", "IDENTIFIER", ".", ...LITERALS]);
const RELATIONS = ["<", "<=", ">=", ">", "==", "!=", "in"];
const PRODUCTS = ["*", "/", "%"];
const SUMS = ["+", "-"];

const token = (...kinds: readonly TokenKind[]): Part => ({ type: "token", kinds });
const NAME: Part = { type: "token", kinds: ["IDENTIFIER"], isName: true };
const rule = (name: RuleName, precedence = 0): Part => ({ type: "rule", rule: name, precedence });
const startsWith =
  (...kinds: readonly TokenKind[]): Enters =>
  ({ kind }) =>
    kinds.includes(kind(1));
const optional = (of: readonly Part[], enters: Enters): Part => ({ type: "optional", of, enters });
const star = (of: readonly Part[], enters: Enters): Part => ({ type: "star", of, enters });
const plus = (of: readonly Part[], enters: Enters): Part => ({ type: "plus", of, enters });
const choice = (choose: Choose, ...among: readonly (readonly Part[])[]): Part => ({ type: "choice", among, choose });

const QUESTION = optional([token("?")], startsWith("?"));
const startsExpression: Enters = ({ kind }) => ["-", "!"].includes(kind(1)) || PRIMARY.has(kind(1));
const ARGUMENTS = [token("("), optional([rule("exprList")], startsExpression), token(")")];
const LEADING_DOT = optional([token(".")], startsWith("."));
const COMMA = optional([token(",")], startsWith(","));
// A trailing comma is not a separator.
const further =
  (...starts: readonly TokenKind[]): Enters =>
  (ahead) =>
    ahead.kind(1) === "," &&
    (starts.includes(ahead.kind(2)) ||
      (starts.length === 1 && startsExpression({ ...ahead, kind: (index) => ahead.kind(index + 1) }) === true));

const isNumber = (kind: TokenKind): boolean => kind === "NUM_INT" || kind === "NUM_FLOAT";
const startsOperand = (kind: TokenKind): boolean => PRIMARY.has(kind) || kind === "-";

const chooseUnary: Choose = ({ kind }) => {
  if (kind(1) === "!") return { index: 1 };
  if (kind(1) !== "-") return PRIMARY.has(kind(1)) ? { index: 0 } : { index: -1, read: 1 };
  if (isNumber(kind(2))) return { index: 0 };
  return startsOperand(kind(2)) ? { index: 2 } : { index: -1, read: 2 };
};

// cel-go's parser expects a name if one of these words follows a dot.
const WORDS = ["true", "false", "null"];

const choosePart: Choose = ({ kind }) => {
  if (kind(1) === "[") return { index: 2 };
  if (WORDS.includes(kind(2))) return { index: 1 };
  return { index: kind(2) === "IDENTIFIER" && kind(3) === "(" ? 1 : 0 };
};

const choosePrimary: Choose = ({ kind }) => {
  const brackets = ["(", "[", "{"].indexOf(kind(1));
  if (brackets >= 0) return { index: 2 + brackets };
  const at = kind(1) === "." ? 2 : 1;
  if (at === 2 && WORDS.includes(kind(2))) return { index: 0 };
  if (kind(at) !== "IDENTIFIER") return at === 2 ? { index: -1, read: 2 } : { index: 6 };
  if (kind(at + 1) === "(") return { index: 1 };
  let end = at + 1;
  while (kind(end) === "." && kind(end + 1) === "IDENTIFIER") end += 2;
  return { index: kind(end) === "{" ? 5 : 0 };
};

/** The elements of each grammar rule. */
export const GRAMMAR: { readonly [name in RuleName]: readonly Part[] } = {
  start: [rule("expr"), token(END)],
  expr: [
    rule("conditionalOr"),
    optional([token("?"), rule("conditionalOr"), token(":"), rule("expr")], startsWith("?")),
  ],
  conditionalOr: [rule("conditionalAnd"), star([token("||"), rule("conditionalAnd")], startsWith("||"))],
  conditionalAnd: [rule("relation"), star([token("&&"), rule("relation")], startsWith("&&"))],
  relation: [
    rule("calc"),
    star(
      [token(...RELATIONS), rule("relation", 2)],
      ({ kind, precedence }) => precedence <= 1 && RELATIONS.includes(kind(1)),
    ),
  ],
  calc: [
    rule("unary"),
    star(
      [
        choice(
          ({ kind }) => ({ index: PRODUCTS.includes(kind(1)) ? 0 : 1 }),
          [token(...PRODUCTS), rule("calc", 3)],
          [token(...SUMS), rule("calc", 2)],
        ),
      ],
      ({ kind, precedence }) =>
        (precedence <= 2 && PRODUCTS.includes(kind(1))) || (precedence <= 1 && SUMS.includes(kind(1))),
    ),
  ],
  unary: [
    choice(
      chooseUnary,
      [rule("member")],
      [plus([token("!")], startsWith("!")), rule("member")],
      [plus([token("-")], ({ kind }) => kind(1) === "-" && (startsOperand(kind(2)) || 2)), rule("member")],
    ),
  ],
  member: [
    rule("primary"),
    star(
      [
        choice(
          choosePart,
          [token("."), QUESTION, rule("escapeIdent")],
          [token("."), token("IDENTIFIER"), ...ARGUMENTS],
          [token("["), QUESTION, rule("expr"), token("]")],
        ),
      ],
      ({ kind }) => {
        if (kind(1) !== ".") return kind(1) === "[";
        return ["?", "IDENTIFIER", "ESC_IDENTIFIER", ...WORDS].includes(kind(2)) || 2;
      },
    ),
  ],
  primary: [
    choice(
      choosePrimary,
      [LEADING_DOT, NAME],
      [LEADING_DOT, NAME, ...ARGUMENTS],
      [token("("), rule("expr"), token(")")],
      [
        token("["),
        optional([rule("listInit")], (ahead) => ahead.kind(1) === "?" || startsExpression(ahead)),
        COMMA,
        token("]"),
      ],
      [
        token("{"),
        optional([rule("mapInitializerList")], (ahead) => ahead.kind(1) === "?" || startsExpression(ahead)),
        COMMA,
        token("}"),
      ],
      [
        LEADING_DOT,
        token("IDENTIFIER"),
        star([token("."), token("IDENTIFIER")], startsWith(".")),
        token("{"),
        optional([rule("fieldInitializerList")], startsWith("?", "IDENTIFIER", "ESC_IDENTIFIER")),
        COMMA,
        token("}"),
      ],
      [rule("literal")],
    ),
  ],
  exprList: [rule("expr"), star([token(","), rule("expr")], startsWith(","))],
  listInit: [rule("optExpr"), star([token(","), rule("optExpr")], further("?"))],
  fieldInitializerList: [
    ...[rule("optField"), token(":"), rule("expr")],
    star([token(","), rule("optField"), token(":"), rule("expr")], further("?", "IDENTIFIER", "ESC_IDENTIFIER")),
  ],
  optField: [QUESTION, rule("escapeIdent")],
  mapInitializerList: [
    ...[rule("optExpr"), token(":"), rule("expr")],
    star([token(","), rule("optExpr"), token(":"), rule("expr")], further("?")),
  ],
  escapeIdent: [
    choice(
      ({ kind }) => ({ index: ["IDENTIFIER", "ESC_IDENTIFIER"].indexOf(kind(1)), read: 1 }),
      [token("IDENTIFIER")],
      [token("ESC_IDENTIFIER")],
    ),
  ],
  optExpr: [QUESTION, rule("expr")],
  literal: [
    choice(
      ({ kind }) => {
        if (kind(1) === "-") return isNumber(kind(2)) ? { index: 0 } : { index: -1, read: 2 };
        return { index: LITERALS.includes(kind(1)) ? 1 : -1, read: 1 };
      },
      [token("-"), token("NUM_INT", "NUM_FLOAT")],
      [token(...LITERALS)],
    ),
  ],
};
