// Kubernetes' macros that the parser leaves as calls: loops with two variables, `sortBy`, and what maps an optional value. Each becomes loops and
// calls that the evaluator has.
import type { Expression } from "./prepare-expression.js";

type Kind = Expression["exprKind"];
type Make = (kind: Kind) => Expression;

const RESULT = "@result";

/** The variable of a loop that never runs: it only gives a value a name. */
export const UNUSED = "@unused";
const LOOPS: ReadonlySet<string> = new Set(
  "all exists existsOne exists_one transformList transformMap transformMapEntry".split(" "),
);

/** Rewrites a call of such a macro in place; leaves every other expression as it is. */
export function expandMacro(expression: Expression): void {
  const { exprKind } = expression;
  if (exprKind.case !== "callExpr" || exprKind.value.target === undefined) return;
  const { function: name, target, args } = exprKind.value;
  const [first, second] = [variableOf(args[0]), variableOf(args[1])];
  const builder = new Builder((kind) => ({ $typeName: "cel.expr.Expr", id: expression.id, exprKind: kind }));
  let expanded: Expression | undefined;
  if (first === undefined) return;
  if ((name === "optMap" || name === "optFlatMap") && args.length === 2)
    expanded = builder.optional(target, first, { body: args[1]!, isFlat: name === "optFlatMap" });
  else if (name === "sortBy" && args.length === 2) expanded = builder.sorted(target, first, args[1]!);
  else if (LOOPS.has(name) && second !== undefined && args.length >= 3 && args.length <= 4)
    expanded = builder.loop(name, target, { key: first, value: second, args: args.slice(2) });
  if (expanded !== undefined) expression.exprKind = expanded.exprKind;
}

class Builder {
  readonly #make: Make;

  constructor(make: Make) {
    this.#make = make;
  }

  /** `range.all(key, value, predicate)` and the like: a loop over the keys, in which the value is bound. */
  loop(
    name: string,
    target: Expression,
    { key, value, args }: { key: string; value: string; args: readonly Expression[] },
  ): Expression | undefined {
    const range = `@range:${key}`;
    const inside = (body: Expression) =>
      this.#bind(value, this.#call("@at", this.#ident(range), this.#ident(key)), body);
    const isTransform = name.startsWith("transform");
    if (isTransform ? args.length > 2 : args.length !== 1) return undefined;
    const last = args.at(-1)!;
    const filter = args.length === 2 ? inside(args[0]!) : undefined;
    const keys = this.#call("@keys", this.#ident(range));
    const over = (fold: Omit<Fold, "range" | "item">) => this.#fold({ range: keys, item: key, ...fold });
    const loop = isTransform
      ? this.#transform(name, over, {
          filter,
          last: inside(name === "transformMap" ? this.#list(this.#ident(key), last) : last),
        })
      : this.#quantifier(name, over, inside(last));
    return this.#bind(range, target, loop);
  }

  /** `optional.optMap(variable, body)`; a flat one has a body that is optional itself. */
  optional(target: Expression, variable: string, { body, isFlat }: { body: Expression; isFlat: boolean }): Expression {
    const held = `@optional:${variable}`;
    const value = this.#method(this.#ident(held), "value");
    const mapped = this.#bind(variable, value, isFlat ? body : this.#qualified("of", body));
    const choice = this.#call("_?_:_", this.#method(this.#ident(held), "hasValue"), mapped, this.#qualified("none"));
    return this.#bind(held, target, choice);
  }

  /** `list.sortBy(variable, key)`: the keys are made first, and the list is sorted by them. */
  sorted(target: Expression, variable: string, key: Expression): Expression {
    const range = `@range:${variable}`;
    const step = this.#call("_+_", this.#ident(RESULT), this.#list(key));
    const keys = this.#fold({
      range: this.#ident(range),
      item: variable,
      start: this.#list(),
      goesOn: this.#bool(true),
      step,
      result: this.#ident(RESULT),
    });
    return this.#bind(range, target, this.#call("@sortBy", this.#ident(range), keys));
  }

  #quantifier(name: string, over: (fold: Omit<Fold, "range" | "item">) => Expression, body: Expression): Expression {
    const result = this.#ident(RESULT);
    if (name === "all" || name === "exists") {
      const isAll = name === "all";
      const goesOn = this.#call("@not_strictly_false", isAll ? result : this.#call("!_", result));
      const step = this.#call(isAll ? "_&&_" : "_||_", result, body);
      return over({ start: this.#bool(isAll), goesOn, step, result });
    }
    const one = this.#int(1n);
    const step = this.#call("_?_:_", body, this.#call("_+_", result, one), result);
    return over({ start: this.#int(0n), goesOn: this.#bool(true), step, result: this.#call("_==_", result, one) });
  }

  #transform(
    name: string,
    over: (fold: Omit<Fold, "range" | "item">) => Expression,
    { filter, last }: { filter: Expression | undefined; last: Expression },
  ): Expression {
    const result = this.#ident(RESULT);
    const added = this.#call("_+_", result, this.#list(last));
    const step = filter === undefined ? added : this.#call("_?_:_", filter, added, result);
    const list = over({ start: this.#list(), goesOn: this.#bool(true), step, result });
    return name === "transformList" ? list : this.#call(name === "transformMap" ? "@mapOf" : "@merged", list);
  }

  // A loop over nothing leaves what it starts with.
  #bind(name: string, value: Expression, body: Expression): Expression {
    return this.#fold({
      range: this.#list(),
      item: UNUSED,
      accumulator: name,
      start: value,
      goesOn: this.#bool(false),
      step: this.#ident(name),
      result: body,
    });
  }

  #fold({ range, item, accumulator = RESULT, start, goesOn, step, result }: Fold): Expression {
    return this.#make({
      case: "comprehensionExpr",
      value: {
        $typeName: "cel.expr.Expr.Comprehension",
        iterVar: item,
        iterVar2: "",
        iterRange: range,
        accuVar: accumulator,
        accuInit: start,
        loopCondition: goesOn,
        loopStep: step,
        result,
      },
    });
  }

  #ident(name: string): Expression {
    return this.#make({ case: "identExpr", value: { $typeName: "cel.expr.Expr.Ident", name } });
  }

  #call(name: string, ...args: readonly Expression[]): Expression {
    return this.#make({
      case: "callExpr",
      value: { $typeName: "cel.expr.Expr.Call", function: name, args: [...args] },
    });
  }

  #method(target: Expression, name: string): Expression {
    return this.#make({
      case: "callExpr",
      value: { $typeName: "cel.expr.Expr.Call", function: name, args: [], target },
    });
  }

  #qualified(name: string, ...args: readonly Expression[]): Expression {
    const call = { function: name, args: [...args], target: this.#ident("optional") };
    return this.#make({ case: "callExpr", value: { $typeName: "cel.expr.Expr.Call", ...call } });
  }

  #list(...elements: readonly Expression[]): Expression {
    const list = { elements: [...elements], optionalIndices: [] };
    return this.#make({ case: "listExpr", value: { $typeName: "cel.expr.Expr.CreateList", ...list } });
  }

  #bool(value: boolean): Expression {
    const constantKind = { case: "boolValue", value } as const;
    return this.#make({ case: "constExpr", value: { $typeName: "cel.expr.Constant", constantKind } });
  }

  #int(value: bigint): Expression {
    const constantKind = { case: "int64Value", value } as const;
    return this.#make({ case: "constExpr", value: { $typeName: "cel.expr.Constant", constantKind } });
  }
}

interface Fold {
  readonly range: Expression;
  readonly item: string;
  readonly accumulator?: string;
  readonly start: Expression;
  readonly goesOn: Expression;
  readonly step: Expression;
  readonly result: Expression;
}

function variableOf(expression: Expression | undefined): string | undefined {
  return expression?.exprKind.case === "identExpr" ? expression.exprKind.value.name : undefined;
}
