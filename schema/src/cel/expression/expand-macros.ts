// Kubernetes' macros that the parser leaves as calls: loops with two variables, `sortBy`, and what maps an optional value. Each becomes loops and
// calls that the evaluator has.
import { Nodes, type Fold } from "./ast.js";
import type { Expression } from "./prepare-expression.js";

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
  const builder = new Builder(new Nodes(expression));
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
  readonly #nodes: Nodes;

  constructor(nodes: Nodes) {
    this.#nodes = nodes;
  }

  /** `range.all(key, value, predicate)` and the like: a loop over the keys, in which the value is bound. */
  loop(
    name: string,
    target: Expression,
    { key, value, args }: { key: string; value: string; args: readonly Expression[] },
  ): Expression | undefined {
    const range = `@range:${key}`;
    const inside = (body: Expression) =>
      this.#bind(value, this.#nodes.call("@at", this.#nodes.ident(range), this.#nodes.ident(key)), body);
    const isTransform = name.startsWith("transform");
    if (isTransform ? args.length > 2 : args.length !== 1) return undefined;
    const last = args.at(-1)!;
    const filter = args.length === 2 ? inside(args[0]!) : undefined;
    const keys = this.#nodes.call("@keys", this.#nodes.ident(range));
    const over = (fold: Inner) => this.#fold({ range: keys, item: key, ...fold });
    const loop = isTransform
      ? this.#transform(name, over, {
          filter,
          last: inside(name === "transformMap" ? this.#nodes.list(this.#nodes.ident(key), last) : last),
        })
      : this.#quantifier(name, over, inside(last));
    return this.#bind(range, target, loop);
  }

  /** `optional.optMap(variable, body)`; a flat one has a body that is optional itself. */
  optional(target: Expression, variable: string, { body, isFlat }: { body: Expression; isFlat: boolean }): Expression {
    const held = `@optional:${variable}`;
    const value = this.#nodes.method(this.#nodes.ident(held), "value");
    const mapped = this.#bind(
      variable,
      value,
      isFlat ? body : this.#nodes.method(this.#nodes.ident("optional"), "of", body),
    );
    const choice = this.#nodes.call(
      "_?_:_",
      this.#nodes.method(this.#nodes.ident(held), "hasValue"),
      mapped,
      this.#nodes.method(this.#nodes.ident("optional"), "none"),
    );
    return this.#bind(held, target, choice);
  }

  /** `list.sortBy(variable, key)`: the keys are made first, and the list is sorted by them. */
  sorted(target: Expression, variable: string, key: Expression): Expression {
    const range = `@range:${variable}`;
    const step = this.#nodes.call("_+_", this.#nodes.ident(RESULT), this.#nodes.list(key));
    const keys = this.#fold({
      range: this.#nodes.ident(range),
      item: variable,
      start: this.#nodes.list(),
      goesOn: this.#nodes.bool(true),
      step,
      result: this.#nodes.ident(RESULT),
    });
    return this.#bind(range, target, this.#nodes.call("@sortBy", this.#nodes.ident(range), keys));
  }

  #quantifier(name: string, over: (fold: Inner) => Expression, body: Expression): Expression {
    const result = this.#nodes.ident(RESULT);
    if (name === "all" || name === "exists") {
      const isAll = name === "all";
      const goesOn = this.#nodes.call("@not_strictly_false", isAll ? result : this.#nodes.call("!_", result));
      const step = this.#nodes.call(isAll ? "_&&_" : "_||_", result, body);
      return over({ start: this.#nodes.bool(isAll), goesOn, step, result });
    }
    const one = this.#nodes.int(1n);
    const step = this.#nodes.call("_?_:_", body, this.#nodes.call("_+_", result, one), result);
    return over({
      start: this.#nodes.int(0n),
      goesOn: this.#nodes.bool(true),
      step,
      result: this.#nodes.call("_==_", result, one),
    });
  }

  #transform(
    name: string,
    over: (fold: Inner) => Expression,
    { filter, last }: { filter: Expression | undefined; last: Expression },
  ): Expression {
    const result = this.#nodes.ident(RESULT);
    const added = this.#nodes.call("_+_", result, this.#nodes.list(last));
    const step = filter === undefined ? added : this.#nodes.call("_?_:_", filter, added, result);
    const list = over({ start: this.#nodes.list(), goesOn: this.#nodes.bool(true), step, result });
    return name === "transformList" ? list : this.#nodes.call(name === "transformMap" ? "@mapOf" : "@merged", list);
  }

  // A loop over nothing leaves what it starts with.
  #bind(name: string, value: Expression, body: Expression): Expression {
    return this.#fold({
      range: this.#nodes.list(),
      item: UNUSED,
      accumulator: name,
      start: value,
      goesOn: this.#nodes.bool(false),
      step: this.#nodes.ident(name),
      result: body,
    });
  }

  #fold(fold: Unnamed): Expression {
    return this.#nodes.fold({ accumulator: RESULT, ...fold });
  }
}

type Unnamed = Omit<Fold, "accumulator"> & { readonly accumulator?: string };
type Inner = Omit<Unnamed, "range" | "item">;

/** Returns the name of a variable; undefined if an expression is something else. */
export function variableOf(expression: Expression | undefined): string | undefined {
  return expression?.exprKind.case === "identExpr" ? expression.exprKind.value.name : undefined;
}
