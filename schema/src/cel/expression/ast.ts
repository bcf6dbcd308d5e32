import type { Expression } from "./prepare-expression.js";

type Kind = Expression["exprKind"];

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

/** Makes the parts of what a macro becomes; all of them stand where the macro does. */
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
    const constantKind = { case: "boolValue", value } as const;
    return this.#make({ case: "constExpr", value: { $typeName: "cel.expr.Constant", constantKind } });
  }

  int(value: bigint): Expression {
    const constantKind = { case: "int64Value", value } as const;
    return this.#make({ case: "constExpr", value: { $typeName: "cel.expr.Constant", constantKind } });
  }

  #make(exprKind: Kind): Expression {
    return { $typeName: "cel.expr.Expr", id: this.#id, exprKind };
  }
}
