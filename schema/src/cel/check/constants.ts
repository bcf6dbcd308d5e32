// What is known of a constant argument before its function is called.
import { findPatternProblem } from "../../texts/pattern.js";
import { OBJECT_LIMIT } from "../budget.js";
import { compileExpression } from "../compile-rule.js";

/** Tells whether a function refuses a constant while the types of an expression are checked. */
export function isWrongConstant(name: string, value: string): boolean {
  if (name === "matches") return findPatternProblem(value) !== undefined;
  if (name !== "duration" && name !== "timestamp") return false;
  const compilation = compileExpression(`${name}(text)`);
  return "expression" in compilation && compilation.expression.evaluate({ text: value }, OBJECT_LIMIT).kind === "error";
}

/** Returns why a constant pattern keeps a program from being made of an expression; undefined if it does not. */
export function patternProblemOf(name: string, value: string): string | undefined {
  if (name !== "find" && name !== "findAll") return undefined;
  const problem = findPatternProblem(value);
  return problem === undefined ? undefined : `error parsing regexp: ${problem}`;
}
