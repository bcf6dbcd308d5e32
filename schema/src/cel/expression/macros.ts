// Macros that the parser leaves as calls, such as loops with two variables, `sortBy`, and `optMap`. `expandLoop` expands them as cel-go does, for
// type checking and cost estimation. `expandMacro` expands them to loops and calls that the evaluator supports.
import { Nodes, variableOf, type Expression, type Fold } from "./ast.js";

/** A problem of a macro call, at the expression that causes it. */
interface MacroProblem {
  readonly at: Expression;
  readonly message: string;
}

/** The numbers of arguments that each macro accepts. */
const MACROS: { readonly [name: string]: readonly number[] } = {
  ...Object.fromEntries(["all", "exists", "exists_one"].map((name) => [name, [2, 3]])),
  existsOne: [3],
  ...Object.fromEntries(["transformList", "transformMap", "transformMapEntry"].map((name) => [name, [3, 4]])),
  ...Object.fromEntries(["optMap", "optFlatMap", "sortBy", "filter"].map((name) => [name, [2]])),
  map: [2, 3],
};

export const LOOP_NAMES: readonly string[] = Object.keys(MACROS);

const RESULT = "@result";
const SORTED = "@sorted";

/**
 * Expands a macro call that the parser left as a call, in place; other expressions are unchanged. Returns the problem if the call is invalid. `calls`
 * contains the original calls of the macros that the parser expanded, by the id of the expansion.
 */
export function expandLoop(
  expression: Expression,
  calls: { readonly [id: string]: Expression },
): MacroProblem | undefined {
  const call = calls[String(expression.id)]?.exprKind;
  // kube-apiserver has no `existsOne` with one variable, so restore the call.
  if (call?.case === "callExpr" && call.value.function === "existsOne") expression.exprKind = call;
  const { exprKind } = expression;
  if (exprKind.case !== "callExpr") return undefined;
  const { function: name, target, args } = exprKind.value;
  if (target === undefined)
    return name === "has" && args.length === 1
      ? { at: args[0]!, message: "invalid argument to has() macro" }
      : undefined;
  if (!Object.hasOwn(MACROS, name) || !MACROS[name]!.includes(args.length)) return undefined;
  const nodes = new Nodes(expression);
  const problem = problemOf(name, target, args);
  if (problem !== undefined) return problem;
  const [first, second] = [variableOf(args[0])!, variableOf(args[1])!];
  const expanded = name.startsWith("opt")
    ? optional(nodes, target, { variable: first, body: args[1]!, isFlat: name === "optFlatMap" })
    : name === "sortBy"
      ? sorted(nodes, target, { variable: first, body: args[1]! })
      : nodes.fold({
          range: target,
          item: first,
          item2: second,
          accumulator: RESULT,
          ...stepsOf(nodes, name, { key: first, rest: args.slice(2) }),
        });
  expression.exprKind = expanded.exprKind;
  return undefined;
}

function problemOf(name: string, target: Expression, args: readonly Expression[]): MacroProblem | undefined {
  const { case: kind = "" } = target.exprKind;
  if (name === "sortBy" && ["constExpr", "structExpr"].includes(kind)) {
    const words = "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
    return { at: target, message: words };
  }
  const isMapping = name === "map" || name === "filter";
  const hasTwo = args.length > 2 && !isMapping;
  const notNamed = args.slice(0, hasTwo ? 2 : 1).find((each) => variableOf(each) === undefined);
  if (notNamed !== undefined) {
    const words = name.startsWith("opt")
      ? `${name}() variable name must be a simple identifier`
      : isMapping || name === "sortBy"
        ? "argument is not an identifier"
        : "argument must be a simple name";
    return { at: notNamed, message: words };
  }
  const [first, second] = [variableOf(args[0]), variableOf(args[1])];
  return hasTwo && first === second ? { at: args[1]!, message: `duplicate variable name: ${first}` } : undefined;
}

interface Steps {
  readonly start: Expression;
  readonly goesOn: Expression;
  readonly step: Expression;
  readonly result: Expression;
}

function stepsOf(
  nodes: Nodes,
  name: string,
  { key, rest }: { readonly key: string; readonly rest: readonly Expression[] },
): Steps {
  const result = nodes.ident(RESULT);
  const last = rest.at(-1)!;
  const always = nodes.bool(true);
  if (name === "all" || name === "exists") {
    const isAll = name === "all";
    const goesOn = nodes.call("@not_strictly_false", isAll ? result : nodes.call("!_", result));
    return { start: nodes.bool(isAll), goesOn, step: nodes.call(isAll ? "_&&_" : "_||_", result, last), result };
  }
  if (!name.startsWith("transform")) {
    const step = nodes.call("_?_:_", last, nodes.call("_+_", result, nodes.int(1n)), result);
    return { start: nodes.int(0n), goesOn: always, step, result: nodes.call("_==_", result, nodes.int(1n)) };
  }
  const isList = name === "transformList";
  const added = isList
    ? nodes.call("_+_", result, nodes.list(last))
    : nodes.call("cel.@mapInsert", result, ...(name === "transformMap" ? [nodes.ident(key)] : []), last);
  const step = rest.length === 1 ? added : nodes.call("_?_:_", rest[0]!, added, result);
  return { start: isList ? nodes.list() : nodes.map(), goesOn: always, step, result };
}

interface Body {
  readonly variable: string;
  readonly body: Expression;
}

function optional(
  nodes: Nodes,
  target: Expression,
  { variable, body, isFlat }: Body & { isFlat: boolean },
): Expression {
  const value = bind(nodes, variable, { value: nodes.method(target, "value"), result: nodes.ident(variable), body });
  const some = isFlat ? value : nodes.call("optional.of", value);
  return nodes.call("_?_:_", nodes.method(target, "hasValue"), some, nodes.call("optional.none"));
}

function sorted(nodes: Nodes, target: Expression, { variable, body }: Body): Expression {
  const result = nodes.ident(RESULT);
  const keys = nodes.fold({
    range: nodes.ident(SORTED),
    item: variable,
    accumulator: RESULT,
    start: nodes.list(),
    goesOn: nodes.bool(true),
    step: nodes.call("_+_", result, nodes.list(body)),
    result,
  });
  const call = nodes.method(nodes.ident(SORTED), "@sortByAssociatedKeys", keys);
  return bind(nodes, SORTED, { value: target, result: nodes.ident(SORTED), body: call });
}

// Binds a variable: a comprehension over an empty list results in the initial value of its accumulator.
function bind(
  nodes: Nodes,
  name: string,
  { value, result, body }: { readonly value: Expression; readonly result: Expression; readonly body: Expression },
): Expression {
  return nodes.fold({
    range: nodes.list(),
    item: UNUSED,
    accumulator: name,
    start: value,
    goesOn: nodes.bool(false),
    step: result,
    result: body,
  });
}

/** The loop variable of a comprehension over an empty list, which only binds its accumulator. */
export const UNUSED = "@unused";
const LOOPS: ReadonlySet<string> = new Set(
  "all exists existsOne exists_one transformList transformMap transformMapEntry".split(" "),
);

/** Expands a macro call for the evaluator, in place; other expressions are unchanged. */
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

  /** `range.all(key, value, predicate)` and the like: a loop over the keys that binds the value. */
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

  /** `optional.optMap(variable, body)`, or `optFlatMap` if `isFlat`, whose body is itself optional. */
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

  /** `list.sortBy(variable, key)`: computes the keys, then sorts the list by them. */
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

  // A comprehension over an empty list results in the initial value of its accumulator.
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
