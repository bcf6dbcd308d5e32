// What the check of an expression asks of its parts.
import { OPTIONAL_ENTRY } from "./optional-syntax.js";
import type { Expression } from "./prepare-expression.js";
import type { CheckedType } from "../check/types.js";

/** A selection of a field in a parsed expression. */
export type Select = Extract<Expression["exprKind"], { case: "selectExpr" }>["value"];
/** A call in a parsed expression. */
export type Call = Extract<Expression["exprKind"], { case: "callExpr" }>["value"];
/** A loop in a parsed expression. */
export type Loop = Extract<Expression["exprKind"], { case: "comprehensionExpr" }>["value"];
/** A literal of a map or an object in a parsed expression. */
export type Struct = Extract<Expression["exprKind"], { case: "structExpr" }>["value"];
/** An entry of such a literal in a parsed expression. */
export type MapEntry = Extract<Expression["exprKind"], { case: "structExpr" }>["value"]["entries"][number];

/** Tells whether an entry of a literal marks the next one as optional. */
export function isOptionalMark(expression: Expression | undefined): boolean {
  return expression?.exprKind.case === "identExpr" && expression.exprKind.value.name === OPTIONAL_ENTRY;
}

/** Returns the values of a literal of a map, and the marks before those that are optional. */
export function valuesOf(entries: readonly MapEntry[]): Expression[] {
  return entries.flatMap(({ keyKind, value }) => {
    const isMark = keyKind.case === "mapKey" && isOptionalMark(keyKind.value);
    return isMark ? [keyKind.value] : value === undefined ? [] : [value];
  });
}

/** Returns the dotted name that an expression is; undefined if it is something else. */
export function qualifiedName({ exprKind }: Expression): string | undefined {
  if (exprKind.case === "identExpr") return exprKind.value.name;
  if (exprKind.case !== "selectExpr" || exprKind.value.operand === undefined || exprKind.value.testOnly)
    return undefined;
  const operand = qualifiedName(exprKind.value.operand);
  return operand === undefined ? undefined : `${operand}.${exprKind.value.field}`;
}

/** Returns the text that an expression is; undefined if it is something else. */
export function textConstant(expression: Expression | undefined): string | undefined {
  const constant = expression?.exprKind.case === "constExpr" ? expression.exprKind.value.constantKind : undefined;
  return constant?.case === "stringValue" ? constant.value : undefined;
}

/** Returns the type of a constant by the name of its field. */
export function typeOfConstant(kind: string | undefined): CheckedType {
  const [, name = "dyn"] = /^(bool|int64|uint64|double|string|bytes|null)Value$/.exec(kind ?? "") ?? [];
  return { kind: name.replace("64", "") } as CheckedType;
}
