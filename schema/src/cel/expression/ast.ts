// The parts of a parsed expression (cel.expr.Expr): reads them, and makes those that a macro is replaced by.
import type { parse } from "@bufbuild/cel";
import { OPTIONAL_ENTRY } from "./optional-syntax.js";

/** A parsed expression. */
export type Expression = NonNullable<ReturnType<typeof parse>["expr"]>;
/** A selection of a field in a parsed expression. */
export type Select = Extract<Expression["exprKind"], { case: "selectExpr" }>["value"];
/** A call in a parsed expression. */
export type Call = Extract<Expression["exprKind"], { case: "callExpr" }>["value"];
/** A loop in a parsed expression. */
export type Loop = Extract<Expression["exprKind"], { case: "comprehensionExpr" }>["value"];
/** A literal of a map or an object in a parsed expression. */
export type Struct = Extract<Expression["exprKind"], { case: "structExpr" }>["value"];
/** An entry of such a literal in a parsed expression. */
export type MapEntry = Struct["entries"][number];
/** A literal of a list in a parsed expression. */
export type List = Extract<Expression["exprKind"], { case: "listExpr" }>["value"];
/** A constant in a parsed expression. */
export type Constant = Extract<Expression["exprKind"], { case: "constExpr" }>["value"]["constantKind"];

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

/** Returns the name of a variable; undefined if an expression is something else. */
export function variableOf(expression: Expression | undefined): string | undefined {
  return expression?.exprKind.case === "identExpr" ? expression.exprKind.value.name : undefined;
}

/** Returns the text that an expression is; undefined if it is something else. */
export function textConstant(expression: Expression | undefined): string | undefined {
  const constant = expression?.exprKind.case === "constExpr" ? expression.exprKind.value.constantKind : undefined;
  return constant?.case === "stringValue" ? constant.value : undefined;
}

/** A loop with one variable, or with two. */
export interface Fold {
  readonly range: Expression;
  readonly item: string;
  readonly item2?: string;
  readonly accumulator: string;
  readonly start: Expression;
  readonly goesOn: Expression;
  readonly step: Expression;
  readonly result: Expression;
}

/** Makes parts of an expression, at the position of the one that they replace. */
export class Nodes {
  readonly #id: bigint;

  constructor({ id }: Expression) {
    this.#id = id;
  }

  fold({ range, item, item2 = "", accumulator, start, goesOn, step, result }: Fold): Expression {
    return this.#make({
      case: "comprehensionExpr",
      value: {
        $typeName: "cel.expr.Expr.Comprehension",
        iterVar: item,
        iterVar2: item2,
        iterRange: range,
        accuVar: accumulator,
        accuInit: start,
        loopCondition: goesOn,
        loopStep: step,
        result,
      },
    });
  }

  ident(name: string): Expression {
    return this.#make({ case: "identExpr", value: { $typeName: "cel.expr.Expr.Ident", name } });
  }

  call(name: string, ...args: readonly Expression[]): Expression {
    const call = { function: name, args: [...args] };
    return this.#make({ case: "callExpr", value: { $typeName: "cel.expr.Expr.Call", ...call } });
  }

  method(target: Expression, name: string, ...args: readonly Expression[]): Expression {
    const call = { function: name, args: [...args], target };
    return this.#make({ case: "callExpr", value: { $typeName: "cel.expr.Expr.Call", ...call } });
  }

  list(...elements: readonly Expression[]): Expression {
    const list = { elements: [...elements], optionalIndices: [] };
    return this.#make({ case: "listExpr", value: { $typeName: "cel.expr.Expr.CreateList", ...list } });
  }

  map(): Expression {
    const struct = { messageName: "", entries: [] };
    return this.#make({ case: "structExpr", value: { $typeName: "cel.expr.Expr.CreateStruct", ...struct } });
  }

  bool(value: boolean): Expression {
    return this.#constant({ case: "boolValue", value });
  }

  int(value: bigint): Expression {
    return this.#constant({ case: "int64Value", value });
  }

  text(value: string): Expression {
    return this.#constant({ case: "stringValue", value });
  }

  #constant(constantKind: Constant): Expression {
    return this.#make({ case: "constExpr", value: { $typeName: "cel.expr.Constant", constantKind } });
  }

  #make(exprKind: Expression["exprKind"]): Expression {
    return { $typeName: "cel.expr.Expr", id: this.#id, exprKind };
  }
}
