// Estimates the maximum cost of an expression, as kube-apiserver does when a CRD is created or updated. Follows the quirks of cel-go's estimator: a
// path that starts at a computed value is looked up from `self`.
import type { CheckedExpression } from "../check/check-expression.js";
import {
  qualifiedName,
  type Call,
  type Constant,
  type Expression,
  type Loop,
  type Select,
  type Struct,
} from "../expression/ast.js";
import { overloadsOf } from "../check/declarations.js";
import { DYN, type CheckedType } from "../check/types.js";
import { UNUSED } from "../expression/macros.js";
import { OPTIONAL_FIELD, OPTIONAL_INDEX } from "../expression/optional-syntax.js";
import { ANY_SIZE, bounded, callCostOf, fixed, UNBOUNDED, union, type Operand, type Range } from "./call-costs.js";
import type { SizedType } from "../schema-types.js";

// The location of a value below `self`: "none" for a computed value, "unknown" if the schema does not describe it.
type Place = SizedType | "none" | "unknown";

interface Entry {
  readonly isList: boolean;
  readonly key: Range;
  readonly value: Range;
}

interface Estimated {
  readonly cost: number;
  readonly place: Place;
  readonly size: Range | undefined;
  readonly entry?: Entry | undefined;
}

type Scope = ReadonlyMap<string, Omit<Estimated, "cost">>;

const SCALARS: ReadonlySet<string> = new Set(["bool", "double", "duration", "int", "timestamp", "uint"]);
const [LIST, MAP, MESSAGE] = [10, 30, 40];

/** Returns the maximum cost of a checked expression for values of the given size. */
export function estimateCost({ root, types }: CheckedExpression, self: SizedType): number {
  return root === undefined ? 0 : new Estimation(self, types).of(root, new Map()).cost;
}

class Estimation {
  readonly #self: SizedType;
  readonly #types: ReadonlyMap<Expression, CheckedType>;

  constructor(self: SizedType, types: ReadonlyMap<Expression, CheckedType>) {
    this.#self = self;
    this.#types = types;
  }

  of(expression: Expression, scope: Scope): Estimated {
    const { exprKind } = expression;
    switch (exprKind.case) {
      case "constExpr":
        return { cost: 0, place: "none", size: sizeOfConstant(exprKind.value.constantKind) };
      case "identExpr":
        return this.#ofName(expression, exprKind.value.name, scope);
      case "selectExpr":
        return this.#ofField(expression, exprKind.value, scope);
      case "listExpr":
        return this.#ofItems(exprKind.value.elements, LIST, scope);
      case "structExpr":
        return this.#ofStruct(exprKind.value, scope);
      case "callExpr":
        return this.#ofCall(expression, exprKind.value, scope);
      case "comprehensionExpr":
        return this.#ofLoop(expression, exprKind.value, scope);
      default:
        return { cost: 0, place: "none", size: undefined };
    }
  }

  #ofName(expression: Expression, name: string, scope: Scope): Estimated {
    const local = scope.get(name);
    const place = local?.place ?? this.#self;
    return { cost: 1, place, size: this.#sizeAt(place, expression) ?? local?.size, entry: local?.entry };
  }

  #ofField(expression: Expression, { operand, field, testOnly }: Select, scope: Scope): Estimated {
    const on = this.of(operand!, scope);
    if (testOnly) return { cost: on.cost, place: "none", size: fixed(1) };
    const { kind } = this.#types.get(operand!) ?? DYN;
    const place = this.#inside(on.place, field);
    return {
      cost: bounded(on.cost + (kind === "map" || kind === "object" ? 1 : 0)),
      place,
      size: this.#sizeAt(place, expression),
    };
  }

  #ofItems(items: readonly Expression[], base: number, scope: Scope): Estimated {
    const all = items.map((item) => this.of(item, scope));
    const value = all.reduce<Range>((range, { size }) => union(range, size ?? ANY_SIZE), {
      min: items.length === 0 ? 0 : UNBOUNDED,
      max: 0,
    });
    return {
      cost: costs(all) + base,
      place: "none",
      size: fixed(items.length),
      entry: { isList: true, key: fixed(1), value },
    };
  }

  #ofStruct({ messageName, entries }: Struct, scope: Scope): Estimated {
    const keys = entries.flatMap(({ keyKind }) => (keyKind.case === "mapKey" ? [keyKind.value] : []));
    const ofKeys = this.#ofItems(keys, 0, scope);
    const ofValues = this.#ofItems(
      entries.flatMap(({ value }) => (value === undefined ? [] : [value])),
      0,
      scope,
    );
    return {
      cost: bounded(ofKeys.cost + ofValues.cost + (messageName === "" ? MAP : MESSAGE)),
      place: "none",
      size: messageName === "" ? fixed(entries.length) : undefined,
      entry: { isList: false, key: ofKeys.entry!.value, value: ofValues.entry!.value },
    };
  }

  #ofCall(expression: Expression, { function: name, target, args }: Call, scope: Scope): Estimated {
    const qualified = target === undefined ? undefined : `${qualifiedName(target)}.${name}`;
    const isQualified = qualified !== undefined && overloadsOf(qualified, true) !== undefined;
    const isOptional = name === OPTIONAL_FIELD || name === OPTIONAL_INDEX;
    const given = args.map((each) => this.of(each, scope));
    const on = target === undefined || isQualified ? undefined : this.of(target, scope);
    const argumentCost = bounded(costs(given) + (on?.cost ?? 0));
    const made = (cost: number, size?: Range): Estimated => ({
      cost: bounded(cost),
      place: "none",
      size: size ?? this.#sizeAt("none", expression),
    });
    if (name === "dyn" && given[0] !== undefined)
      return { ...given[0], cost: bounded(given[0].cost + 1), place: "none" };
    if (isOptional) return made(argumentCost + 1);
    if (name === "_&&_" || name === "_||_") return made(argumentCost);
    if (name === "_?_:_") {
      const [condition, one, other] = given as [Estimated, Estimated, Estimated];
      const entry = one.entry && other.entry && unionOf(one.entry, other.entry);
      const size = union(one.size ?? ANY_SIZE, other.size ?? ANY_SIZE);
      return { ...made(condition.cost + Math.max(one.cost, other.cost), size), entry };
    }
    if (name === "_[_]") return this.#ofIndex(expression, { container: args[0]!, given, cost: argumentCost + 1 });
    const operands = args.map((each, index) => this.#operand(each, given[index]!));
    const call = callCostOf(
      isQualified ? qualified : name,
      on === undefined ? undefined : this.#operand(target!, on),
      operands,
    );
    const entry = name === "_+_" && given[0]?.entry && given[1]?.entry && unionOf(given[0].entry, given[1].entry);
    return { ...made(argumentCost + call.cost, call.size), ...(entry ? { entry } : {}) };
  }

  #ofIndex(
    expression: Expression,
    { container, given, cost }: { container: Expression; given: readonly Estimated[]; cost: number },
  ): Estimated {
    const [on] = given;
    const { kind } = this.#types.get(container) ?? DYN;
    const place = kind === "list" || kind === "map" ? this.#inside(on?.place ?? "none", "@element") : "none";
    return { cost: bounded(cost), place, size: on?.entry?.value ?? this.#sizeAt(place, expression) };
  }

  #ofLoop(expression: Expression, loop: Loop, scope: Scope): Estimated {
    const { iterVar, iterVar2, iterRange, accuVar, accuInit, loopCondition, loopStep, result } = loop;
    const range = this.of(iterRange!, scope);
    const start = this.of(accuInit!, scope);
    const withStart = new Map([...scope, [accuVar, start]]);
    if (iterVar === UNUSED) {
      const body = this.of(result!, withStart);
      return { ...body, cost: bounded(range.cost + start.cost + body.cost), place: "none" };
    }
    const isList = range.entry?.isList ?? (this.#types.get(iterRange!) ?? DYN).kind === "list";
    const inner = new Map(withStart);
    const key = { place: this.#inside(range.place, isList ? "@index" : "@key"), size: range.entry?.key };
    const value = { place: this.#inside(range.place, "@element"), size: range.entry?.value };
    inner.set(iterVar, iterVar2 === "" && isList ? value : key);
    if (iterVar2 !== "") inner.set(iterVar2, value);
    const [condition, step] = [this.of(loopCondition!, inner), this.of(loopStep!, inner)];
    const end = this.of(result!, withStart);
    const count = range.size ?? ANY_SIZE;
    const each = bounded(condition.cost + step.cost);
    const cost = bounded(range.cost + start.cost + end.cost + (count.max === 0 || each === 0 ? 0 : count.max * each));
    const isContainer = accuInit?.exprKind.case === "listExpr" || accuInit?.exprKind.case === "structExpr";
    const size = isContainer ? count : start.size;
    return {
      cost,
      place: "none",
      size: size ?? this.#sizeAt("none", expression),
      ...(isContainer && step.entry !== undefined ? { entry: step.entry } : {}),
    };
  }

  #operand(expression: Expression, { size, place, entry }: Estimated): Operand {
    const inner = this.#inside(place, "@element");
    const { exprKind } = expression;
    const constant = exprKind.case === "constExpr" ? exprKind.value.constantKind.value : undefined;
    // The schema gives the element size; that of a computed list is unknown.
    const itemSize = place === "none" || typeof inner === "string" ? ANY_SIZE : { min: 0, max: inner.max };
    return {
      type: this.#types.get(expression) ?? DYN,
      size: size ?? ANY_SIZE,
      itemSize: entry === undefined || place !== "none" ? itemSize : ANY_SIZE,
      isOpaque: exprKind.case === "callExpr" && OPAQUE.has(exprKind.value.function),
      number: typeof constant === "bigint" ? Number(constant) : undefined,
    };
  }

  // A path that starts at a computed value is looked up from `self`, as in cel-go.
  #inside(place: Place, step: string): Place {
    if (place === "unknown") return place;
    if (place === "none") return this.#self;
    if (step === "@element") return place.element ?? "unknown";
    if (step === "@key") return place.key ?? "unknown";
    return place.fields?.get(step) ?? "unknown";
  }

  #sizeAt(place: Place, expression: Expression): Range | undefined {
    if (typeof place !== "string") return { min: 0, max: place.max };
    const type = this.#types.get(expression) ?? DYN;
    const { kind } = type.kind === "optional" ? type.element : type;
    return SCALARS.has(kind) ? fixed(1) : undefined;
  }
}

// Functions that return opaque values, which are compared at constant cost.
const OPAQUE: ReadonlySet<string> = new Set("ip cidr masked quantity add sub semver".split(" "));

function sizeOfConstant({ case: kind, value }: Constant): Range {
  if (kind === "stringValue") return fixed([...value].length);
  return fixed(kind === "bytesValue" ? value.length : 1);
}

function costs(all: readonly Estimated[]): number {
  return bounded(all.reduce((sum, { cost }) => sum + cost, 0));
}

function unionOf(one: Entry, other: Entry): Entry {
  return { isList: one.isList, key: union(one.key, other.key), value: union(one.value, other.value) };
}
