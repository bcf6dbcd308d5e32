// The evaluator does not support custom types, so a value of a Kubernetes CEL library is a map with a type name under KIND.
import type { CelFunc, CelListType, CelMap, CelMapType, CelValue } from "@bufbuild/cel";
import type { Library } from "./library.js";

/** Creates the functions of a CEL library. */
export type FunctionsOf = (library: Library) => readonly CelFunc[];

type Scalars = Library["CelScalar"];

/** The CEL types for function declarations. */
type Types = Scalars & {
  readonly MAP: CelMapType<Scalars["DYN"], Scalars["DYN"]>;
  readonly LIST: CelListType<Scalars["DYN"]>;
};

/** Returns the CEL types for function declarations. */
export function typesOf({ CelScalar, mapType, listType }: Library): Types {
  return { ...CelScalar, MAP: mapType(CelScalar.DYN, CelScalar.DYN), LIST: listType(CelScalar.DYN) };
}

/** The map key of the type name. */
export const KIND = "@kind";

/** Creates a value of a Kubernetes CEL library. Values of the same kind with equal fields are equal. */
export function valueOfKind(
  { celMap }: Library,
  kind: string,
  fields: { readonly [name: string]: string | bigint | boolean },
): CelMap {
  return celMap(new Map<string, string | bigint | boolean>([[KIND, kind], ...Object.entries(fields)]));
}

/** Returns the type name of a value of a Kubernetes CEL library; undefined for any other map. */
export function kindOf(value: CelMap): CelValue | undefined {
  return value.get(KIND);
}

/** Returns a field of a value of a Kubernetes CEL library; throws if the value is of another kind. */
export function fieldOf<Field extends CelValue>(value: CelMap, kind: string, field: string): Field {
  if (kindOf(value) !== kind) throw new Error(`no such overload: the value is not of type ${kind}`);
  return value.get(field) as Field;
}
