// How large the values of a schema can be, if a request has nothing else (k8s.io/apiserver/pkg/cel/common).
import { followRef, type Definitions, type Schema } from "../values/schema.js";
import { escapeName, isPlainlyNamed } from "./fields.js";
import { resourceFields } from "./resource-fields.js";

/** The sizes of the values of a schema. */
export interface SizedType {
  /** How many characters, items or members there can be; 0 for what has no size. */
  readonly max: number;
  /** How many bytes a value takes at least. */
  readonly minBytes: number;
  readonly element?: SizedType;
  readonly key?: SizedType;
  readonly fields?: ReadonlyMap<string, SizedType>;
}

/** The largest request. */
export const LARGEST_REQUEST = 3 * 1024 * 1024;

const LONGEST_TEXT = LARGEST_REQUEST - 2;
const BYTES_PER_CHARACTER = 4;
const FORMATS: { readonly [format: string]: SizedType } = {
  duration: { max: 32, minBytes: 3 },
  date: { max: 12, minBytes: 12 },
  "date-time": { max: 32, minBytes: 21 },
};
const SCALARS: { readonly [type: string]: SizedType } = {
  boolean: { max: 0, minBytes: 4 },
  integer: { max: 0, minBytes: 1 },
  number: { max: 0, minBytes: 1 },
};

/** Returns the sizes of the values of a schema; undefined if expressions cannot see them. */
export function sizedTypeOf(given: Schema, definitions: Definitions, isRoot = false): SizedType | undefined {
  const schema = followRef(given, definitions);
  const { maxLength, maxItems, maxProperties, items, additionalProperties } = schema;
  const longest = maxLength === undefined ? LONGEST_TEXT : Math.max(0, maxLength) * BYTES_PER_CHARACTER;
  if (schema["x-kubernetes-int-or-string"] === true) return { max: longest, minBytes: 1 };
  const known = SCALARS[schema.type ?? ""] ?? (schema.type === "string" ? FORMATS[schema.format ?? ""] : undefined);
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
    // A key has no bound of its own.
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
