import type { JsonValue } from "@gen-operator/runtime/codegen";

/** The types of the runtime that a field may have. */
export type RuntimeTypeName = "IntOrString" | "ObjectMeta" | "StatusCondition";

/** The type of a field or of an item, with every spelling of Kubernetes resolved. */
export type TypeModel = (
  | { readonly kind: "scalar"; readonly type: "string" | "integer" | "number" | "boolean" }
  | { readonly kind: "enum"; readonly values: readonly (string | number | boolean)[] }
  | { readonly kind: "array"; readonly items: TypeModel }
  | { readonly kind: "map"; readonly values: TypeModel }
  /** An object with named fields: an entry of `shapes`. */
  | { readonly kind: "shape"; readonly name: string }
  | { readonly kind: "runtime"; readonly name: RuntimeTypeName; readonly isPartial?: boolean }
  /** Any JSON. */
  | { readonly kind: "any" }
  /** No value at all, as of the fields of an object whose fields the API server drops. */
  | { readonly kind: "never" }
) & { readonly isNullable?: boolean };

/** A field of an object. */
export interface FieldModel {
  readonly name: string;
  readonly type: TypeModel;
  /** Whether a reader always finds it: the schema demands it, or the API server fills it in. */
  readonly isRequired: boolean;
  /** Absent unless the API server fills in a value. */
  readonly default?: JsonValue;
  /** The lines of its documentation; may be empty. */
  readonly doc: readonly string[];
}

/** The shape that a shape for writers is derived from, and where the two differ. */
export interface BaseModel {
  /** The name of the shape for readers. */
  readonly name: string;
  /** The fields that a writer may leave out, or that have another type for writers. */
  readonly redeclared: readonly string[];
}

/** An object with named fields. */
export interface ShapeModel {
  readonly name: string;
  /** All of them, those of `base` as well. */
  readonly fields: readonly FieldModel[];
  readonly base?: BaseModel;
  /** Whether fields that the schema does not know are kept. */
  readonly isOpen: boolean;
  readonly doc: readonly string[];
}

/** The schema of a kind, normalised: flat shapes that refer to each other by name. */
export interface NormalisedSchema {
  readonly className: string;
  /** The fields besides apiVersion, kind and metadata. */
  readonly root: ShapeModel;
  /** In order of their first appearance. */
  readonly shapes: readonly ShapeModel[];
  readonly names: ReadonlySet<string>;
}
