// Validates the type and metadata of embedded resources (`x-kubernetes-embedded-resource`).
import { invalidError, requiredError, type FieldError } from "./field-error.js";
import { isJsonObject, memberOf, objectAt, sortedJson, type JsonObject, type JsonValue } from "../json/json.js";
import { kindProblem } from "../strings/names.js";
import { itemSchema, memberPathOf, memberSchema, type StructuralSchema } from "./structural-schema.js";

/** Validation of ObjectMeta, which the caller provides. */
export interface MetadataRules {
  /** Returns why metadata cannot be decoded to ObjectMeta; undefined if it can. */
  misfitOf(metadata: JsonValue): string | undefined;
  /** Validates metadata that can be decoded. */
  check(metadata: JsonObject, path: string): FieldError[];
}

interface EmbeddedOptions {
  readonly path?: string;
  readonly metadata: MetadataRules;
}

/** Validates that embedded resources have an apiVersion and a kind, and validates their metadata. */
export function checkEmbeddedResources(
  schema: StructuralSchema,
  value: JsonValue,
  { path = "", metadata }: EmbeddedOptions,
): FieldError[] {
  if (Array.isArray(value)) {
    const items = itemSchema(schema);
    return items
      ? value.flatMap((item, index) => checkEmbeddedResources(items, item, { path: `${path}[${index}]`, metadata }))
      : [];
  }
  if (!isJsonObject(value)) return [];
  const own = schema["x-kubernetes-embedded-resource"] === true ? checkTypeMeta(value, path, metadata) : [];
  const below = Object.keys(value).flatMap((name) => {
    const inner = memberSchema(schema, name);
    return inner
      ? checkEmbeddedResources(inner, value[name] as JsonValue, { path: memberPathOf(schema, path, name), metadata })
      : [];
  });
  return [...own, ...below];
}

/** Returns the error of the first embedded resource whose type or metadata cannot be decoded. */
export function misfitOfEmbedded(
  schema: StructuralSchema,
  value: JsonValue,
  { path = "", metadata }: EmbeddedOptions,
): FieldError | undefined {
  if (Array.isArray(value)) {
    const items = itemSchema(schema);
    return (
      items &&
      firstDefined(value, (item, index) => misfitOfEmbedded(items, item, { path: `${path}[${index}]`, metadata }))
    );
  }
  if (!isJsonObject(value)) return undefined;
  const own =
    schema["x-kubernetes-embedded-resource"] === true ? misfitOf(schema, value, { path, metadata }) : undefined;
  return (
    own ??
    firstDefined(Object.keys(value), (name) => {
      const inner = memberSchema(schema, name);
      return (
        inner && misfitOfEmbedded(inner, value[name] as JsonValue, { path: memberPathOf(schema, path, name), metadata })
      );
    })
  );
}

function misfitOf(
  schema: StructuralSchema,
  object: JsonObject,
  { path = "", metadata: rules }: EmbeddedOptions,
): FieldError | undefined {
  const odd = firstDefined(["kind", "apiVersion"], (name) => {
    const value = memberOf(object, name);
    if (value === undefined || typeof value === "string") return undefined;
    // A null that is not nullable counts as absent.
    const declared = value === null ? memberSchema(schema, name) : undefined;
    if (declared !== undefined && declared["nullable"] !== true) return undefined;
    return invalidError(childPath(path, name), value, "must be a string");
  });
  const metadata = memberOf(object, "metadata") ?? null;
  if (odd !== undefined || metadata === null) return odd;
  const misfit = rules.misfitOf(metadata);
  return misfit === undefined ? undefined : invalidError(childPath(path, "metadata"), sortedJson(metadata), misfit);
}

function childPath(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

function firstDefined<Item, Result>(
  items: readonly Item[],
  map: (item: Item, index: number) => Result | undefined,
): Result | undefined {
  for (const [index, item] of items.entries()) {
    const result = map(item, index);
    if (result !== undefined) return result;
  }
  return undefined;
}

function checkTypeMeta(object: JsonObject, path: string, metadata: MetadataRules): FieldError[] {
  return [
    ...checkMember({ field: childPath(path, "apiVersion"), value: memberOf(object, "apiVersion") }, checkApiVersion),
    ...checkMember({ field: childPath(path, "kind"), value: memberOf(object, "kind") }, kindProblem),
    ...metadata.check(objectAt(object, "metadata") ?? {}, childPath(path, "metadata")),
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
