import { invalidError, requiredError, type FieldError } from "../../errors/field-error.js";
import { isObject, memberOf, objectAt, type JsonObject, type JsonValue } from "../../json.js";
import { checkEmbeddedMeta } from "../../object/object-meta.js";
import { dns1035Problem } from "../check/names.js";
import { itemSchema, memberSchema, type StructuralSchema } from "./structural.js";

/** Checks that embedded resources name their type, and their metadata. */
export function checkEmbeddedResources(schema: StructuralSchema, value: JsonValue, path = ""): FieldError[] {
  if (Array.isArray(value)) {
    const items = itemSchema(schema);
    return items ? value.flatMap((item, index) => checkEmbeddedResources(items, item, `${path}[${index}]`)) : [];
  }
  if (!isObject(value)) return [];
  const own = schema["x-kubernetes-embedded-resource"] === true ? checkTypeMeta(value, path) : [];
  const below = Object.keys(value).flatMap((name) => {
    const inner = memberSchema(schema, name);
    return inner ? checkEmbeddedResources(inner, value[name] as JsonValue, path === "" ? name : `${path}.${name}`) : [];
  });
  return [...own, ...below];
}

/** Returns why the metadata of an embedded resource cannot be decoded, for the first that cannot. */
export function misfitOfEmbedded(
  schema: StructuralSchema,
  value: JsonValue,
  { decode, path = "" }: { decode: (metadata: JsonValue) => string | undefined; path?: string },
): string | undefined {
  if (Array.isArray(value)) {
    const items = itemSchema(schema);
    return (
      items &&
      firstDefined(value, (item, index) => misfitOfEmbedded(items, item, { decode, path: `${path}[${index}]` }))
    );
  }
  if (!isObject(value)) return undefined;
  const metadata = schema["x-kubernetes-embedded-resource"] === true ? (memberOf(value, "metadata") ?? null) : null;
  const odd = schema["x-kubernetes-embedded-resource"] === true ? oddTypeMeta(value, path) : undefined;
  if (odd !== undefined) return odd;
  const misfit = metadata === null ? undefined : decode(metadata);
  if (misfit !== undefined) return `${path}.metadata: Invalid value: ${JSON.stringify(metadata)}: ${misfit}`;
  return firstDefined(Object.keys(value), (name) => {
    const inner = memberSchema(schema, name);
    const below = { decode, path: path === "" ? name : `${path}.${name}` };
    return inner && misfitOfEmbedded(inner, value[name] as JsonValue, below);
  });
}

function oddTypeMeta(object: JsonObject, path: string): string | undefined {
  return firstDefined(["kind", "apiVersion"], (key) => {
    const value = memberOf(object, key) ?? "";
    return typeof value === "string"
      ? undefined
      : `${path}.${key}: Invalid value: ${JSON.stringify(value)}: must be a string`;
  });
}

function firstDefined<T>(items: readonly T[], map: (item: T, index: number) => string | undefined): string | undefined {
  for (const [index, item] of items.entries()) {
    const result = map(item, index);
    if (result !== undefined) return result;
  }
  return undefined;
}

function checkTypeMeta(object: JsonObject, path: string): FieldError[] {
  return [
    ...checkMember({ field: `${path}.apiVersion`, value: memberOf(object, "apiVersion") }, checkApiVersion),
    ...checkMember({ field: `${path}.kind`, value: memberOf(object, "kind") }, checkKind),
    ...checkEmbeddedMeta(objectAt(object, "metadata") ?? {}, `${path}.metadata`),
  ];
}

interface Member {
  field: string;
  value: JsonValue | undefined;
}

function checkMember({ field, value }: Member, check: (text: string) => string | undefined): FieldError[] {
  if (value === undefined) return [requiredError(field)];
  if (typeof value !== "string") return [invalidError(field, value, "must be a string")];
  const problem = value === "" ? "must not be empty" : check(value);
  return problem === undefined ? [] : [invalidError(field, value, problem)];
}

function checkApiVersion(text: string): string | undefined {
  return text.split("/").length > 2 ? `unexpected GroupVersion string: ${text}` : undefined;
}

function checkKind(text: string): string | undefined {
  const problem = dns1035Problem(text.toLowerCase());
  return problem === undefined ? undefined : `may have mixed case, but should otherwise match: ${problem}`;
}
