// Compiles CEL expressions as kube-apiserver does on a write, with its error messages: the message, the line, and a marker below the position.
import { createRequire } from "node:module";
import type * as Cel from "../cel/index.js";
import type { CheckedExpression, CheckedType, CheckOptions, SyntaxProblem } from "../cel/index.js";

let cel: typeof Cel | undefined;

/** Returns the CEL module. Most CRDs have no expressions, so it is loaded lazily. */
export function loadCel(): typeof Cel {
  return (cel ??= requireCel());
}

// Bundlers resolve only literal calls of `require`, which is undefined in an ES module of Node.js.
function requireCel(): typeof Cel {
  if (typeof require === "function") return require("../cel/index.js") as typeof Cel;
  return createRequire(import.meta.url)("../cel/index.js") as typeof Cel;
}

export type VariableType = CheckedType;

/** The types of the variables of an expression, by name. */
export type Variables = { readonly [name: string]: VariableType };

/**
 * The result of compiling an expression. `problem` is the error message of kube-apiserver. `unread` means that our parser cannot parse an expression
 * that has no syntax error for cel-go; it is assumed to be valid.
 */
export type CheckedText =
  | { readonly checked: CheckedExpression; readonly type: string }
  | { readonly problem: string }
  | { readonly unread: true };

const PREFIX = "compilation failed: ";

/** Compiles an expression. */
export function checkText(text: string, variables: Variables, options: CheckOptions = {}): CheckedText {
  const { checkExpression, compileExpression, findSyntaxProblems, longNameOfType } = loadCel();
  const syntax = findSyntaxProblems(text);
  if (syntax.length > 0) return { problem: `${PREFIX}${linesOf(text, syntax)}` };
  const compilation = compileExpression(text);
  // The evaluator reads less than cel-go.
  if ("problem" in compilation && !compilation.isRead) return { unread: true };
  const checked = checkExpression(text, variables, options);
  const { type, problems } = checked;
  if (problems.length === 0) return { checked, type: longNameOfType(type) };
  return { problem: `${PREFIX}${linesOf(text, problems)}` };
}

/** Returns the error message of an expression without the "compilation failed" prefix; undefined if it is valid. */
export function problemLinesOf(text: string, variables: Variables): string | undefined {
  const checked = checkText(text, variables);
  return "problem" in checked ? checked.problem.slice(PREFIX.length) : undefined;
}

function linesOf(text: string, problems: readonly SyntaxProblem[]): string {
  return problems.map(({ offset, message }) => shown(text, positionOf(text, offset), message)).join("\n");
}

interface Position {
  readonly line: number;
  readonly column: number;
}

function positionOf(text: string, offset: number): Position {
  const before = text.slice(0, offset).split("\n");
  return { line: before.length, column: [...(before.at(-1) ?? "")].length + 1 };
}

function shown(text: string, { line, column }: Position, message: string): string {
  if (text === "") return `ERROR: <input>:1:0: ${message}`;
  const source = text.split("\n")[line - 1] ?? "";
  const characters = [...source];
  const before = characters.slice(0, column - 1).map((character) => (isWide(character) ? "．" : "."));
  const mark = isWide(characters[column - 1] ?? "") ? "＾" : "^";
  return `ERROR: <input>:${line}:${column}: ${message}\n | ${source.replaceAll("\t", " ")}\n | ${before.join("")}${mark}`;
}

// kube-apiserver treats each non-ASCII character as a wide one.
function isWide(character: string): boolean {
  return character > "\u007f";
}
