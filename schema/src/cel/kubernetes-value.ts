// The evaluator has no place for types of others, so a value of a type of Kubernetes is a map that says what it is.
import type { CelFunc, CelListType, CelMap, CelMapType, CelValue } from "@bufbuild/cel";
import type { Library } from "./library.js";

/** Makes the functions of a library of Kubernetes. */
export type FunctionsOf = (library: Library) => readonly CelFunc[];

type Scalars = Library["CelScalar"];

/** The types that functions are declared with. */
type Types = Scalars & {
  readonly MAP: CelMapType<Scalars["DYN"], Scalars["DYN"]>;
  readonly LIST: CelListType<Scalars["DYN"]>;
};

/** Returns the types that functions are declared with. */
export function typesOf({ CelScalar, mapType, listType }: Library): Types {
  return { ...CelScalar, MAP: mapType(CelScalar.DYN, CelScalar.DYN), LIST: listType(CelScalar.DYN) };
}

/** The member of such a map that says what it is. */
export const KIND = "@kind";

/** Returns a value of a type of Kubernetes; those with the same fields are equal. */
export function valueOfKind(
  { celMap }: Library,
  kind: string,
  fields: { readonly [name: string]: string | bigint | boolean },
): CelMap {
  return celMap(new Map<string, string | bigint | boolean>([[KIND, kind], ...Object.entries(fields)]));
}

/** Returns the type of a value of a type of Kubernetes; undefined for a map of the object's own. */
export function kindOf(value: CelMap): CelValue | undefined {
  return value.get(KIND);
}

/** Returns a field of a value of a type of Kubernetes; throws if it is of another type. */
export function fieldOf<Field extends CelValue>(value: CelMap, kind: string, field: string): Field {
  if (kindOf(value) !== kind) throw new Error(`no such overload: the value is no ${kind}`);
  return value.get(field) as Field;
}
