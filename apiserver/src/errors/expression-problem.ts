import {
  checkExpression,
  compileExpression,
  nameOfType,
  type CheckedType,
  type CheckOptions,
} from "@gen-operator/schema/cel";

/** The types of the variables of an expression. */
export type Variables = { readonly [name: string]: CheckedType };

/** The type of what an expression comes to, or why kube-apiserver cannot compile it, in its words. */
export type CheckedText = { readonly type: CheckedType["kind"]; readonly name: string } | { readonly problem: string };

/** Checks an expression; what nobody knows for certain is taken as right. */
export function checkText(text: string, variables: Variables, options: CheckOptions = {}): CheckedText {
  const compilation = compileExpression(text);
  if ("problem" in compilation && compilation.position !== undefined) {
    const { position, problem } = compilation;
    const message = `Syntax error: ${problem.replace(/^.*?: \d+:\d+: /s, "")}`;
    return { problem: `compilation failed: ${shown(text, position, message)}` };
  }
  if ("problem" in compilation && compilation.problem.startsWith("it is")) return { type: "dyn", name: "dyn" };
  const { type, problems, programProblem } = checkExpression(text, variables, options);
  if (problems.length === 0 && programProblem !== undefined)
    return { problem: `program instantiation failed: ${programProblem}` };
  if (problems.length === 0) return { type: type.kind, name: nameOfType(type) };
  const lines = problems.map(({ offset, message }) => shown(text, positionOf(text, offset), message));
  return { problem: `compilation failed: ${lines.join("\n")}` };
}

interface Position {
  readonly line: number;
  readonly column: number;
}

function positionOf(text: string, offset: number): Position {
  const before = text.slice(0, offset).split("\n");
  return { line: before.length, column: (before.at(-1) ?? "").length + 1 };
}

function shown(text: string, { line, column }: Position, message: string): string {
  const source = text.split("\n")[line - 1] ?? "";
  return `ERROR: <input>:${line}:${column}: ${message}\n | ${source}\n | ${".".repeat(Math.max(0, column - 1))}^`;
}
