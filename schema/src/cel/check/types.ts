// The types of CEL as far as a schema declares them; what is not known is dyn, and fits everywhere.
import type { Definitions, Schema } from "../../values/schema.js";
import { escapeName, isPlainlyNamed } from "../fields.js";
import { resourceFields } from "../resource-fields.js";

/** A type of CEL. */
export type CheckedType =
  | {
      readonly kind:
        "dyn" | "null" | "bool" | "int" | "uint" | "double" | "string" | "bytes" | "timestamp" | "duration";
    }
  /** That of an expression that is wrong; it fits everywhere. */
  | { readonly kind: "error" }
  | { readonly kind: "list" | "optional"; readonly element: CheckedType }
  /** The type of a type, which is a value, too. */
  | { readonly kind: "type"; readonly of?: CheckedType }
  | { readonly kind: "map"; readonly key: CheckedType; readonly element: CheckedType }
  /** A type of Kubernetes, such as `net.IP`. */
  | { readonly kind: "opaque"; readonly name: string }
  /** What a function's type leaves open. */
  | { readonly kind: "parameter"; readonly name: string }
  /** An object has the fields of its schema, by the names that expressions call them. */
  | { readonly kind: "object"; readonly name: string; readonly field: (name: string) => CheckedType | undefined };

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

/** Where a schema stands; kube-apiserver adds a number to the name, another one each time. */
interface SchemaPlace {
  readonly isRoot?: boolean;
  readonly name?: string;
  /** The references that it is inside of. */
  readonly within?: readonly string[];
}

/** Returns the type of the values of a schema; undefined if expressions cannot see them. */
export function typeOfSchema(
  given: Schema,
  definitions: Definitions,
  { isRoot = false, name = "selfType", within = [] }: SchemaPlace = {},
): CheckedType | undefined {
  const ref = refOf(given);
  // What is inside of itself has no fields there.
  if (ref !== undefined && within.includes(ref)) return { kind: "object", name, field: () => undefined };
  const schema = resolved(given, definitions);
  if (schema["x-kubernetes-int-or-string"] === true || schema.format === "int-or-string") return DYN;
  const scalar = SCALARS[schema.type ?? ""];
  if (scalar !== undefined) return scalar;
  if (schema.type === "string") return TEXTS[schema.format ?? ""] ?? { kind: "string" };
  const inside = (inner: Schema, step: string) =>
    typeOfSchema(inner, definitions, {
      name: `${name}.${step}`,
      within: ref === undefined ? within : [...within, ref],
    });
  if (schema.type === "array") {
    const element = schema.items === undefined ? undefined : inside(schema.items, "@idx");
    return element === undefined ? undefined : { kind: "list", element };
  }
  if (schema.type !== "object") return undefined;
  const { properties, additionalProperties } = schema;
  if (typeof additionalProperties === "object") {
    const element = inside(additionalProperties, "@elem");
    return element === undefined ? undefined : { kind: "map", key: { kind: "string" }, element };
  }
  const isResource = isRoot || schema["x-kubernetes-embedded-resource"] === true;
  const metadata = isResource && properties?.["metadata"];
  const members = metadata ? { ...properties, metadata: resolved(metadata, definitions) } : properties;
  const fields = isResource ? resourceFields(members) : (members ?? {});
  const named = Object.entries(fields);
  const byName = new Map([
    ...named.filter(([field]) => isPlainlyNamed(field)),
    ...named.map(([field, of]) => [escapeName(field), of] as const),
  ]);
  return {
    kind: "object",
    name,
    field(step) {
      const field = byName.get(step);
      return field === undefined ? undefined : inside(field, step);
    },
  };
}

// A description is kept beside a reference by a list of one.
function refOf({ $ref, allOf = [] }: Schema): string | undefined {
  return $ref ?? (allOf.length === 1 ? allOf[0]?.$ref : undefined);
}

function resolved(schema: Schema, definitions: Definitions): Schema {
  const ref = refOf(schema);
  return (ref === undefined ? undefined : definitions[ref]) ?? schema;
}

const NAMES: { readonly [kind: string]: string } = { optional: "optional_type", error: "!error!" };
const LONG_NAMES: { readonly [kind: string]: string } = {
  null: "null_type",
  timestamp: "google.protobuf.Timestamp",
  duration: "google.protobuf.Duration",
};

/** Returns the name of a type as kube-apiserver writes it where types do not fit. */
export function nameOfType(type: CheckedType): string {
  if ("name" in type) return type.name;
  const name = NAMES[type.kind] ?? type.kind;
  const inner = parametersOf(type);
  return inner.length === 0 ? name : `${name}(${inner.map(nameOfType).join(", ")})`;
}

/** Returns the name of a type as kube-apiserver writes it of what an expression comes to. */
export function longNameOfType(type: CheckedType): string {
  if ("name" in type) return type.name;
  const name = LONG_NAMES[type.kind] ?? NAMES[type.kind] ?? type.kind;
  const inner = parametersOf(type);
  return inner.length === 0 ? name : `${name}(${inner.map(longNameOfType).join(", ")})`;
}

/** Returns the types that a type is made with. */
export function parametersOf(type: CheckedType): readonly CheckedType[] {
  if (type.kind === "map") return [type.key, type.element];
  if (type.kind === "type") return type.of === undefined ? [] : [type.of];
  return "element" in type ? [type.element] : [];
}

/** Returns a type made with other types. */
export function withParameters(type: CheckedType, [first = DYN, second = DYN]: readonly CheckedType[]): CheckedType {
  if (type.kind === "map") return { ...type, key: first, element: second };
  if (type.kind === "type") return { ...type, of: first };
  return "element" in type ? { ...type, element: first } : type;
}

/** Tells whether two types are the same. */
export function isSameType(one: CheckedType, other: CheckedType): boolean {
  if (one === other) return true;
  if (one.kind !== other.kind) return false;
  if ("name" in one) return one.name === (other as typeof one).name;
  const [inner, others] = [parametersOf(one), parametersOf(other)];
  return inner.length === others.length && inner.every((each, index) => isSameType(each, others[index]!));
}
