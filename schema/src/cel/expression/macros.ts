// Macros as kube-apiserver sees them when it checks types and estimates costs: the loops that cel-go makes of them, those with two variables, too.
// What the evaluator is given instead is in prepare/expand-macros.ts.
import { UNUSED, variableOf } from "./expand-macros.js";
import { Nodes } from "./ast.js";
import type { Expression } from "./prepare-expression.js";

/** What is wrong with a macro, and where. */
export interface MacroProblem {
  readonly at: Expression;
  readonly message: string;
}

/** How many arguments the macros take. */
const MACROS: { readonly [name: string]: readonly number[] } = {
  ...Object.fromEntries(["all", "exists", "exists_one"].map((name) => [name, [2, 3]])),
  existsOne: [3],
  ...Object.fromEntries(["transformList", "transformMap", "transformMapEntry"].map((name) => [name, [3, 4]])),
  ...Object.fromEntries(["optMap", "optFlatMap", "sortBy", "filter"].map((name) => [name, [2]])),
  map: [2, 3],
};

/** The names of the macros. */
export const LOOP_NAMES: readonly string[] = Object.keys(MACROS);

const RESULT = "@result";
const SORTED = "@sorted";

/**
 * Rewrites the call of a macro that the parser left as it is, in place; leaves every other expression. Returns why it cannot be one. `calls` are the
 * macros that the parser expanded.
 */
export function expandLoop(
  expression: Expression,
  calls: { readonly [id: string]: Expression },
): MacroProblem | undefined {
  const call = calls[String(expression.id)]?.exprKind;
  // This macro of one variable kube-apiserver does not have.
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

// A loop over nothing, which names a value.
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
