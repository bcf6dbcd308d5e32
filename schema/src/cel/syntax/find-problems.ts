// Finds syntax errors with the messages and positions of the parser that ANTLR generates for cel-go. Recovers from errors as ANTLR's default error
// strategy does: https://github.com/antlr/antlr4/blob/dev/doc/parser-rules.md#catching-exceptions
import { RESERVED_WORDS } from "../fields.js";
import { GRAMMAR, type Ahead, type Part, type RuleName } from "./grammar.js";
import { END, KINDS, readTokens, shownText, type Token, type TokenKind, type Wrong } from "./tokens.js";

/** A syntax error. `offset` is the index of a character. */
export interface SyntaxProblem {
  readonly offset: number;
  readonly message: string;
}

/** The remaining parts of a rule, including those of the enclosing loops. */
type Rest = { readonly part: Part; readonly next: Rest; readonly isAgain?: boolean } | undefined;

/** An invocation of a grammar rule. */
interface Frame {
  rest: Rest;
  /** The index of the first token of the rule. */
  readonly start: number;
  readonly caller: Frame | undefined;
  readonly precedence: number;
}

/** A syntax error that aborts the current rule: an unexpected token, or no viable alternative. */
class Mistake {
  readonly message: string;
  readonly at: Token;

  constructor(message: string, at: Token) {
    this.message = message;
    this.at = at;
  }
}

interface Expected {
  readonly kinds: Set<TokenKind>;
  /** Whether the rule may end at this point. */
  readonly mayEnd: boolean;
}

type TokenPart = Extract<Part, { type: "token" }>;

const MOST_PROBLEMS = 100;

/** Returns the syntax errors of an expression in order; empty if cel-go accepts it, or if it is nested too deeply for this parser. */
export function findSyntaxProblems(text: string): SyntaxProblem[] {
  const read = readTokens(text);
  const reader = new Reader(text, read);
  try {
    reader.read("start", undefined, 0);
  } catch (error) {
    if (error instanceof RangeError) return [];
    throw error;
  }
  const unread = read.wrong.map(({ from, to }) => ({
    offset: from,
    message: `Syntax error: token recognition error at: '${text.slice(from, to)}'`,
  }));
  return [...unread, ...reader.problems].sort((one, other) => one.offset - other.offset).slice(0, MOST_PROBLEMS);
}

class Reader {
  readonly problems: SyntaxProblem[] = [];
  readonly #text: string;
  readonly #tokens: readonly Token[];
  readonly #wrong: readonly Wrong[];
  #index = 0;
  /** After an error, further ones are suppressed until a token matches. */
  #isRecovering = false;
  /** The position of the last error, and the parts that failed there. If the same part fails again, a token is skipped, as in ANTLR. */
  #lastIndex = -1;
  readonly #lastParts = new Set<unknown>();

  constructor(text: string, { tokens, wrong }: ReturnType<typeof readTokens>) {
    this.#text = text;
    this.#tokens = tokens;
    this.#wrong = wrong;
  }

  read(rule: RuleName, caller: Frame | undefined, precedence: number): void {
    const frame: Frame = { rest: restOf(GRAMMAR[rule], undefined), start: this.#index, caller, precedence };
    try {
      while (frame.rest !== undefined) this.#readPart(frame, frame.rest);
    } catch (error) {
      if (!(error instanceof Mistake)) throw error;
      this.#report(error.at, error.message);
      if (rule === "escapeIdent") this.problems.push({ offset: error.at.offset, message: "unsupported ident kind" });
      this.#recover(frame);
    }
  }

  #readPart(frame: Frame, { part, next, isAgain = false }: NonNullable<Rest>): void {
    if (part.type === "token") {
      this.#match(frame, part, next);
      frame.rest = next;
      return;
    }
    if (part.type === "rule") {
      frame.rest = next;
      this.read(part.rule, frame, part.precedence);
      return;
    }
    const isFirst = part.type === "plus" && !isAgain;
    this.#sync(frame, isAgain);
    if (part.type === "choice") {
      const { index, read = 1 } = part.choose(this.#ahead(frame));
      const chosen = part.among[index];
      if (chosen === undefined) throw this.#noAlternative(read);
      frame.rest = restOf(chosen, next);
      return;
    }
    const enters = isFirst || part.enters(this.#ahead(frame));
    if (typeof enters === "number") throw this.#noAlternative(enters);
    const after: Rest = part.type === "optional" ? next : { part, next, isAgain: true };
    frame.rest = enters ? restOf(part.of, after) : next;
  }

  #ahead({ precedence }: Frame): Ahead {
    return { kind: (index) => this.#token(index).kind, precedence };
  }

  #token(index: number): Token {
    const at = Math.min(this.#index + index, this.#tokens.length) - 1;
    return this.#tokens[Math.max(at, 0)]!;
  }

  // Synchronizes before a choice: a single extraneous token is dropped.
  #sync(frame: Frame, isAgain: boolean): void {
    if (this.#isRecovering) return;
    const { kinds, mayEnd } = expectedAt(frame.rest);
    if (mayEnd || kinds.has(this.#token(1).kind)) return;
    if (!isAgain) {
      if (!this.#leaveOut(frame)) throw this.#mismatch(frame);
      return;
    }
    this.#reportUnwanted(frame);
    this.#skipUntil(new Set([...expectedIn(frame), ...followers(frame)]));
  }

  #match(frame: Frame, { kinds, isName = false }: TokenPart, next: Rest): void {
    if (!kinds.includes(this.#token(1).kind) && !this.#leaveOut(frame)) {
      if (!expectedIn({ ...frame, rest: next }).has(this.#token(1).kind)) throw this.#mismatch(frame);
      this.#report(this.#token(1), `missing ${namesOf(expectedIn(frame))} at ${shown(this.#token(1))}`);
      return;
    }
    const { text } = this.#token(1);
    if (isName && RESERVED_WORDS.has(text)) {
      const { offset } = this.#token(this.#token(0).kind === "." ? 0 : 1);
      this.problems.push({ offset, message: `reserved identifier: ${text}` });
    }
    this.#checkToken(this.#token(1), this.#tokens[frame.start]!);
    this.#accept();
    this.#consume();
  }

  // A minus sign is part of a number literal.
  #checkToken({ kind, text, offset }: Token, first: Token): void {
    if (kind === "ESC_IDENTIFIER") this.problems.push({ offset, message: "unsupported syntax: '`'" });
    const isNegative = first.kind === "-" && /^NUM_(INT|FLOAT)$/.test(kind);
    const problem = numberProblem(kind, isNegative ? `-${text}` : text);
    if (problem !== undefined) this.problems.push({ offset: isNegative ? first.offset : offset, message: problem });
  }

  // Drops the next token if the one after it matches. Returns whether it did.
  #leaveOut(frame: Frame): boolean {
    if (!expectedIn(frame).has(this.#token(2).kind)) return false;
    this.#reportUnwanted(frame);
    this.#consume();
    this.#accept();
    return true;
  }

  #accept(): void {
    this.#isRecovering = false;
    this.#lastIndex = -1;
    this.#lastParts.clear();
  }

  #consume(): void {
    if (this.#token(1).kind !== END) this.#index++;
  }

  #recover(frame: Frame): void {
    const part = frame.rest?.part;
    if (this.#lastIndex === this.#index && this.#lastParts.has(part)) this.#consume();
    this.#lastIndex = this.#index;
    this.#lastParts.add(part);
    this.#skipUntil(followers(frame));
  }

  #skipUntil(kinds: ReadonlySet<TokenKind>): void {
    while (this.#token(1).kind !== END && !kinds.has(this.#token(1).kind)) this.#consume();
  }

  #reportUnwanted(frame: Frame): void {
    const at = this.#token(1);
    this.#report(at, `extraneous input ${shown(at)} expecting ${namesOf(expectedIn(frame))}`);
  }

  #mismatch(frame: Frame): Mistake {
    const at = this.#token(1);
    return new Mistake(`mismatched input ${shown(at)} expecting ${namesOf(expectedIn(frame))}`, at);
  }

  #noAlternative(read: number): Mistake {
    const [first, last] = [this.#token(1), this.#token(read)];
    const text = first.kind === END ? END : this.#textBetween(first, last);
    return new Mistake(`no viable alternative at input '${shownText(text)}'`, last);
  }

  // Characters that are not part of a token are omitted.
  #textBetween(first: Token, last: Token): string {
    const end = last.kind === END ? this.#text.length : last.offset + last.text.length;
    const isRead = (offset: number): boolean => !this.#wrong.some(({ from, to }) => offset >= from && offset < to);
    const offsets = Array.from({ length: end - first.offset }, (_, index) => first.offset + index);
    return offsets
      .filter(isRead)
      .map((offset) => this.#text[offset])
      .join("");
  }

  #report({ offset }: Token, message: string): void {
    if (this.#isRecovering) return;
    this.#isRecovering = true;
    this.problems.push({ offset, message: `Syntax error: ${message}` });
  }
}

function numberProblem(kind: TokenKind, text: string): string | undefined {
  const size = BigInt(/^-?(0x[0-9a-f]+|\d+)/i.exec(text)?.[0].replace("-", "") ?? 0);
  const isNegative = text.startsWith("-");
  if (kind === "NUM_INT" && size > (isNegative ? 2n ** 63n : 2n ** 63n - 1n)) return "invalid int literal";
  if (kind === "NUM_UINT" && size >= 2n ** 64n) return "invalid uint literal";
  return kind === "NUM_FLOAT" && !Number.isFinite(Number(text)) ? "invalid double literal" : undefined;
}

function restOf(parts: readonly Part[], next: Rest): Rest {
  return parts.reduceRight<Rest>((rest, part) => ({ part, next: rest }), next);
}

// The token kinds that can follow within the rule.
function expectedAt(rest: Rest): Expected {
  const kinds = new Set<TokenKind>();
  for (let at = rest; at !== undefined; at = at.next) {
    const { part, isAgain = false } = at;
    for (const kind of startsOf(part)) kinds.add(kind);
    const isSkippable = part.type === "optional" || part.type === "star" || isAgain;
    if (!isSkippable) return { kinds, mayEnd: false };
  }
  return { kinds, mayEnd: true };
}

// The token kinds that can follow, including those after the calling rules.
function expectedIn(frame: Frame): Set<TokenKind> {
  const all = new Set<TokenKind>();
  for (let at: Frame | undefined = frame; at !== undefined; at = at.caller) {
    const { kinds, mayEnd } = expectedAt(at.rest);
    for (const kind of kinds) all.add(kind);
    if (!mayEnd) return all;
  }
  return all.add(END);
}

// The token kinds that can follow any of the calling rules, for error recovery.
function followers({ caller }: Frame): Set<TokenKind> {
  const all = new Set<TokenKind>();
  for (let at = caller; at !== undefined; at = at.caller) for (const kind of expectedAt(at.rest).kinds) all.add(kind);
  return all;
}

const starts = new Map<Part, ReadonlySet<TokenKind>>();

function startsOf(part: Part): ReadonlySet<TokenKind> {
  const known = starts.get(part);
  if (known !== undefined) return known;
  const found =
    part.type === "token"
      ? new Set(part.kinds)
      : part.type === "rule"
        ? expectedAt(restOf(GRAMMAR[part.rule], undefined)).kinds
        : part.type === "choice"
          ? new Set(part.among.flatMap((parts) => [...expectedAt(restOf(parts, undefined)).kinds]))
          : expectedAt(restOf(part.of, undefined)).kinds;
  starts.set(part, found);
  return found;
}

function namesOf(kinds: ReadonlySet<TokenKind>): string {
  const names = [...(kinds.has(END) ? [END] : []), ...KINDS.filter((kind) => kinds.has(kind)).map(nameOf)];
  return names.length === 1 ? names[0]! : `{${names.join(", ")}}`;
}

function nameOf(kind: TokenKind): string {
  return /^[A-Z]/.test(kind) ? kind : `'${kind}'`;
}

function shown({ text }: Token): string {
  return `'${shownText(text)}'`;
}
