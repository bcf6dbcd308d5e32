// The types of CEL and their assignability, including the quirks of cel-go's checker. The type of an unknown value is dyn, which is assignable to and
// from every type.

/** A type of CEL. */
export type CheckedType =
  | {
      readonly kind:
        "dyn" | "null" | "bool" | "int" | "uint" | "double" | "string" | "bytes" | "timestamp" | "duration";
    }
  /** The type of an invalid expression. Like dyn, it is compatible with every type. */
  | { readonly kind: "error" }
  | { readonly kind: "list" | "optional"; readonly element: CheckedType }
  /** The type of a type value, such as the result of `type(x)`. */
  | { readonly kind: "type"; readonly of?: CheckedType }
  | { readonly kind: "map"; readonly key: CheckedType; readonly element: CheckedType }
  /** A type of a Kubernetes CEL library, such as `net.IP`. */
  | { readonly kind: "opaque"; readonly name: string }
  /** A type parameter of a function declaration. */
  | { readonly kind: "parameter"; readonly name: string }
  /** An object type. `field` looks up a field by its escaped name in CEL. */
  | { readonly kind: "object"; readonly name: string; readonly field: (name: string) => CheckedType | undefined };

export const DYN: CheckedType = { kind: "dyn" };

const NAMES: { readonly [kind: string]: string } = { optional: "optional_type", error: "!error!" };
const LONG_NAMES: { readonly [kind: string]: string } = {
  null: "null_type",
  timestamp: "google.protobuf.Timestamp",
  duration: "google.protobuf.Duration",
};

/** Returns the name of a type as kube-apiserver prints it in errors about mismatched types. */
export function nameOfType(type: CheckedType): string {
  if ("name" in type) return type.name;
  const name = NAMES[type.kind] ?? type.kind;
  const inner = parametersOf(type);
  return inner.length === 0 ? name : `${name}(${inner.map(nameOfType).join(", ")})`;
}

/** Returns the name of a type as kube-apiserver prints it in errors about the result type of an expression. */
export function longNameOfType(type: CheckedType): string {
  if ("name" in type) return type.name;
  const name = LONG_NAMES[type.kind] ?? NAMES[type.kind] ?? type.kind;
  const inner = parametersOf(type);
  return inner.length === 0 ? name : `${name}(${inner.map(longNameOfType).join(", ")})`;
}

/** Returns the type arguments of a type. */
function parametersOf(type: CheckedType): readonly CheckedType[] {
  if (type.kind === "map") return [type.key, type.element];
  if (type.kind === "type") return type.of === undefined ? [] : [type.of];
  return "element" in type ? [type.element] : [];
}

/** Returns a type with other type arguments. */
function withParameters(type: CheckedType, [first = DYN, second = DYN]: readonly CheckedType[]): CheckedType {
  if (type.kind === "map") return { ...type, key: first, element: second };
  if (type.kind === "type") return { ...type, of: first };
  return "element" in type ? { ...type, element: first } : type;
}

export function isSameType(one: CheckedType, other: CheckedType): boolean {
  if (one === other) return true;
  if (one.kind !== other.kind) return false;
  if ("name" in one) return one.name === (other as typeof one).name;
  const [inner, others] = [parametersOf(one), parametersOf(other)];
  return inner.length === others.length && inner.every((each, index) => isSameType(each, others[index]!));
}

const MAY_BE_NULL: ReadonlySet<string> = new Set(["null", "object", "opaque", "optional", "timestamp", "duration"]);

/** The bindings of type parameters, inferred by matching the arguments of calls with function declarations. */
export class Bindings {
  readonly #bound = new Map<string, CheckedType>();
  // The previous values of changed bindings, to undo a failed match.
  readonly #trail: (readonly [name: string, before: CheckedType | undefined])[] = [];
  #count = 0;

  /** Returns a new, unbound type parameter. */
  fresh(): CheckedType {
    return { kind: "parameter", name: `_var${this.#count++}` };
  }

  /** Returns a function that replaces type parameters by fresh ones, the same one for each occurrence of a name. */
  renaming(): (type: CheckedType) => CheckedType {
    const fresh = new Map<string, CheckedType>();
    const rename = (type: CheckedType): CheckedType => {
      if (type.kind === "parameter") {
        const known = fresh.get(type.name) ?? this.fresh();
        fresh.set(type.name, known);
        return known;
      }
      return parametersOf(type).length === 0 ? type : withParameters(type, parametersOf(type).map(rename));
    };
    return rename;
  }

  /** Tests whether the types are assignable pairwise, as isAssignableList of cel-go's checker does. Inferred bindings are kept only if they are. */
  fits(wanted: readonly CheckedType[], given: readonly CheckedType[]): boolean {
    const start = this.#trail.length;
    if (this.#areAssignable(wanted, given)) return true;
    for (const [name, before] of this.#trail.splice(start).reverse())
      if (before === undefined) this.#bound.delete(name);
      else this.#bound.set(name, before);
    return false;
  }

  /** Returns a type with bound parameters replaced by their bindings. */
  resolve(type: CheckedType): CheckedType {
    const bound = this.#boundTo(type);
    if (bound !== undefined) return this.resolve(bound);
    const inner = parametersOf(type);
    return inner.length === 0
      ? type
      : withParameters(
          type,
          inner.map((each) => this.resolve(each)),
        );
  }

  /** Returns a type with bound parameters replaced by their bindings, and unbound ones by dyn. */
  settle(type: CheckedType): CheckedType {
    const resolved = this.resolve(type);
    if (resolved.kind === "parameter") return DYN;
    const inner = parametersOf(resolved);
    return inner.length === 0
      ? resolved
      : withParameters(
          resolved,
          inner.map((each) => this.settle(each)),
        );
  }

  #boundTo(type: CheckedType): CheckedType | undefined {
    return type.kind === "parameter" ? this.#bound.get(type.name) : undefined;
  }

  #bind({ name }: { name: string }, type: CheckedType): void {
    this.#trail.push([name, this.#bound.get(name)]);
    this.#bound.set(name, type);
  }

  #areAssignable(wanted: readonly CheckedType[], given: readonly CheckedType[]): boolean {
    return wanted.length === given.length && wanted.every((each, index) => this.#isAssignable(each, given[index]!));
  }

  #isAssignable(one: CheckedType, other: CheckedType): boolean {
    if (other.kind === "parameter") {
      const substitution = this.#substitution(one, other);
      if (substitution !== "free") return substitution === "fits";
    }
    if (one.kind === "parameter") return this.#substitution(other, one) === "fits";
    if (isOpen(one) || isOpen(other)) return true;
    if (one.kind === "null") return MAY_BE_NULL.has(other.kind);
    if (other.kind === "null") return MAY_BE_NULL.has(one.kind);
    if (one.kind === "type" || one.kind !== other.kind) return one.kind === other.kind;
    if ("name" in one) return one.name === (other as typeof one).name;
    return this.#areAssignable(parametersOf(one), parametersOf(other));
  }

  // Tests whether a type can be bound to a parameter, and binds it. If not, "bound" means that it conflicts with an existing binding, and "free" that
  // the type contains the parameter itself.
  #substitution(type: CheckedType, parameter: CheckedType & { readonly kind: "parameter" }): "fits" | "bound" | "free" {
    if (isSameType(type, parameter)) return "fits";
    const bound = this.#boundTo(parameter);
    if (bound !== undefined) {
      if (isSameType(type, bound)) return "fits";
      if (!this.#isAssignable(type, bound)) return "bound";
      const general = mostGeneral(type, bound);
      if (!this.#isWithin(parameter, general)) this.#bind(parameter, general);
      return "fits";
    }
    if (this.#isWithin(parameter, type)) return "free";
    this.#bind(parameter, type);
    return "fits";
  }

  #isWithin(parameter: CheckedType, type: CheckedType): boolean {
    if (isSameType(parameter, type)) return true;
    const bound = this.#boundTo(type);
    return bound === undefined
      ? parametersOf(type).some((each) => this.#isWithin(parameter, each))
      : this.#isWithin(parameter, bound);
  }
}

/** Returns whether a type is compatible with every type. */
export function isOpen({ kind }: CheckedType): boolean {
  return kind === "dyn" || kind === "error";
}

/** Returns the more general of two types. */
export function mostGeneral(one: CheckedType, other: CheckedType): CheckedType {
  return saysNoMore(one, other) ? one : other;
}

function saysNoMore(one: CheckedType, other: CheckedType): boolean {
  if (one.kind === "dyn" || one.kind === "parameter") return true;
  if (other.kind === "dyn" || other.kind === "parameter" || one.kind !== other.kind) return false;
  if (one.kind === "type") return true;
  if ("name" in one) return one.name === (other as typeof one).name;
  const inner = parametersOf(other);
  return parametersOf(one).every((each, index) => saysNoMore(each, inner[index]!));
}
