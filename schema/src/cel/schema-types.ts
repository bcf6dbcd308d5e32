// The CEL types that a schema declares and the maximum sizes of their values, as SchemaDeclType of k8s.io/apiserver/pkg/cel/common derives them. A
// size is bounded by the maximum size of a request.
import { followRef, type Definitions, type Schema } from "../values/schema.js";
import { DYN, type CheckedType } from "./check/types.js";
import { escapeName, isPlainlyNamed, resourceFields } from "./fields.js";

const FORMAT_TYPES: { readonly [format: string]: CheckedType } = {
  byte: { kind: "bytes" },
  duration: { kind: "duration" },
  date: { kind: "timestamp" },
  "date-time": { kind: "timestamp" },
};
const SCALAR_TYPES: { readonly [type: string]: CheckedType } = {
  boolean: { kind: "bool" },
  integer: { kind: "int" },
  number: { kind: "double" },
};

/** The location of a schema. kube-apiserver adds a different number to the name of the type each time. */
interface SchemaPlace {
  readonly isRoot?: boolean;
  readonly name?: string;
  /** The references that the schema is nested in. */
  readonly within?: readonly string[];
}

/** Returns the CEL type of the values of a schema; undefined if expressions cannot access them. */
export function typeOfSchema(
  given: Schema,
  definitions: Definitions,
  { isRoot = false, name = "selfType", within = [] }: SchemaPlace = {},
): CheckedType | undefined {
  const ref = refOf(given);
  // A recursive reference has no fields.
  if (ref !== undefined && within.includes(ref)) return { kind: "object", name, field: () => undefined };
  const schema = resolved(given, definitions);
  if (schema["x-kubernetes-int-or-string"] === true || schema.format === "int-or-string") return DYN;
  const scalar = SCALAR_TYPES[schema.type ?? ""];
  if (scalar !== undefined) return scalar;
  if (schema.type === "string") return FORMAT_TYPES[schema.format ?? ""] ?? { kind: "string" };
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

// Kubernetes wraps a reference in an `allOf` with one element to add a description.
function refOf({ $ref, allOf = [] }: Schema): string | undefined {
  return $ref ?? (allOf.length === 1 ? allOf[0]?.$ref : undefined);
}

function resolved(schema: Schema, definitions: Definitions): Schema {
  const ref = refOf(schema);
  return (ref === undefined ? undefined : definitions[ref]) ?? schema;
}

/** The maximum sizes of the values of a schema. */
export interface SizedType {
  /** The maximum number of bytes of a string, elements of a list, or entries of a map; 0 for a value without a size. */
  readonly max: number;
  /** The minimum size of a value in JSON, in bytes. */
  readonly minBytes: number;
  readonly element?: SizedType;
  readonly key?: SizedType;
  readonly fields?: ReadonlyMap<string, SizedType>;
}

/** The maximum size of a request body in bytes. */
export const LARGEST_REQUEST = 3 * 1024 * 1024;

const LONGEST_TEXT = LARGEST_REQUEST - 2;
const BYTES_PER_CHARACTER = 4;
const FORMAT_SIZES: { readonly [format: string]: SizedType } = {
  duration: { max: 32, minBytes: 3 },
  date: { max: 12, minBytes: 12 },
  "date-time": { max: 32, minBytes: 21 },
};
const SCALAR_SIZES: { readonly [type: string]: SizedType } = {
  boolean: { max: 0, minBytes: 4 },
  integer: { max: 0, minBytes: 1 },
  number: { max: 0, minBytes: 1 },
};

/** Returns the maximum sizes of the values of a schema; undefined if expressions cannot access them. */
export function sizedTypeOf(given: Schema, definitions: Definitions, isRoot = false): SizedType | undefined {
  const schema = followRef(given, definitions);
  const { maxLength, maxItems, maxProperties, items, additionalProperties } = schema;
  const longest = maxLength === undefined ? LONGEST_TEXT : Math.max(0, maxLength) * BYTES_PER_CHARACTER;
  if (schema["x-kubernetes-int-or-string"] === true) return { max: longest, minBytes: 1 };
  const known =
    SCALAR_SIZES[schema.type ?? ""] ?? (schema.type === "string" ? FORMAT_SIZES[schema.format ?? ""] : undefined);
  if (known !== undefined) return known;
  if (schema.type === "string") return { max: textSizeOf(schema, longest), minBytes: 2 };
  if (schema.type === "array") {
    const element = items === undefined ? undefined : sizedTypeOf(items, definitions, isResource(items));
    if (element === undefined) return undefined;
    const max = maxItems === undefined ? Math.floor(LONGEST_TEXT / (element.minBytes + 1)) : Math.max(0, maxItems);
    return { max, minBytes: 2, element };
  }
  if (schema.type !== "object") return undefined;
  if (typeof additionalProperties === "object") {
    const element = sizedTypeOf(additionalProperties, definitions, isResource(additionalProperties));
    if (element === undefined) return undefined;
    const most = Math.floor(LONGEST_TEXT / (element.minBytes + 6));
    const max = maxProperties === undefined ? most : Math.max(0, maxProperties);
    // Keys have no size limit of their own.
    return { max, minBytes: 2, key: { max: 0, minBytes: 2 }, element };
  }
  return sizedObject(schema, definitions, isRoot);
}

function sizedObject(schema: Schema, definitions: Definitions, isRoot: boolean): SizedType {
  const fields = new Map<string, SizedType>();
  let minBytes = 2;
  for (const [name, member] of Object.entries(isRoot ? resourceFields(schema.properties) : (schema.properties ?? {}))) {
    const type = sizedTypeOf(member, definitions, isResource(member));
    if (type === undefined) continue;
    const escaped = escapeName(name);
    if (escaped !== undefined) fields.set(escaped, type);
    if (isPlainlyNamed(name)) fields.set(name, type);
    if (schema.required?.includes(name) === true && followRef(member, definitions).default === undefined)
      minBytes += Buffer.byteLength(name) + type.minBytes + 4;
  }
  return { max: 0, minBytes, fields };
}

function textSizeOf({ maxLength, format, enum: values }: Schema, longest: number): number {
  if (format === "byte") return maxLength === undefined ? LONGEST_TEXT : Math.max(0, maxLength);
  if (maxLength !== undefined || values === undefined || values.length === 0) return longest;
  return Math.max(0, ...values.map((value) => (typeof value === "string" ? Buffer.byteLength(value) : 0)));
}

function isResource(schema: Schema): boolean {
  return schema["x-kubernetes-embedded-resource"] === true;
}
