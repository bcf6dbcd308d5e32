import type { Expression } from "../expression/prepare-expression.js";
import type { CheckedType } from "./types.js";

/** What is wrong with an expression, and where: an offset in its text. */
export interface ExpressionProblem {
  readonly offset: number;
  readonly message: string;
}

/** What the check of an expression found: the type of its value, and what is wrong, in the order of the text. */
export interface CheckedExpression {
  readonly type: CheckedType;
  readonly problems: readonly ExpressionProblem[];
  /** What keeps a program from being made of the expression, if its types are right. */
  readonly programProblem: string | undefined;
  /** The types of all parts. */
  readonly types: ReadonlyMap<Expression, CheckedType>;
  readonly root: Expression | undefined;
  /** Whether it names the old value. */
  readonly usesOldSelf: boolean;
}

/** What an expression may do besides. */
export interface CheckOptions {
  /** Whether it may construct `Object{…}` and `JSONPatch{…}`. Default: false. */
  readonly hasPatchTypes?: boolean;
}
