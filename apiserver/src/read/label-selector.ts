// The grammar of label selectors as Kubernetes' own parser reads it, with its tokens, its leniency and its messages.
import { labelValueProblems, qualifiedNameProblems } from "../builtin/rules/name-syntax.js";
import { fieldErrorText, invalidError, type FieldError } from "../errors/field-error.js";
import { compareText } from "../json.js";

/** One condition of a selector; `exists` and `!` have no values. */
export interface LabelRequirement {
  key: string;
  operator: "in" | "notin" | "=" | "==" | "!=" | ">" | "<" | "exists" | "!";
  /** Sorted, without repetition. */
  values: string[];
}

/** Says that a selector cannot be read; the message is Kubernetes'. */
export class SelectorSyntaxError extends Error {
  override readonly name = "SelectorSyntaxError";
}

interface Token {
  kind: "end" | "identifier" | "in" | "notin" | "=" | "==" | "!=" | ">" | "<" | "!" | "," | "(" | ")";
  text: string;
}

const OPERATORS = ["in", "notin", "=", "==", "!=", ">", "<"] as const;
const TOKEN = /\s*(?:(==|!=|[=!(),<>])|([^\s=!(),<>]+))/y;

/** Reads a selector into its requirements, which all have to hold. */
export function parseRequirements(text: string): LabelRequirement[] {
  const tokens = new TokenReader(tokensOf(text));
  const requirements: LabelRequirement[] = [];
  for (;;) {
    const first = tokens.peek();
    if (first.kind === "end") return requirements;
    if (first.kind !== "identifier" && first.kind !== "!") fail(first, ", expected: !, identifier, or 'end of string'");
    requirements.push(parseRequirementInContext(tokens));
    const separator = tokens.next();
    if (separator.kind === "end") return requirements;
    if (separator.kind !== ",") fail(separator, ", expected: ',' or 'end of string'");
    const following = tokens.peek();
    if (following.kind !== "identifier" && following.kind !== "!") fail(following, ", expected: identifier after ','");
  }
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(text); match !== null; match = TOKEN.exec(text)) {
    const [, symbol, word = ""] = match;
    if (symbol !== undefined) tokens.push({ kind: symbol as Token["kind"], text: symbol });
    else tokens.push({ kind: word === "in" || word === "notin" ? word : "identifier", text: word });
  }
  return tokens;
}

/** Hands out tokens; where no operator can stand, `in` and `notin` are ordinary words. */
class TokenReader {
  private readonly tokens: Token[];
  private position = 0;

  constructor(tokens: Token[]) {
    this.tokens = tokens;
  }

  peek(): Token {
    const token = this.raw();
    return token.kind === "in" || token.kind === "notin" ? { kind: "identifier", text: token.text } : token;
  }

  next(): Token {
    const token = this.peek();
    this.position++;
    return token;
  }

  nextOperator(): Token {
    const token = this.raw();
    this.position++;
    return token;
  }

  private raw(): Token {
    return this.tokens[this.position] ?? { kind: "end", text: "" };
  }
}

function parseRequirementInContext(tokens: TokenReader): LabelRequirement {
  try {
    return parseRequirement(tokens);
  } catch (error) {
    if (!(error instanceof SelectorSyntaxError)) throw error;
    throw new SelectorSyntaxError(`unable to parse requirement: ${error.message}`);
  }
}

function parseRequirement(tokens: TokenReader): LabelRequirement {
  const isAbsence = tokens.peek().kind === "!";
  if (isAbsence) tokens.next();
  const key = tokens.next();
  if (key.kind !== "identifier") fail(key, ", expected: identifier");
  rejectProblems(qualifiedNameProblems(key.text), (detail) => invalidError("", key.text, detail));
  if (isAbsence) return { key: key.text, operator: "!", values: [] };
  const following = tokens.peek().kind;
  if (following === "end" || following === ",") return { key: key.text, operator: "exists", values: [] };

  const token = tokens.nextOperator();
  const operator = OPERATORS.find((known) => known === token.kind);
  if (operator === undefined) fail(token, ", expected: in, notin, =, ==, !=, gt, lt");
  const values = operator === "in" || operator === "notin" ? parseValueSet(tokens) : parseExactValue(tokens);
  return checkedRequirement({ key: key.text, operator, values: [...new Set(values)].sort(compareText) });
}

function parseValueSet(tokens: TokenReader): string[] {
  const open = tokens.next();
  if (open.kind !== "(") throw new SelectorSyntaxError(`found '${open.text}' expected: '('`);
  const first = tokens.peek();
  if (first.kind === ")") {
    tokens.next();
    return [""];
  }
  if (first.kind !== "identifier" && first.kind !== ",") fail(first, ", expected: ',', ')' or identifier");
  const values = parseValueList(tokens);
  tokens.next();
  return values;
}

// Stands before a word or comma; stops before the closing parenthesis. Missing words count as the empty value.
function parseValueList(tokens: TokenReader): string[] {
  const values: string[] = [];
  for (;;) {
    const token = tokens.next();
    const following = tokens.peek();
    if (token.kind === "identifier") {
      values.push(token.text);
      if (following.kind === ")") return values;
      if (following.kind !== ",") fail(following, ", expected: ',' or ')'");
    } else if (token.kind === ",") {
      if (values.length === 0 || following.kind === ")" || following.kind === ",") values.push("");
      if (following.kind === ")") return values;
      if (following.kind === ",") tokens.next();
    } else {
      fail(token, ", expected: ',', or identifier");
    }
  }
}

function parseExactValue(tokens: TokenReader): string[] {
  const following = tokens.peek().kind;
  if (following === "end" || following === ",") return [""];
  const token = tokens.next();
  if (token.kind !== "identifier") fail(token, ", expected: identifier");
  return [token.text];
}

function checkedRequirement(requirement: LabelRequirement): LabelRequirement {
  const { key, operator, values } = requirement;
  const isComparison = operator === ">" || operator === "<";
  const errors: FieldError[] = [];
  values.forEach((value, index) => {
    if (isComparison && parseInt64(value) === undefined) {
      const detail = "for 'Gt', 'Lt' operators, the value must be an integer";
      errors.push(invalidError(`values[${index}]`, value, detail));
    }
  });
  values.forEach((value, index) => {
    const problems = labelValueProblems(value);
    if (problems.length > 0) errors.push(invalidError(`values[${index}][${key}]`, value, problems.join("; ")));
  });
  const texts = [...new Set(errors.map(fieldErrorText))];
  if (texts.length > 0) throw new SelectorSyntaxError(texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`);
  return requirement;
}

function rejectProblems(problems: string[], errorOf: (detail: string) => FieldError): void {
  if (problems.length > 0) throw new SelectorSyntaxError(fieldErrorText(errorOf(problems.join("; "))));
}

/** Reads a decimal integer of 64 bits; undefined if the text is none. */
export function parseInt64(text: string): bigint | undefined {
  if (!/^[+-]?\d+$/.test(text)) return undefined;
  const value = BigInt(text.replace(/^\+/, ""));
  return value === BigInt.asIntN(64, value) ? value : undefined;
}

function fail(token: Token, expectation: string): never {
  throw new SelectorSyntaxError(`found '${token.text}'${expectation}`);
}
