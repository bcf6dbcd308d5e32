// What the check of an expression asks of its parts.
import { OPTIONAL_ENTRY } from "../prepare/optional-syntax.js";
import type { Expression } from "../prepare/prepare-expression.js";
import { DYN, nameOfType, type CheckedType } from "./types.js";

/** The names of types, which are values, too. */
export const TYPE_NAMES: ReadonlySet<string> = new Set(
  "bool int uint double string bytes list map null_type type optional_type google.protobuf.Duration google.protobuf.Timestamp".split(
    " ",
  ),
);

/** The types of results, by the names that the evaluator gives them. */
export const RESULTS: { readonly [name: string]: CheckedType["kind"] } = {
  "google.protobuf.Timestamp": "timestamp",
  "google.protobuf.Duration": "duration",
  ...Object.fromEntries(["bool", "int", "uint", "double", "string", "bytes"].map((name) => [name, name])),
};

/** The functions that take texts alone. */
export const OF_TEXT: ReadonlySet<string> = new Set([
  "startsWith",
  "endsWith",
  "matches",
  "contains",
  "jsonpatch.escapeKey",
]);

const ADDED: ReadonlySet<string> = new Set(["dyn", "int", "uint", "double", "duration"]);
const COMPARED: ReadonlySet<string> = new Set([...ADDED, "bool", "string", "bytes", "timestamp"]);
const AGGREGATED: { readonly [name: string]: ReadonlySet<string> } = { sum: ADDED, min: COMPARED, max: COMPARED };

/** Tells whether a function takes lists with such items; one that is no aggregate takes all. */
export function isAggregated(name: string, { kind }: CheckedType): boolean {
  return AGGREGATED[name]?.has(kind) ?? true;
}

/** What has a size. */
export const SIZED: ReadonlySet<string> = new Set(["dyn", "string", "bytes", "list", "map", "object", "optional"]);

/** A selection of a field in a parsed expression. */
export type Select = Extract<Expression["exprKind"], { case: "selectExpr" }>["value"];
/** A call in a parsed expression. */
export type Call = Extract<Expression["exprKind"], { case: "callExpr" }>["value"];
/** A loop in a parsed expression. */
export type Loop = Extract<Expression["exprKind"], { case: "comprehensionExpr" }>["value"];
/** A literal of a map or an object in a parsed expression. */
export type Struct = Extract<Expression["exprKind"], { case: "structExpr" }>["value"];
/** A entry of such a literal in a parsed expression. */
export type MapEntry = Extract<Expression["exprKind"], { case: "structExpr" }>["value"]["entries"][number];

const PLAIN: ReadonlySet<string> = new Set(["bool", "int", "uint", "double", "string", "bytes", "message"]);

/** Tells whether an entry of a literal marks the next one as optional. */
export function isOptionalMark(expression: Expression | undefined): boolean {
  return expression?.exprKind.case === "identExpr" && expression.exprKind.value.name === OPTIONAL_ENTRY;
}

/** Returns the type of what an optional value holds. */
export function elementOf(type: CheckedType): CheckedType {
  return type.kind === "optional" ? type.element : DYN;
}

/** Tells whether a type is that of a list or a map. */
export function isContainer(type: CheckedType): type is Extract<CheckedType, { kind: "list" | "map" }> {
  return type.kind === "list" || type.kind === "map";
}

/** Tells whether all is known of a type. */
export function isPlain({ kind }: CheckedType): boolean {
  return PLAIN.has(kind);
}

const MACROS: ReadonlySet<string> = new Set(
  "all exists exists_one existsOne map filter optMap optFlatMap sortBy transformList transformMap transformMapEntry".split(
    " ",
  ),
);

/** Tells whether a name is that of a macro. */
export function isMacro(name: string): boolean {
  return MACROS.has(name);
}

// Objects of several schemas have one name.
function holdsObjects(type: CheckedType): boolean {
  return type.kind === "object" || ("element" in type && holdsObjects(type.element));
}

/** Returns the type that several have in common; dyn if they have none. */
export function common(types: readonly CheckedType[]): CheckedType {
  const [first = DYN] = types;
  if (types.every((type) => type === first)) return first;
  return types.every((type) => nameOfType(type) === nameOfType(first)) && !holdsObjects(first) ? first : DYN;
}

/** Returns the dotted name that an expression is; undefined if it is something else. */
export function qualifiedName({ exprKind }: Expression): string | undefined {
  if (exprKind.case === "identExpr") return exprKind.value.name;
  if (exprKind.case !== "selectExpr" || exprKind.value.operand === undefined) return undefined;
  const operand = qualifiedName(exprKind.value.operand);
  return operand === undefined ? undefined : `${operand}.${exprKind.value.field}`;
}

/** Returns the type of a constant by the name of its field. */
export function typeOfConstant(kind: string | undefined): CheckedType {
  const [, name = "dyn"] = /^(bool|int64|uint64|double|string|bytes|null)Value$/.exec(kind ?? "") ?? [];
  return { kind: name.replace("64", "") } as CheckedType;
}

/** Returns the type of a function's result where it is known from what the function is called on; undefined if it is not. */
export function resultOfFunction(name: string, on: CheckedType | undefined): CheckedType | undefined {
  if (name === "optional.of" || name === "optional.ofNonZeroValue") return { kind: "optional", element: on ?? DYN };
  if (name === "split" || name === "findAll") return { kind: "list", element: { kind: "string" } };
  const isList = on?.kind === "list";
  if (isList && ["slice", "reverse", "distinct", "sort"].includes(name)) return on;
  if (isList && ["sum", "min", "max"].includes(name)) return on.element;
  if (on?.kind === "optional" && (name === "value" || name === "orValue")) return on.element;
  return undefined;
}
