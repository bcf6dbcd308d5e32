// The types of CEL as far as a schema declares them; what is not known is dyn, and fits everywhere.
import type { Definitions } from "../../values/fill-defaults.js";
import { followRef } from "../../values/fill-defaults.js";
import type { Schema } from "../../values/schema.js";
import { escapeName, isPlainlyNamed } from "../rules/escape-name.js";
import { resourceFields } from "../rules/resource-fields.js";

/** A type of CEL. An object has the fields of its schema, by the names that expressions call them. */
export type CheckedType =
  | {
      readonly kind:
        "dyn" | "null" | "bool" | "int" | "uint" | "double" | "string" | "bytes" | "timestamp" | "duration";
    }
  | { readonly kind: "list" | "optional"; readonly element: CheckedType }
  | { readonly kind: "map"; readonly key: CheckedType; readonly element: CheckedType }
  /** What `Object{…}` and `JSONPatch{…}` of a mutating policy construct. */
  | { readonly kind: "message"; readonly name: string }
  | { readonly kind: "object"; readonly field: (name: string) => CheckedType | undefined };

/** What nothing is known of. */
export const DYN: CheckedType = { kind: "dyn" };

const TEXTS: { readonly [format: string]: CheckedType } = {
  byte: { kind: "bytes" },
  duration: { kind: "duration" },
  date: { kind: "timestamp" },
  "date-time": { kind: "timestamp" },
};
const SCALARS: { readonly [type: string]: CheckedType } = {
  boolean: { kind: "bool" },
  integer: { kind: "int" },
  number: { kind: "double" },
};

/** Returns the type of the values of a schema; undefined if expressions cannot see them. */
export function typeOfSchema(given: Schema, definitions: Definitions, isRoot = false): CheckedType | undefined {
  const schema = followRef(given, definitions);
  if (schema["x-kubernetes-int-or-string"] === true) return DYN;
  const scalar = SCALARS[schema.type ?? ""];
  if (scalar !== undefined) return scalar;
  if (schema.type === "string") return TEXTS[schema.format ?? ""] ?? { kind: "string" };
  if (schema.type === "array") {
    const element = schema.items === undefined ? undefined : typeOfSchema(schema.items, definitions);
    return element === undefined ? undefined : { kind: "list", element };
  }
  if (schema.type !== "object") return undefined;
  const { properties, additionalProperties } = schema;
  if (typeof additionalProperties === "object") {
    const element = typeOfSchema(additionalProperties, definitions);
    return element === undefined ? undefined : { kind: "map", key: { kind: "string" }, element };
  }
  const isResource = isRoot || schema["x-kubernetes-embedded-resource"] === true;
  const fields = isResource ? resourceFields(properties) : (properties ?? {});
  const named = Object.entries(fields);
  const byName = new Map([
    ...named.filter(([name]) => isPlainlyNamed(name)),
    ...named.map(([name, field]) => [escapeName(name), field] as const),
  ]);
  return {
    kind: "object",
    field(name) {
      const field = byName.get(name);
      return field === undefined ? undefined : typeOfSchema(field, definitions);
    },
  };
}

/** Returns the name of a type as kube-apiserver writes it. */
export function nameOfType(type: CheckedType): string {
  switch (type.kind) {
    case "list":
      return `list(${nameOfType(type.element)})`;
    case "map":
      return `map(${nameOfType(type.key)}, ${nameOfType(type.element)})`;
    case "optional":
      return `optional_type(${nameOfType(type.element)})`;
    case "null":
      return "null_type";
    case "message":
      return type.name;
    default:
      return type.kind;
  }
}

const MAY_BE_NULL: ReadonlySet<string> = new Set(["null", "object", "message", "optional"]);

/** Tells whether two types can be those of one value. */
export function canBeSame(one: CheckedType, other: CheckedType): boolean {
  const kinds = [one.kind, other.kind];
  if (kinds.includes("dyn")) return true;
  if (kinds.includes("null")) return kinds.every((kind) => MAY_BE_NULL.has(kind));
  if (one.kind !== other.kind) return false;
  if (one.kind === "message") return one.name === (other as typeof one).name;
  return "element" in one && "element" in other ? canBeSame(one.element, other.element) : true;
}
