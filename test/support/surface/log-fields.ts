// The field names of log lines, which users search for and tools parse.
import type ts from "typescript";
import { createLogger } from "#runtime/index.js";
import { OPEN, type SourceProgram } from "./source-program.js";

const LEVELS = ["debug", "info", "warn", "error"];

/** A log line: its levels, and the expression of its fields. */
interface Line {
  readonly levels: readonly string[];
  readonly fields: ts.Expression;
}

/**
 * Returns the fields of the log lines of a package, with the levels at which they are logged.
 *
 * A log line is a call of a logger method, or the JSON of an object with `level` and `message`.
 */
export function logFieldsOf(program: SourceProgram): string {
  const levelsOf = new Map<string, Set<string>>();
  const open = new Map<string, number>();
  program.forEachNode((node) => {
    const line = lineOf(program, node);
    if (line === undefined) return;
    const keys = program.keysOf(line.fields, () => {
      const where = line.levels.join(" ");
      open.set(where, (open.get(where) ?? 0) + 1);
    });
    for (const key of keys) {
      const levels = levelsOf.get(key) ?? new Set();
      levelsOf.set(key, levels);
      for (const level of line.levels) levels.add(level);
    }
  });
  const fields = [...levelsOf]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, levels]) => `${key}: ${LEVELS.filter((level) => levels.has(level)).join(" ")}`);
  const others = [...open].sort().map(([levels, count]) => `${count} at ${levels}`);
  return [
    ...["## fields of every line", "", ...fieldsOfEveryLine(), ""],
    ...["## fields, with the levels of the lines that have them", "", ...fields, ""],
    ...["## places that pass on the fields of a caller", "", ...others, ""],
  ].join("\n");
}

function fieldsOfEveryLine(): string[] {
  const lines: string[] = [];
  createLogger("info", { format: "json", write: (line) => lines.push(line) }).info({}, "text");
  return Object.keys(JSON.parse(lines.join("")) as object).sort();
}

function lineOf(program: SourceProgram, node: ts.Node): Line | undefined {
  const { compiler, checker } = program;
  if (compiler.isObjectLiteralExpression(node)) {
    const [level, message] = [program.memberOf(node, "level"), program.memberOf(node, "message")];
    const isJson = compiler.isCallExpression(node.parent) && node.parent.expression.getText() === "JSON.stringify";
    return isJson && level !== undefined && message !== undefined
      ? { levels: program.textsOf(level), fields: node }
      : undefined;
  }
  if (!compiler.isCallExpression(node)) return undefined;
  const [fields] = node.arguments;
  const { expression } = node;
  if (fields === undefined) return undefined;
  if (compiler.isPropertyAccessExpression(expression)) {
    if (!LEVELS.includes(expression.name.text) || !isLogger(checker, expression.expression)) return undefined;
    return { levels: [expression.name.text], fields };
  }
  if (!compiler.isElementAccessExpression(expression) || !isLogger(checker, expression.expression)) return undefined;
  const levels = program.textsOf(expression.argumentExpression);
  return { levels: levels.includes(OPEN) ? LEVELS : LEVELS.filter((each) => levels.includes(each)), fields };
}

function isLogger(checker: ts.TypeChecker, expression: ts.Expression): boolean {
  const type = checker.getNonNullableType(checker.getTypeAtLocation(expression));
  return LEVELS.every((level) => type.getProperty(level) !== undefined);
}
