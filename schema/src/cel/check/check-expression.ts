// Type-checks expressions before they are accepted, as kube-apiserver does with cel-go.
import { Bindings, DYN, isOpen, mostGeneral, nameOfType, type CheckedType } from "./types.js";
import { loadLibrary } from "../library.js";
import { expandLoop } from "../expression/macros.js";
import {
  OPTIONAL_ENTRY,
  OPTIONAL_FIELD,
  OPTIONAL_INDEX,
  quotedAt,
  withoutOptionalOperators,
} from "../expression/optional-syntax.js";
import { checkLiterals, patternProblemOf } from "./check-literals.js";
import {
  isOptionalMark,
  qualifiedName,
  textConstant,
  valuesOf,
  variableOf,
  type Call,
  type Expression,
  type Loop,
  type MapEntry,
  type Select,
  type Struct,
} from "../expression/ast.js";
import { messageNamed, overloadsOf, resultOfCall, typeNamed } from "./declarations.js";

/** A problem of an expression. `offset` is the index of a character in its text. */
interface ExpressionProblem {
  readonly offset: number;
  readonly message: string;
}

/** The result of checking an expression: the type of its value, and its problems in the order of the text. */
export interface CheckedExpression {
  readonly type: CheckedType;
  readonly problems: readonly ExpressionProblem[];
  /** Why cel-go cannot build a program from the expression although its types are correct; undefined if it can. */
  readonly programProblem: string | undefined;
  /** The types of all subexpressions. */
  readonly types: ReadonlyMap<Expression, CheckedType>;
  readonly root: Expression | undefined;
  /** Whether the expression refers to `oldSelf`. */
  readonly usesOldSelf: boolean;
}

export interface CheckOptions {
  /** Whether `Object{…}` and `JSONPatch{…}` can be constructed, as in mutating admission policies. Default: false */
  readonly hasPatchTypes?: boolean;
}

type Scope = ReadonlyMap<string, CheckedType>;
type MacroCalls = Parameters<typeof expandLoop>[1];

/** A problem of a subexpression, or of the entry of a literal with this id. */
interface PartProblem {
  readonly at: Expression | bigint;
  readonly message: string;
}

const ERROR: CheckedType = { kind: "error" };
const BOOL: CheckedType = { kind: "bool" };
const INT: CheckedType = { kind: "int" };

const EMPTY: CheckedExpression = {
  ...{ type: DYN, problems: [], programProblem: undefined },
  ...{ types: new Map(), root: undefined, usesOldSelf: false },
};

/** The types of the target of a method, if any, and of the arguments of a call. */
interface Arguments {
  readonly on?: CheckedType | undefined;
  readonly given: readonly CheckedType[];
}

/** Type-checks an expression that the parser accepts, given the types of its variables. */
export function checkExpression(
  text: string,
  variables: { readonly [name: string]: CheckedType },
  { hasPatchTypes = false }: CheckOptions = {},
): CheckedExpression {
  const { text: plain, originOf } = withoutOptionalOperators(text);
  const { expr, sourceInfo } = loadLibrary().parse(plain);
  if (expr === undefined) return EMPTY;
  const positions = new Positions(plain, sourceInfo?.positions ?? {});
  const check = new Check({ hasPatchTypes, calls: sourceInfo?.macroCalls ?? {} });
  const type = check.settle(check.typeOf(expr, new Map(Object.entries(variables))));
  const { programProblem, types, macroProblems, freeLiterals } = check;
  const ofTypes = macroProblems.length > 0 ? macroProblems : check.problems;
  const ofLiterals = ofTypes.length > 0 ? [] : checkLiterals(types, freeLiterals);
  const problems = [...ofTypes, ...ofLiterals]
    .map(({ at, message }) => ({ offset: originOf(positions.of(at)), message }))
    .sort((one, other) => one.offset - other.offset);
  const usesOldSelf = [...types.keys()].some((part) => variableOf(part) === "oldSelf");
  return { type, problems, programProblem, types, root: expr, usesOldSelf };
}

class Check {
  readonly problems: PartProblem[] = [];
  /** Problems of macros. They are parse errors in cel-go, so type errors are not reported if there are any. */
  readonly macroProblems: PartProblem[] = [];
  programProblem: string | undefined;
  readonly types = new Map<Expression, CheckedType>();
  /** List and map literals in the arguments of `format`, whose elements may have different types. */
  readonly freeLiterals = new Set<Expression>();
  #formats = 0;
  readonly #bindings = new Bindings();
  readonly #hasPatchTypes: boolean;
  readonly #calls: MacroCalls;

  constructor({ hasPatchTypes, calls }: { hasPatchTypes: boolean; calls: MacroCalls }) {
    this.#hasPatchTypes = hasPatchTypes;
    this.#calls = calls;
  }

  /** Replaces the type parameters in a type, and in the types of all subexpressions, by what they were inferred to be. */
  settle(type: CheckedType): CheckedType {
    for (const [part, each] of this.types) this.types.set(part, this.#bindings.settle(each));
    return this.#bindings.settle(type);
  }

  typeOf(expression: Expression, scope: Scope): CheckedType {
    const problem = expandLoop(expression, this.#calls);
    if (problem !== undefined) this.macroProblems.push(problem);
    const type = problem === undefined ? this.#typeOf(expression, scope) : ERROR;
    this.types.set(expression, type);
    if (this.#formats > 0) this.freeLiterals.add(expression);
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
    const type = scope.get(name) ?? typeNamed(name);
    return type ?? this.#fail(expression, `undeclared reference to '${name}' (in container '')`);
  }

  #typeOfField(expression: Expression, { operand, field, testOnly }: Select, scope: Scope): CheckedType {
    const name = qualifiedName(expression) ?? "";
    const named = scope.get(name) ?? typeNamed(name);
    if (named !== undefined) {
      expression.exprKind = { case: "identExpr", value: { $typeName: "cel.expr.Expr.Ident", name } };
      return named;
    }
    const type = operand === undefined ? DYN : this.typeOf(operand, scope);
    const inner = this.#fieldOf(type, field, expression);
    return testOnly ? BOOL : this.#bindings.resolve(inner);
  }

  #fieldOf(given: CheckedType, field: string, at: Expression): CheckedType {
    const type = this.#bindings.resolve(given);
    if (type.kind === "optional") return optional(this.#memberOf(this.#bindings.resolve(type.element), field, at));
    return this.#memberOf(type, field, at);
  }

  #memberOf(type: CheckedType, field: string, at: Expression): CheckedType {
    if (type.kind === "map") return type.element;
    if (type.kind === "object") return type.field(field) ?? this.#fail(at, `undefined field '${field}'`);
    if (type.kind === "parameter") this.#bindings.fits([DYN], [type]);
    else if (type.kind === "opaque" && type.name.startsWith("kubernetes."))
      this.#fail(at, `unexpected failed resolution of '${type.name}'`);
    else if (!isOpen(type)) this.#fail(at, `type '${nameOfType(type)}' does not support field selection`);
    return DYN;
  }

  #typeOfMap(entries: readonly MapEntry[], scope: Scope): CheckedType {
    const keys = entries.flatMap(({ keyKind }) => (keyKind.case === "mapKey" ? [keyKind.value] : []));
    const names = keys.filter((each) => !isOptionalMark(each));
    return { kind: "map", key: this.#typeOfItems(names, scope), element: this.#typeOfItems(valuesOf(entries), scope) };
  }

  // An item after an optional mark has an optional type.
  #typeOfItems(items: readonly Expression[], scope: Scope): CheckedType {
    let joined: CheckedType | undefined;
    for (const [index, item] of items.entries()) {
      if (isOptionalMark(item)) continue;
      const given = this.typeOf(item, scope);
      const type = isOptionalMark(items[index - 1]) ? this.#held(item, given) : given;
      if (joined === undefined) joined = type;
      else joined = this.#bindings.fits([joined], [type]) ? mostGeneral(joined, type) : DYN;
    }
    return joined ?? this.#bindings.fresh();
  }

  #held(item: Expression, type: CheckedType): CheckedType {
    if (type.kind === "optional") return type.element;
    if (type.kind !== "dyn") this.#mismatch(item, optional(type), type);
    return type;
  }

  #mismatch(item: Expression, wanted: CheckedType, found: CheckedType): CheckedType {
    const message = `expected type '${nameOfType(wanted)}' but found '${nameOfType(found)}'`;
    return this.#fail(item, message);
  }

  #typeOfMessage(expression: Expression, { messageName, entries }: Struct, scope: Scope): CheckedType {
    const message = messageNamed(messageName, this.#hasPatchTypes);
    if (message === undefined)
      return this.#fail(expression, `undeclared reference to '${messageName}' (in container '')`);
    let isOptional = false;
    for (const { id, keyKind, value } of entries) {
      const field = keyKind.case === "fieldKey" ? keyKind.value : "";
      const given = value === undefined ? DYN : this.typeOf(value, scope);
      const type = isOptional ? this.#held(value!, given) : given;
      isOptional = field === OPTIONAL_ENTRY;
      const wanted = isOptional ? DYN : message.field(field);
      if (wanted !== undefined && this.#bindings.fits([wanted], [type])) continue;
      const name = wanted === undefined ? "" : nameOfType(wanted);
      this.#fail(id, `expected type of field '${field}' is '${name}' but provided type is '${nameOfType(type)}'`);
    }
    return message.type;
  }

  #typeOfCall(expression: Expression, call: Call, scope: Scope): CheckedType {
    const { function: name, target, args } = call;
    if (name === OPTIONAL_FIELD && target !== undefined) {
      const inner = this.#fieldOf(this.typeOf(target, scope), textConstant(args[0]) ?? "", expression);
      return inner.kind === "optional" ? inner : optional(this.#bindings.resolve(inner));
    }
    if (name === OPTIONAL_INDEX && target !== undefined) {
      const given = [target, ...args].map((each) => this.typeOf(each, scope));
      return this.#call(expression, "_[?_]", { given });
    }
    if (name === "format") this.#formats++;
    const given = args.map((each) => this.typeOf(each, scope));
    if (name === "_&&_" || name === "_||_") return this.#typeOfJunction(args, given);
    const qualified = target === undefined ? name : `${qualifiedName(target)}.${name}`;
    const isQualified = overloadsOf(qualified, this.#hasPatchTypes) !== undefined;
    const on = target === undefined || isQualified ? undefined : this.typeOf(target, scope);
    if (name === "format") this.#formats--;
    const called = isQualified ? qualified : name;
    if (overloadsOf(called, this.#hasPatchTypes) === undefined)
      return this.#fail(expression, `undeclared reference to '${name}' (in container '')`);
    this.programProblem ??= patternProblemOf(call);
    return this.#call(expression, called, { on, given });
  }

  #call(expression: Expression, name: string, { on, given }: Arguments): CheckedType {
    const overloads = overloadsOf(name, this.#hasPatchTypes) ?? [];
    const call = { isMethod: on !== undefined, all: [...(on === undefined ? [] : [on]), ...given] };
    const result = resultOfCall(overloads, this.#bindings, call);
    if (result !== undefined) return result;
    const shown = (type: CheckedType) => nameOfType(this.#bindings.settle(type));
    const signature = `${on === undefined ? "" : `${shown(on)}.`}(${given.map(shown).join(", ")})`;
    return this.#fail(expression, `found no matching overload for '${name}' applied to '${signature}'`);
  }

  #typeOfJunction(args: readonly Expression[], given: readonly CheckedType[]): CheckedType {
    const wrong = given.flatMap((type, index) => {
      if (this.#bindings.fits([type], [BOOL])) return [];
      const message = `expected type 'bool' but found '${nameOfType(type)}'`;
      return [this.#fail(args[index]!, message)];
    });
    return wrong.length > 0 ? ERROR : BOOL;
  }

  #typeOfLoop(loop: Loop, scope: Scope): CheckedType {
    const { iterVar, iterVar2, iterRange, accuVar, accuInit, loopCondition, loopStep, result } = loop;
    const range = this.#bindings.resolve(this.typeOf(iterRange!, scope));
    const start = this.typeOf(accuInit!, scope);
    const outer = new Map([...scope, [accuVar, start]]);
    const [first, second] = this.#itemsOf(iterRange!, range, iterVar2 !== "");
    const inner = new Map([...outer, [iterVar, first]]);
    if (iterVar2 !== "") inner.set(iterVar2, second);
    for (const [part, wanted] of [
      [loopCondition!, BOOL],
      [loopStep!, start],
    ] as const) {
      const type = this.typeOf(part, inner);
      if (!this.#bindings.fits([wanted], [type])) this.#mismatch(part, wanted, type);
    }
    return this.#bindings.resolve(this.typeOf(result!, outer));
  }

  // The types of the loop variables.
  #itemsOf(expression: Expression, range: CheckedType, hasTwo: boolean): readonly [CheckedType, CheckedType] {
    if (range.kind === "list") return hasTwo ? [INT, range.element] : [range.element, DYN];
    if (range.kind === "map") return [range.key, range.element];
    if (range.kind === "parameter") this.#bindings.fits([DYN], [range]);
    else if (!isOpen(range)) {
      const words = "cannot be range of a comprehension (must be list, map, or dynamic)";
      this.#fail(expression, `expression of type '${nameOfType(range)}' ${words}`);
      return [ERROR, ERROR];
    }
    return [DYN, DYN];
  }

  #fail(at: Expression | bigint, message: string): CheckedType {
    this.problems.push({ at, message });
    return ERROR;
  }
}

// The kind is the name of the field of cel.expr.Constant that is set, such as `int64Value`.
function typeOfConstant(kind: string | undefined): CheckedType {
  const [, name = "dyn"] = /^(bool|int64|uint64|double|string|bytes|null)Value$/.exec(kind ?? "") ?? [];
  return { kind: name.replace("64", "") } as CheckedType;
}

function optional(element: CheckedType): CheckedType {
  return { kind: "optional", element };
}

// The parser records the offset of the first operand for these operators; kube-apiserver reports that of the operator.
const OUTER_MARKS: { readonly [operator: string]: string } = { "_?_:_": "?", "_||_": "||", "_&&_": "&&" };

/** The positions of subexpressions as kube-apiserver reports them. */
class Positions {
  readonly #text: string;
  readonly #offsets: { readonly [id: string]: number };

  constructor(text: string, offsets: { readonly [id: string]: number }) {
    this.#text = text;
    this.#offsets = offsets;
  }

  /** Returns the offset of a subexpression, or of the value of an entry. */
  of(part: Expression | bigint): number {
    if (typeof part === "bigint") return this.#firstOf(":", this.#startOf(part));
    const { id, exprKind } = part;
    const start = this.#startOf(id);
    // The expansion of a macro is positioned at its opening parenthesis.
    const isMethod = /\.\D/y.test(this.#text.slice(start, start + 2));
    switch (exprKind.case) {
      case "selectExpr":
        return exprKind.value.testOnly ? this.#firstOf("(", start) : start;
      case "structExpr":
        return exprKind.value.messageName === "" && !isMethod ? start : this.#firstOf(isMethod ? "(" : "{", start);
      case "callExpr": {
        const name = exprKind.value.function;
        if (name === OPTIONAL_FIELD || name === OPTIONAL_INDEX) return start;
        if (isMethod || /^[A-Za-z]/.test(name)) return this.#firstOf("(", start);
        const mark = OUTER_MARKS[name];
        return mark === undefined ? start : this.#outerMark(mark, start);
      }
      case "identExpr":
        // A qualified type name such as `net.IP` contains a dot.
        return isMethod && !exprKind.value.name.includes(".") ? this.#firstOf("(", start) : start;
      default:
        return isMethod ? this.#firstOf("(", start) : start;
    }
  }

  #startOf(id: bigint): number {
    const offset = this.#offsets[String(id)] ?? 0;
    const space = /\s*/y;
    space.lastIndex = offset;
    return offset + (space.exec(this.#text)?.[0].length ?? 0);
  }

  // Finds the operator after its first operand; skips brackets, string literals, and comments.
  #outerMark(mark: string, start: number): number {
    let depth = 0;
    for (let index = start; index < this.#text.length; index++) {
      const quoted = quotedAt(this.#text, index);
      const character = this.#text[index]!;
      if (quoted !== undefined) index += quoted.length - 1;
      else if ("([{".includes(character)) depth++;
      else if (")]}".includes(character)) depth--;
      else if (depth === 0 && this.#text.startsWith(mark, index)) return index;
    }
    return start;
  }

  #firstOf(mark: string, start: number): number {
    const index = this.#text.indexOf(mark, start);
    return index === -1 ? start : index;
  }
}
