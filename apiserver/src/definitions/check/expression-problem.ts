import { checkExpression, compileExpression, type CheckedType } from "@gen-operator/schema/cel";

/** What an expression sees, and what it has to come to. */
export interface WantedExpression {
  readonly variables: { readonly [name: string]: CheckedType };
  readonly kind: "bool" | "string";
  /** What the expression is called. */
  readonly name: "cel expression" | "messageExpression";
}

/** Returns why kube-apiserver refuses an expression, in its words; undefined if it does not, or nobody knows. */
export function problemOf(text: string, { variables, kind, name }: WantedExpression): string | undefined {
  const prefix = name === "messageExpression" ? "messageExpression compilation failed" : "compilation failed";
  const compilation = compileExpression(text);
  if ("problem" in compilation && compilation.position !== undefined) {
    const { position, problem } = compilation;
    return `${prefix}: ${shown(text, position, `Syntax error: ${problem.replace(/^.*?: \d+:\d+: /s, "")}`)}`;
  }
  if ("problem" in compilation && compilation.kind === "unsupported" && compilation.problem.startsWith("it is"))
    return undefined;
  const { type, problems } = checkExpression(text, variables);
  if (problems.length > 0)
    return `${prefix}: ${problems.map(({ offset, message }) => shown(text, positionOf(text, offset), message)).join("\n")}`;
  return type.kind === "dyn" || type.kind === kind ? undefined : `${name} must evaluate to a ${kind}`;
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
