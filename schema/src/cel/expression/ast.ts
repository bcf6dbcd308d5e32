// Accessors for parsed expressions (cel.expr.Expr), and constructors for the expressions that replace macros.
import type { parse } from "@bufbuild/cel";
import { OPTIONAL_ENTRY } from "./optional-syntax.js";

export type Expression = NonNullable<ReturnType<typeof parse>["expr"]>;
/** A field selection. */
export type Select = Extract<Expression["exprKind"], { case: "selectExpr" }>["value"];
/** A function or method call. */
export type Call = Extract<Expression["exprKind"], { case: "callExpr" }>["value"];
/** A comprehension. */
export type Loop = Extract<Expression["exprKind"], { case: "comprehensionExpr" }>["value"];
/** A map or message literal. */
export type Struct = Extract<Expression["exprKind"], { case: "structExpr" }>["value"];
/** An entry of a map or message literal. */
export type MapEntry = Struct["entries"][number];
/** A list literal. */
export type List = Extract<Expression["exprKind"], { case: "listExpr" }>["value"];
export type Constant = Extract<Expression["exprKind"], { case: "constExpr" }>["value"]["constantKind"];

/** Returns whether an element of a literal marks the next one as optional. */
export function isOptionalMark(expression: Expression | undefined): boolean {
  return expression?.exprKind.case === "identExpr" && expression.exprKind.value.name === OPTIONAL_ENTRY;
}

/** Returns the values of a map literal, with the marks before optional ones. */
export function valuesOf(entries: readonly MapEntry[]): Expression[] {
  return entries.flatMap(({ keyKind, value }) => {
    const isMark = keyKind.case === "mapKey" && isOptionalMark(keyKind.value);
    return isMark ? [keyKind.value] : value === undefined ? [] : [value];
  });
}

/** Returns the qualified name that an expression consists of; undefined if it is another expression. */
export function qualifiedName({ exprKind }: Expression): string | undefined {
  if (exprKind.case === "identExpr") return exprKind.value.name;
  if (exprKind.case !== "selectExpr" || exprKind.value.operand === undefined || exprKind.value.testOnly)
    return undefined;
  const operand = qualifiedName(exprKind.value.operand);
  return operand === undefined ? undefined : `${operand}.${exprKind.value.field}`;
}

/** Returns the name of the variable that an expression refers to; undefined if it is another expression. */
export function variableOf(expression: Expression | undefined): string | undefined {
  return expression?.exprKind.case === "identExpr" ? expression.exprKind.value.name : undefined;
}

/** Returns the value of a string literal; undefined for another expression. */
export function textConstant(expression: Expression | undefined): string | undefined {
  const constant = expression?.exprKind.case === "constExpr" ? expression.exprKind.value.constantKind : undefined;
  return constant?.case === "stringValue" ? constant.value : undefined;
}

/** A comprehension with one or two loop variables. */
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

/** Creates expressions with the id, and so the position, of the expression that they replace. */
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
