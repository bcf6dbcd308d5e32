// Checks the types of an expression before it is accepted. What is not known for certain is taken as right: kube-apiserver may refuse more.
import { loadEnvironment } from "../environment.js";
import { loadLibrary } from "../library.js";
import {
  OPTIONAL_ENTRY,
  OPTIONAL_FIELD,
  OPTIONAL_INDEX,
  withoutOptionalOperators,
} from "../prepare/optional-syntax.js";
import type { Expression } from "../prepare/prepare-expression.js";
import {
  OF_TEXT,
  RESULTS,
  SIZED,
  TYPE_NAMES,
  common,
  elementOf,
  isAggregated,
  isContainer,
  isMacro,
  isOptionalMark,
  isPlain,
  qualifiedName,
  resultOfFunction,
  typeOfConstant,
  type Call,
  type Loop,
  type MapEntry,
  type Select,
  type Struct,
} from "./expression-parts.js";
import type { CheckedExpression, CheckOptions, ExpressionProblem } from "./checked-expression.js";
import { isWrongConstant, patternProblemOf } from "./constants.js";
import { isOperator, resultOf } from "./operators.js";
import { Positions } from "./positions.js";
import { DYN, nameOfType, type CheckedType } from "./types.js";

/** What something is called on and with, and where. */
interface Arguments {
  readonly on?: CheckedType | undefined;
  readonly types: readonly CheckedType[];
  readonly offset?: number;
}

type Scope = ReadonlyMap<string, CheckedType>;

/** Checks an expression that can be parsed, given the types of its variables. */
export function checkExpression(
  text: string,
  variables: { readonly [name: string]: CheckedType },
  { hasPatchTypes = false }: CheckOptions = {},
): CheckedExpression {
  const plain = withoutOptionalOperators(text);
  const { expr, sourceInfo } = loadLibrary().parse(plain);
  if (expr === undefined)
    return { type: DYN, problems: [], programProblem: undefined, types: new Map(), root: undefined };
  const check = new Check(plain, sourceInfo?.positions ?? {}, hasPatchTypes);
  const type = check.typeOf(expr, new Map(Object.entries(variables)));
  const { programProblem, types } = check;
  return { type, problems: check.problems.sort((a, b) => a.offset - b.offset), programProblem, types, root: expr };
}

class Check {
  readonly problems: ExpressionProblem[] = [];
  programProblem: string | undefined;
  readonly types = new Map<Expression, CheckedType>();
  readonly #text: string;
  readonly #positions: Positions;
  readonly #hasPatchTypes: boolean;
  // Within how many calls of `format` a part is: what is given to them may have items of several types.
  #formats = 0;

  constructor(text: string, offsets: { readonly [id: string]: number }, hasPatchTypes: boolean) {
    this.#text = text;
    this.#positions = new Positions(text, offsets);
    this.#hasPatchTypes = hasPatchTypes;
  }

  typeOf(expression: Expression, scope: Scope): CheckedType {
    const type = this.#typeOf(expression, scope);
    this.types.set(expression, type);
    return type;
  }

  #typeOf(expression: Expression, scope: Scope): CheckedType {
    const { exprKind } = expression;
    switch (exprKind.case) {
      case "constExpr":
        return typeOfConstant(exprKind.value.constantKind.case);
      case "identExpr":
        return this.#typeOfName(expression, exprKind.value.name, scope);
      case "selectExpr":
        return this.#typeOfField(expression, exprKind.value, scope);
      case "listExpr":
        return { kind: "list", element: this.#typeOfItems(exprKind.value.elements, scope) };
      case "structExpr":
        return exprKind.value.messageName === ""
          ? this.#typeOfMap(exprKind.value.entries, scope)
          : this.#typeOfMessage(expression, exprKind.value, scope);
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
    return this.#fail(this.#positions.of(expression), `undeclared reference to '${name}' (in container '')`);
  }

  #typeOfField(expression: Expression, { operand, field, testOnly }: Select, scope: Scope): CheckedType {
    if (!testOnly && TYPE_NAMES.has(qualifiedName(expression) ?? "")) return DYN;
    const type = operand === undefined ? DYN : this.typeOf(operand, scope);
    const inner = this.#fieldOf(type, field, this.#positions.of(expression));
    return testOnly ? { kind: "bool" } : inner;
  }

  #fieldOf(type: CheckedType, field: string, offset: number): CheckedType {
    if (type.kind === "optional") return { kind: "optional", element: this.#fieldOf(type.element, field, offset) };
    if (type.kind === "map") return type.element;
    if (type.kind === "object") return type.field(field) ?? this.#fail(offset, `undefined field '${field}'`);
    if (type.kind === "dyn" || type.kind === "null" || type.kind === "message") return DYN;
    return this.#fail(offset, `type '${nameOfType(type)}' does not support field selection`);
  }

  #typeOfMap(entries: readonly MapEntry[], scope: Scope): CheckedType {
    const keys = entries.flatMap(({ keyKind }) => (keyKind.case === "mapKey" ? [keyKind.value] : []));
    const values = entries.flatMap(({ value }, index) =>
      value === undefined ? [] : [isOptionalMark(keys[index]) ? keys[index]! : value],
    );
    const key = this.#typeOfItems(
      keys.filter((each) => !isOptionalMark(each)),
      scope,
    );
    return { kind: "map", key, element: this.#typeOfItems(values, scope) };
  }

  // The items of a literal have one type.
  #typeOfItems(items: readonly Expression[], scope: Scope): CheckedType {
    const isMark = (index: number) => isOptionalMark(items[index]);
    const given = items.map((each, index) => (isMark(index) ? DYN : this.typeOf(each, scope)));
    const types = given.map((type, index) => (isMark(index - 1) ? elementOf(type) : type)).filter((_, i) => !isMark(i));
    return this.#oneType(
      items.filter((_, index) => !isMark(index)),
      types,
    );
  }

  #oneType(items: readonly Expression[], types: readonly CheckedType[]): CheckedType {
    const [first = DYN] = types;
    for (const [index, type] of types.entries()) {
      const areKnown = isPlain(first) && isPlain(type) && this.#formats === 0;
      if (areKnown && nameOfType(first) !== nameOfType(type))
        this.#fail(
          this.#positions.startOf(items[index]!),
          `expected type '${nameOfType(first)}' but found '${nameOfType(type)}'`,
        );
    }
    return common(types);
  }

  #typeOfMessage(expression: Expression, { messageName, entries }: Struct, scope: Scope): CheckedType {
    const isKnown = this.#hasPatchTypes && /^(JSONPatch|Object(\.\w+)*)$/.test(messageName);
    const offset = this.#positions.startOf(expression);
    if (!isKnown) return this.#fail(offset, `undeclared reference to '${messageName}' (in container '')`);
    const fieldAt = (index: number) => {
      const { keyKind } = entries[index] ?? {};
      return keyKind?.case === "fieldKey" ? keyKind.value : "";
    };
    for (const [index, { id, value }] of entries.entries()) {
      const given = value === undefined ? DYN : this.typeOf(value, scope);
      const type = fieldAt(index - 1) === OPTIONAL_ENTRY ? elementOf(given) : given;
      const field = fieldAt(index);
      if (field === OPTIONAL_ENTRY) continue;
      if (messageName !== "JSONPatch" || field === "value") continue;
      const wanted = ["op", "path", "from"].includes(field) ? "string" : "";
      if (type.kind === wanted || (type.kind === "dyn" && wanted !== "")) continue;
      const start = this.#text.indexOf(":", this.#positions.ofId(id));
      this.#fail(start, `expected type of field '${field}' is '${wanted}' but provided type is '${nameOfType(type)}'`);
    }
    return { kind: "message", name: messageName };
  }

  #typeOfCall(expression: Expression, { function: name, target, args }: Call, scope: Scope): CheckedType {
    const funcs = loadEnvironment().funcs;
    const qualified = target === undefined ? undefined : qualifiedName(target);
    const isQualified = qualified !== undefined && funcs.find(`${qualified}.${name}`) !== undefined;
    // A macro with a variable of its own, which the evaluator does not know.
    if (funcs.find(isQualified ? `${qualified}.${name}` : name) === undefined && !isOperator(name) && isMacro(name))
      return DYN;
    if (name === "format") this.#formats++;
    const on = target === undefined || isQualified ? undefined : this.typeOf(target, scope);
    const types = args.map((each) => this.typeOf(each, scope));
    if (name === "format") this.#formats--;
    if (name.startsWith("@") && name !== "@in") return DYN;
    if (name === "_&&_" || name === "_||_") return this.#typeOfJunction(args, types);
    if (isOperator(name)) return resultOf(name, types) ?? this.#mismatch(expression, name, { types });
    if (name === OPTIONAL_FIELD) return { kind: "optional", element: this.#optionalField(expression, on, args[0]) };
    if (name === OPTIONAL_INDEX)
      return { kind: "optional", element: on !== undefined && isContainer(on) ? on.element : DYN };
    const fitting = [...(funcs.find(isQualified ? `${qualified}.${name}` : name) ?? [])].filter(
      (func) => (func.target !== undefined) === (on !== undefined) && func.arguments.length === args.length,
    );
    const offset = this.#positions.ofCall(expression, name);
    const fullName = isQualified ? `${qualified}.${name}` : name;
    if (fitting.length === 0)
      return isMacro(name) ? DYN : this.#fail(offset, `undeclared reference to '${name}' (in container '')`);
    const isWrong =
      (OF_TEXT.has(fullName) &&
        [...(on === undefined ? [] : [on]), ...types].some(({ kind }) => kind !== "string" && kind !== "dyn")) ||
      (name === "size" && ![on, ...types].every((each) => each === undefined || SIZED.has(each.kind)));
    if (isWrong) return this.#mismatch(expression, fullName, { on, types, offset });
    this.#checkConstant(name, args[0]);
    if (on?.kind === "list" && !isAggregated(name, on.element))
      return this.#mismatch(expression, name, { on, types, offset });
    const known = resultOfFunction(fullName, on ?? types[0]);
    if (known !== undefined) return known;
    const results = new Set(fitting.map(({ result }) => RESULTS[result.name] ?? "dyn"));
    const [only] = results;
    return results.size === 1 && only !== undefined && only !== "dyn" ? ({ kind: only } as CheckedType) : DYN;
  }

  #typeOfJunction(args: readonly Expression[], types: readonly CheckedType[]): CheckedType {
    for (const [index, type] of types.entries())
      if (type.kind !== "bool" && type.kind !== "dyn")
        this.#fail(this.#positions.of(args[index]!), `expected type 'bool' but found '${nameOfType(type)}'`);
    return { kind: "bool" };
  }

  #optionalField(expression: Expression, on: CheckedType | undefined, name: Expression | undefined): CheckedType {
    const field = name?.exprKind.case === "constExpr" ? name.exprKind.value.constantKind.value : undefined;
    const type = on?.kind === "optional" ? on.element : (on ?? DYN);
    return typeof field === "string" ? this.#fieldOf(type, field, this.#positions.of(expression)) : DYN;
  }

  #typeOfLoop(
    { iterVar, iterRange, accuVar, accuInit, loopCondition, loopStep, result }: Loop,
    scope: Scope,
  ): CheckedType {
    const range = iterRange === undefined ? DYN : this.typeOf(iterRange, scope);
    if (iterRange !== undefined && !["list", "map", "dyn"].includes(range.kind))
      this.#fail(
        this.#positions.of(iterRange),
        `expression of type '${nameOfType(range)}' cannot be range of a comprehension (must be list, map, or dynamic)`,
      );
    const item: CheckedType = range.kind === "list" ? range.element : range.kind === "map" ? { kind: "string" } : DYN;
    const start = accuInit === undefined ? DYN : this.typeOf(accuInit, scope);
    const accumulated = start.kind === "list" ? { kind: "list" as const, element: DYN } : start;
    const inner = new Map([...scope, [iterVar, item], [accuVar, accumulated]]);
    if (loopCondition !== undefined) this.typeOf(loopCondition, inner);
    const step = loopStep === undefined ? DYN : this.typeOf(loopStep, inner);
    const end = new Map([
      ...inner,
      [accuVar, step.kind === "list" && accumulated.kind === "list" ? step : accumulated],
    ]);
    return result === undefined ? DYN : this.typeOf(result, end);
  }

  #checkConstant(name: string, argument: Expression | undefined): void {
    const constant = argument?.exprKind.case === "constExpr" ? argument.exprKind.value.constantKind : undefined;
    if (argument === undefined || constant?.case !== "stringValue") return;
    if (isWrongConstant(name, constant.value)) this.#fail(this.#positions.of(argument), `invalid ${name} argument`);
    this.programProblem ??= patternProblemOf(name, constant.value);
  }

  #mismatch(
    expression: Expression,
    name: string,
    { on, types, offset = this.#positions.ofOperator(expression, name) }: Arguments,
  ): CheckedType {
    const target = on === undefined ? "" : `${nameOfType(on)}.`;
    const shown = `${target}(${types.map(nameOfType).join(", ")})`;
    return this.#fail(offset, `found no matching overload for '${name}' applied to '${shown}'`);
  }

  #fail(offset: number, message: string): CheckedType {
    this.problems.push({ offset, message });
    return DYN;
  }
}
