// Checks the types of an expression before it is accepted. What is not known for certain is taken as right: kube-apiserver may refuse more.
import { findPatternProblem } from "../../texts/pattern.js";
import { loadEnvironment } from "../environment.js";
import { loadLibrary } from "../library.js";
import { OPTIONAL_FIELD, OPTIONAL_INDEX, withoutOptionalOperators } from "../prepare/optional-syntax.js";
import type { Expression } from "../prepare/prepare-expression.js";
import { isOperator, resultOf } from "./operators.js";
import { DYN, nameOfType, type CheckedType } from "./types.js";

/** What is wrong with an expression, and where: an offset in its text. */
export interface ExpressionProblem {
  readonly offset: number;
  readonly message: string;
}

/** What the check of an expression found: the type of its value, and what is wrong, in the order of the text. */
export interface CheckedExpression {
  readonly type: CheckedType;
  readonly problems: readonly ExpressionProblem[];
}

/** What something is called on and with, and where. */
interface Arguments {
  readonly on?: CheckedType | undefined;
  readonly types: readonly CheckedType[];
  readonly offset?: number;
}

type Scope = ReadonlyMap<string, CheckedType>;

const TYPE_NAMES: ReadonlySet<string> = new Set(
  "bool int uint double string bytes list map null_type type optional_type".split(" "),
);
const RESULTS: { readonly [name: string]: CheckedType["kind"] } = {
  "google.protobuf.Timestamp": "timestamp",
  "google.protobuf.Duration": "duration",
  ...Object.fromEntries(["bool", "int", "uint", "double", "string", "bytes"].map((name) => [name, name])),
};
// What takes these arguments alone.
const OF_TEXT: ReadonlySet<string> = new Set(["startsWith", "endsWith", "matches", "contains"]);
const SIZED: ReadonlySet<string> = new Set(["dyn", "string", "bytes", "list", "map", "object", "optional"]);

/** Checks an expression that can be parsed, given the types of its variables. */
export function checkExpression(text: string, variables: { readonly [name: string]: CheckedType }): CheckedExpression {
  const plain = withoutOptionalOperators(text);
  if (plain === undefined) return { type: DYN, problems: [] };
  const { expr, sourceInfo } = loadLibrary().parse(plain);
  if (expr === undefined) return { type: DYN, problems: [] };
  const check = new Check(plain, sourceInfo?.positions ?? {});
  const type = check.typeOf(expr, new Map(Object.entries(variables)));
  return { type, problems: check.problems.sort((a, b) => a.offset - b.offset) };
}

class Check {
  readonly problems: ExpressionProblem[] = [];
  readonly #text: string;
  readonly #positions: { readonly [id: string]: number };

  constructor(text: string, positions: { readonly [id: string]: number }) {
    this.#text = text;
    this.#positions = positions;
  }

  typeOf(expression: Expression, scope: Scope): CheckedType {
    const { exprKind } = expression;
    switch (exprKind.case) {
      case "constExpr":
        return typeOfConstant(exprKind.value.constantKind.case);
      case "identExpr":
        return this.#typeOfName(expression, exprKind.value.name, scope);
      case "selectExpr":
        return this.#typeOfField(expression, exprKind.value, scope);
      case "listExpr":
        return { kind: "list", element: common(exprKind.value.elements.map((each) => this.typeOf(each, scope))) };
      case "structExpr":
        return this.#typeOfMap(exprKind.value.entries, scope);
      case "callExpr":
        return this.#typeOfCall(expression, exprKind.value, scope);
      case "comprehensionExpr":
        return this.#typeOfLoop(exprKind.value, scope);
      default:
        return DYN;
    }
  }

  #typeOfName(expression: Expression, name: string, scope: Scope): CheckedType {
    const type = scope.get(name);
    if (type !== undefined || TYPE_NAMES.has(name)) return type ?? DYN;
    return this.#fail(this.#offsetOf(expression), `undeclared reference to '${name}' (in container '')`);
  }

  #typeOfField(expression: Expression, { operand, field, testOnly }: Select, scope: Scope): CheckedType {
    const type = operand === undefined ? DYN : this.typeOf(operand, scope);
    const inner = this.#fieldOf(type, field, this.#offsetOf(expression));
    return testOnly ? { kind: "bool" } : inner;
  }

  #fieldOf(type: CheckedType, field: string, offset: number): CheckedType {
    if (type.kind === "optional") return { kind: "optional", element: this.#fieldOf(type.element, field, offset) };
    if (type.kind === "map") return type.element;
    if (type.kind === "object") return type.field(field) ?? this.#fail(offset, `undefined field '${field}'`);
    if (type.kind === "dyn" || type.kind === "null") return DYN;
    return this.#fail(offset, `type '${nameOfType(type)}' does not support field selection`);
  }

  #typeOfMap(entries: readonly MapEntry[], scope: Scope): CheckedType {
    const types = entries.map(({ keyKind, value }) => {
      if (keyKind.case === "mapKey") this.typeOf(keyKind.value, scope);
      return value === undefined ? DYN : this.typeOf(value, scope);
    });
    return { kind: "map", element: common(types) };
  }

  #typeOfCall(expression: Expression, { function: name, target, args }: Call, scope: Scope): CheckedType {
    const funcs = loadEnvironment().funcs;
    const qualified = target === undefined ? undefined : qualifiedName(target);
    const isQualified = qualified !== undefined && funcs.find(`${qualified}.${name}`) !== undefined;
    // A macro with a variable of its own, which the evaluator does not know.
    if (funcs.find(isQualified ? `${qualified}.${name}` : name) === undefined && !isOperator(name) && isMacro(name))
      return DYN;
    const on = target === undefined || isQualified ? undefined : this.typeOf(target, scope);
    const types = args.map((each) => this.typeOf(each, scope));
    if (name.startsWith("@") && name !== "@in") return DYN;
    if (name === "_&&_" || name === "_||_") return this.#typeOfJunction(args, types);
    if (isOperator(name)) return resultOf(name, types) ?? this.#mismatch(expression, name, { types });
    if (name === OPTIONAL_FIELD) return { kind: "optional", element: this.#optionalField(expression, on, args[0]) };
    if (name === OPTIONAL_INDEX) return { kind: "optional", element: DYN };
    const fitting = [...(funcs.find(isQualified ? `${qualified}.${name}` : name) ?? [])].filter(
      (func) => (func.target !== undefined) === (on !== undefined) && func.arguments.length === args.length,
    );
    const offset = this.#callOffset(expression, name);
    if (fitting.length === 0)
      return isMacro(name) ? DYN : this.#fail(offset, `undeclared reference to '${name}' (in container '')`);
    const isWrong =
      (OF_TEXT.has(name) &&
        on !== undefined &&
        [on, ...types].some(({ kind }) => kind !== "string" && kind !== "dyn")) ||
      (name === "size" && ![on, ...types].every((each) => each === undefined || SIZED.has(each.kind)));
    if (isWrong) return this.#mismatch(expression, name, { on, types, offset });
    if (name === "matches") this.#checkPattern(args.at(-1));
    const results = new Set(fitting.map(({ result }) => RESULTS[result.name] ?? "dyn"));
    const [only] = results;
    return results.size === 1 && only !== undefined && only !== "dyn" ? ({ kind: only } as CheckedType) : DYN;
  }

  #typeOfJunction(args: readonly Expression[], types: readonly CheckedType[]): CheckedType {
    for (const [index, type] of types.entries())
      if (type.kind !== "bool" && type.kind !== "dyn")
        this.#fail(this.#offsetOf(args[index]!), `expected type 'bool' but found '${nameOfType(type)}'`);
    return { kind: "bool" };
  }

  #optionalField(expression: Expression, on: CheckedType | undefined, name: Expression | undefined): CheckedType {
    const field = name?.exprKind.case === "constExpr" ? name.exprKind.value.constantKind.value : undefined;
    const type = on?.kind === "optional" ? on.element : (on ?? DYN);
    return typeof field === "string" ? this.#fieldOf(type, field, this.#offsetOf(expression)) : DYN;
  }

  #typeOfLoop(
    { iterVar, iterRange, accuVar, accuInit, loopCondition, loopStep, result }: Loop,
    scope: Scope,
  ): CheckedType {
    const range = iterRange === undefined ? DYN : this.typeOf(iterRange, scope);
    if (iterRange !== undefined && !["list", "map", "dyn"].includes(range.kind))
      this.#fail(
        this.#offsetOf(iterRange),
        `expression of type '${nameOfType(range)}' cannot be range of a comprehension (must be list, map, or dynamic)`,
      );
    const item: CheckedType = range.kind === "list" ? range.element : range.kind === "map" ? { kind: "string" } : DYN;
    const start = accuInit === undefined ? DYN : this.typeOf(accuInit, scope);
    const accumulated = start.kind === "list" ? { kind: "list" as const, element: DYN } : start;
    const inner = new Map([...scope, [iterVar, item], [accuVar, accumulated]]);
    if (loopCondition !== undefined) this.typeOf(loopCondition, inner);
    if (loopStep !== undefined) this.typeOf(loopStep, inner);
    return result === undefined ? DYN : this.typeOf(result, inner);
  }

  #checkPattern(pattern: Expression | undefined): void {
    if (pattern?.exprKind.case !== "constExpr") return;
    const { value } = pattern.exprKind.value.constantKind;
    if (typeof value === "string" && findPatternProblem(value) !== undefined)
      this.#fail(this.#offsetOf(pattern), "invalid matches argument");
  }

  #mismatch(
    expression: Expression,
    name: string,
    { on, types, offset = this.#operatorOffset(expression, name) }: Arguments,
  ): CheckedType {
    const target = on === undefined ? "" : `${nameOfType(on)}.`;
    const shown = `${target}(${types.map(nameOfType).join(", ")})`;
    return this.#fail(offset, `found no matching overload for '${name}' applied to '${shown}'`);
  }

  #fail(offset: number, message: string): CheckedType {
    this.problems.push({ offset, message });
    return DYN;
  }

  #offsetOf({ id }: Expression): number {
    return this.#positions[String(id)] ?? 0;
  }

  // kube-apiserver names the parenthesis of a call, and the question mark of a choice.
  #callOffset(expression: Expression, name: string): number {
    const start = this.#text.indexOf(name, this.#offsetOf(expression));
    const parenthesis = start === -1 ? -1 : this.#text.indexOf("(", start + name.length);
    return parenthesis === -1 ? this.#offsetOf(expression) : parenthesis;
  }

  #operatorOffset(expression: Expression, name: string): number {
    const offset = this.#offsetOf(expression);
    const mark = name === "_?_:_" ? this.#text.indexOf("?", offset) : -1;
    return mark === -1 ? offset : mark;
  }
}

type Select = Extract<Expression["exprKind"], { case: "selectExpr" }>["value"];
type Call = Extract<Expression["exprKind"], { case: "callExpr" }>["value"];
type Loop = Extract<Expression["exprKind"], { case: "comprehensionExpr" }>["value"];
type MapEntry = Extract<Expression["exprKind"], { case: "structExpr" }>["value"]["entries"][number];

const MACROS: ReadonlySet<string> = new Set(
  "all exists exists_one existsOne map filter optMap optFlatMap sortBy transformList transformMap transformMapEntry".split(
    " ",
  ),
);

function isMacro(name: string): boolean {
  return MACROS.has(name);
}

function common(types: readonly CheckedType[]): CheckedType {
  const [first = DYN] = types;
  return types.every(({ kind }) => kind === first.kind) && first.kind !== "object" && !("element" in first)
    ? first
    : DYN;
}

function qualifiedName({ exprKind }: Expression): string | undefined {
  if (exprKind.case === "identExpr") return exprKind.value.name;
  if (exprKind.case !== "selectExpr" || exprKind.value.operand === undefined) return undefined;
  const operand = qualifiedName(exprKind.value.operand);
  return operand === undefined ? undefined : `${operand}.${exprKind.value.field}`;
}

function typeOfConstant(kind: string | undefined): CheckedType {
  const [, name = "dyn"] = /^(bool|int64|uint64|double|string|bytes|null)Value$/.exec(kind ?? "") ?? [];
  return { kind: name.replace("64", "") } as CheckedType;
}
