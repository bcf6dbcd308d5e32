// Prepares a parsed expression for the evaluator: expands macros and optional syntax; rewrites type names, variables, messages, fields of oldSelf,
// and `has`, which is true for a null field; charges loops to the budget; and reports what the evaluator does not support.
import type { celEnv } from "@bufbuild/cel";
import { KIND } from "../kubernetes-value.js";
import { Nodes, type Call, type Expression, type List, type Loop, type Select, type Struct } from "./ast.js";
import { expandMacro, UNUSED } from "./macros.js";
import { OPTIONAL_ENTRY, OPTIONAL_FIELD, OPTIONAL_INDEX } from "./optional-syntax.js";

/** The environment with the available functions. */
type Environment = ReturnType<typeof celEnv>;

/** What is known about a prepared expression. */
interface ExpressionFacts {
  /** Why the expression cannot be evaluated; undefined if it can. */
  readonly problem?: string;
  readonly usesOldSelf: boolean;
}

// Built-in operators of the evaluator that are not in its list of functions.
const BUILT_IN: ReadonlySet<string> = new Set(["_[_]", "_?_:_", "_&&_", "_||_", "@not_strictly_false"]);

// Macros that the parser expands if they have one variable.
const MACROS: ReadonlySet<string> = new Set(["all", "exists", "exists_one", "existsOne", "map", "filter"]);

// Functions that return optional values.
const OPTIONAL: ReadonlySet<string> = new Set([OPTIONAL_FIELD, OPTIONAL_INDEX, "or", "optMap", "optFlatMap"]);

// Type names of Kubernetes values, which the evaluator does not know.
const TYPES: ReadonlySet<string> = new Set(["net.IP", "net.CIDR", "optional_type"]);

/** Prepares an expression for evaluation, in place. */
export function prepareExpression(expression: Expression | undefined, env: Environment): ExpressionFacts {
  const preparation = new Preparation(env);
  if (expression === undefined) return { problem: "the expression is empty", usesOldSelf: false };
  preparation.visit(expression);
  const { problem, usesOldSelf } = preparation;
  return { usesOldSelf, ...(problem === undefined ? {} : { problem }) };
}

class Preparation {
  problem: string | undefined;
  usesOldSelf = false;
  readonly #env: Environment;

  constructor(env: Environment) {
    this.#env = env;
  }

  visit(expression: Expression): void {
    expandMacro(expression);
    const name = nameOf(expression);
    if (name !== undefined && TYPES.has(name)) return replace(expression, "@type", [textOf(expression, name)]);
    const { exprKind } = expression;
    switch (exprKind.case) {
      case "identExpr":
        if (exprKind.value.name === "oldSelf") this.usesOldSelf = true;
        break;
      case "selectExpr":
        if (isIdentifier(exprKind.value.operand, "variables"))
          replace(expression, "@variable", [textOf(expression, exprKind.value.field)]);
        else {
          this.#visitEach(exprKind.value.operand);
          this.#visitField(expression, exprKind.value);
        }
        break;
      case "callExpr":
        this.#visitCall(exprKind.value);
        if (isCall(expression, "_[_]") && isOptional(exprKind.value.args[0]))
          asMethod(expression, OPTIONAL_INDEX, exprKind.value.args);
        break;
      case "listExpr":
        this.#visitEach(...exprKind.value.elements);
        withOptionalItems(expression, exprKind.value);
        break;
      case "structExpr":
        if (exprKind.value.messageName !== "") this.#visitMessage(expression, exprKind.value);
        for (const { keyKind, value } of exprKind.value.entries)
          this.#visitEach(keyKind.case === "mapKey" ? keyKind.value : undefined, value);
        withOptionalEntries(expression, exprKind.value);
        break;
      case "comprehensionExpr":
        this.#visitLoop(exprKind.value);
        break;
      default:
        break;
    }
  }

  #visitEach(...expressions: readonly (Expression | undefined)[]): void {
    for (const expression of expressions) if (expression !== undefined) this.visit(expression);
  }

  // A message of a mutating policy becomes a map with its type name under KIND.
  #visitMessage(expression: Expression, struct: Struct): void {
    const { messageName } = struct;
    if (!/^(JSONPatch|Object(\.\w+)*)$/.test(messageName)) return this.#fail(`type ${messageName}`);
    struct.messageName = "";
    for (const entry of struct.entries)
      if (entry.keyKind.case === "fieldKey")
        entry.keyKind = { case: "mapKey", value: textOf(expression, entry.keyKind.value) };
    const kind = { case: "mapKey", value: textOf(expression, KIND) } as const;
    const entry = { id: expression.id, keyKind: kind, value: textOf(expression, messageName), optionalEntry: false };
    struct.entries.push({ $typeName: "cel.expr.Expr.CreateStruct.Entry", ...entry });
  }

  // Selecting a field of an optional value results in an optional value.
  #visitField(expression: Expression, { operand, field, testOnly }: Select): void {
    const name = textOf(expression, field);
    if (isOptional(operand)) {
      asMethod(expression, OPTIONAL_FIELD, [operand, name]);
      if (testOnly) asMethod(expression, "hasValue", [{ ...expression }]);
    } else if (isOld(operand)) replace(expression, testOnly ? "@hasOldField" : "@oldField", [operand, name]);
    else if (testOnly) replace(expression, "@has", [operand, name]);
  }

  #visitCall(call: Call): void {
    const { function: name, target, args } = call;
    const qualified = target === undefined ? undefined : nameOf(target);
    const isQualified = qualified !== undefined && this.#env.funcs.find(`${qualified}.${name}`) !== undefined;
    this.#visitEach(isQualified ? undefined : target, ...args);
    if (BUILT_IN.has(name)) return;
    const found = [...(this.#env.funcs.find(isQualified ? `${qualified}.${name}` : name) ?? [])];
    const isMethod = target !== undefined && !isQualified;
    const fitting = found.filter((func) => (func.target !== undefined) === isMethod);
    if (fitting.some((func) => func.arguments.length === args.length)) return;
    const isUnknown = fitting.length === 0 && !MACROS.has(name);
    this.#fail(
      isUnknown
        ? `function ${name}`
        : `function ${name} with ${args.length} ${args.length === 1 ? "argument" : "arguments"}`,
    );
  }

  #visitLoop(loop: Loop): void {
    const { iterVar, iterRange, accuInit, loopCondition, loopStep, result } = loop;
    this.#visitEach(iterRange, accuInit, loopCondition, loopStep, result);
    if (loop.iterVar2 !== "") this.#fail("a comprehension with two variables");
    if (iterVar === UNUSED) return;
    if (iterRange !== undefined) wrap(iterRange, "@range");
    if (loopCondition !== undefined) wrap(loopCondition, "@step");
    if (accuInit?.exprKind.case !== "listExpr" || loopStep === undefined) return;
    wrap(accuInit, "@collector");
    const append = isCall(loopStep, "_+_")
      ? loopStep
      : isCall(loopStep, "_?_:_")
        ? callOf(loopStep)?.args[1]
        : undefined;
    const call = append === undefined ? undefined : callOf(append);
    if (call !== undefined) call.function = "@collect";
  }

  #fail(what: string): void {
    this.problem ??= `${what} is not supported`;
  }
}

// Rewrites `[?a, b]` to `@present([a, b], [0])`; the second list contains the indexes of the optional items.
function withOptionalItems(expression: Expression, list: List): void {
  const optional: Expression[] = [];
  const items: Expression[] = [];
  for (const item of list.elements)
    if (isIdentifier(item, OPTIONAL_ENTRY)) optional.push(new Nodes(item).int(BigInt(items.length)));
    else items.push(item);
  if (optional.length === 0) return;
  list.elements = items;
  replace(expression, "@present", [{ ...expression }, new Nodes(expression).list(...optional)]);
}

// Rewrites `{?a: b}` to `@present({a: b}, [a])`.
function withOptionalEntries(expression: Expression, struct: Struct): void {
  const optional: Expression[] = [];
  const { entries } = struct;
  const isMark = (index: number) => {
    const { keyKind } = entries[index] ?? {};
    if (keyKind?.case !== "mapKey") return false;
    const { exprKind } = keyKind.value;
    const isText = exprKind.case === "constExpr" && exprKind.value.constantKind.value === OPTIONAL_ENTRY;
    return isText || isIdentifier(keyKind.value, OPTIONAL_ENTRY);
  };
  for (const [index, { keyKind }] of entries.entries())
    if (isMark(index - 1) && keyKind.case === "mapKey") optional.push(keyKind.value);
  if (optional.length === 0) return;
  struct.entries = entries.filter((_, index) => !isMark(index));
  replace(expression, "@present", [{ ...expression }, new Nodes(expression).list(...optional)]);
}

function callOf({ exprKind }: Expression): Call | undefined {
  return exprKind.case === "callExpr" ? exprKind.value : undefined;
}

function isCall(expression: Expression, name: string): boolean {
  return callOf(expression)?.function === name;
}

function nameOf({ exprKind }: Expression): string | undefined {
  if (exprKind.case === "identExpr") return exprKind.value.name;
  if (exprKind.case !== "selectExpr" || exprKind.value.operand === undefined) return undefined;
  const operand = nameOf(exprKind.value.operand);
  return operand === undefined ? undefined : `${operand}.${exprKind.value.field}`;
}

function textOf(expression: Expression, text: string): Expression {
  return new Nodes(expression).text(text);
}

function wrap(expression: Expression, name: string): void {
  replace(expression, name, [{ ...expression }]);
}

function isIdentifier(expression: Expression | undefined, name: string): boolean {
  return expression?.exprKind.case === "identExpr" && expression.exprKind.value.name === name;
}

function isOptional(expression: Expression | undefined): boolean {
  return expression !== undefined && OPTIONAL.has(callOf(expression)?.function ?? "");
}

// Only the rule tells whether `oldSelf` is optional (optionalOldSelf), so this is decided at run time.
function isOld(expression: Expression | undefined): boolean {
  return expression !== undefined && (isIdentifier(expression, "oldSelf") || isCall(expression, "@oldField"));
}

function replace(expression: Expression, name: string, args: readonly (Expression | undefined)[]): void {
  const call = { function: name, args: args.filter((each) => each !== undefined) };
  expression.exprKind = { case: "callExpr", value: { $typeName: "cel.expr.Expr.Call", ...call } };
}

function asMethod(expression: Expression, name: string, [target, ...args]: readonly (Expression | undefined)[]): void {
  replace(expression, name, args);
  const call = callOf(expression);
  if (call !== undefined && target !== undefined) call.target = target;
}
