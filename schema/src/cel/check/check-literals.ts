// What kube-apiserver checks of literals after the types of an expression are right: constants that a function refuses, and lists and maps whose items
// have several types.
import { findPatternProblem } from "../../texts/pattern.js";
import { OBJECT_LIMIT } from "../budget.js";
import { compileExpression } from "../compile-rule.js";
import type { Expression } from "../prepare/prepare-expression.js";
import { isOptionalMark, textConstant, valuesOf, type Call } from "./expression-parts.js";
import { DYN, isSameType, nameOfType, type CheckedType } from "./types.js";

/** What is wrong with a literal, and where. */
export interface LiteralProblem {
  readonly at: Expression;
  readonly message: string;
}

type Types = ReadonlyMap<Expression, CheckedType>;

/** Checks all literals of an expression, given the types of its parts; `free` are the ones in a call of `format`, which may be mixed. */
export function checkLiterals(types: Types, free: ReadonlySet<Expression>): LiteralProblem[] {
  return [...types.keys()].flatMap((part) => {
    const { exprKind } = part;
    if (exprKind.case === "callExpr") return checkConstant(exprKind.value);
    if (free.has(part)) return [];
    if (exprKind.case === "listExpr") return checkItems(exprKind.value.elements, types).slice(0, 1);
    if (exprKind.case !== "structExpr" || exprKind.value.messageName !== "") return [];
    const keys = exprKind.value.entries.flatMap(({ keyKind }) => (keyKind.case === "mapKey" ? [keyKind.value] : []));
    const names = keys.filter((each) => !isOptionalMark(each));
    return [...checkItems(names, types), ...checkItems(valuesOf(exprKind.value.entries), types)];
  });
}

/** Returns why a constant pattern keeps a program from being made of an expression; undefined if it does not. */
export function patternProblemOf({ function: name, target, args }: Call): string | undefined {
  const isFunction = name === "matches" && target === undefined;
  const pattern =
    isFunction || name === "find" || name === "findAll" ? textConstant(args[isFunction ? 1 : 0]) : undefined;
  const problem = pattern === undefined ? undefined : findPatternProblem(pattern);
  return problem === undefined ? undefined : `error parsing regexp: ${problem}`;
}

function checkConstant({ function: name, args: [argument] }: Call): LiteralProblem[] {
  const constant = textConstant(argument);
  if (argument === undefined || constant === undefined || !isWrong(name, constant)) return [];
  return [{ at: argument, message: `invalid ${name} argument` }];
}

function isWrong(name: string, value: string): boolean {
  if (name === "matches") return findPatternProblem(value) !== undefined;
  if (name !== "duration" && name !== "timestamp") return false;
  const compilation = compileExpression(`${name}(text)`);
  return "expression" in compilation && compilation.expression.evaluate({ text: value }, OBJECT_LIMIT).kind === "error";
}

function checkItems(items: readonly Expression[], types: Types): LiteralProblem[] {
  const all = items.flatMap((item, index) => {
    const type = types.get(item) ?? DYN;
    const isOptional = isOptionalMark(items[index - 1]) && type.kind === "optional";
    return isOptionalMark(item) ? [] : [{ at: item, type: isOptional ? type.element : type }];
  });
  const wanted = all[0]?.type ?? DYN;
  return all
    .filter(({ type }) => !isSameType(wanted, type))
    .map(({ at, type }) => ({ at, message: `expected type '${nameOfType(wanted)}' but found '${nameOfType(type)}'` }));
}
