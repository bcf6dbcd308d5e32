import type { JsonValue } from "../json.js";
import type { PathElement } from "./field-set.js";

/** How the values of a schema merge; a type may allow several shapes, of which the value at hand picks one. */
export interface MergeType {
  readonly scalar?: ScalarKind;
  readonly list?: ListShape;
  readonly map?: MapShape;
  /** True where nothing is declared and the shape follows from the value. */
  readonly isDeduced?: boolean;
}

/** What a scalar may hold. */
export type ScalarKind = "string" | "numeric" | "boolean" | "untyped";

/** A type that is compiled on first use, because types refer to themselves. */
export type LazyType = () => MergeType;

/** A list: replaced as a whole, or merged item by item. */
export interface ListShape {
  readonly isAtomic: boolean;
  /** Names of the fields that identify an item; empty in an atomic list and in a set, where the value does. */
  readonly keys: readonly string[];
  readonly item: LazyType;
}

/** A struct or map: replaced as a whole, or merged field by field. */
export interface MapShape {
  readonly isAtomic: boolean;
  readonly fields: ReadonlyMap<string, StructField>;
  /** The type of members that no field declares; absent if there may be none. */
  readonly rest?: LazyType;
}

/** A declared field. */
export interface StructField {
  readonly element: PathElement;
  readonly type: LazyType;
  /** The schema's default; it only completes the keys of list items. */
  readonly default?: JsonValue;
}

/** The shape that is in use; "any" is a null or absent value of a type with several shapes. */
export type Shape = "map" | "list" | "scalar" | "any";

const deducedLazy: LazyType = () => deducedType;

/** The type of undeclared values: scalars as they come, lists atomic, maps merged key by key. */
export const deducedType: MergeType = {
  scalar: "untyped",
  list: { isAtomic: true, keys: [], item: deducedLazy },
  map: { isAtomic: false, fields: new Map(), rest: deducedLazy },
  isDeduced: true,
};

/** The type of values that are always replaced as a whole. */
export const untypedAtomicType: MergeType = {
  scalar: "untyped",
  list: { isAtomic: true, keys: [], item: () => untypedAtomicType },
  map: { isAtomic: true, fields: new Map(), rest: () => untypedAtomicType },
};

/** Gives the type of a member; undeclared members of a closed struct count as deduced. */
export function memberType(map: MapShape, name: string): MergeType {
  return map.fields.get(name)?.type() ?? map.rest?.() ?? deducedType;
}

/** Picks the shape of `type` that fits the value. */
export function shapeFor(type: MergeType, value: JsonValue | undefined): Shape {
  const fitting = shapeOfValue(value);
  if (fitting !== undefined && type[fitting] !== undefined) return fitting;
  const shapes = (["map", "scalar", "list"] as const).filter((shape) => type[shape] !== undefined);
  return shapes.length === 1 ? (shapes[0] as Shape) : "any";
}

/** Replaces "any" by the shape that Kubernetes prefers: map, then scalar, then list. */
export function definiteShape(type: MergeType, shape: Shape): "map" | "list" | "scalar" {
  if (shape !== "any") return shape;
  return type.map !== undefined ? "map" : type.scalar !== undefined ? "scalar" : "list";
}

function shapeOfValue(value: JsonValue | undefined): "map" | "list" | "scalar" | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "object") return "scalar";
  return Array.isArray(value) ? "list" : "map";
}
