import type { RawSchema } from "./project-model.js";
import { isRecord } from "./schema/raw-schema.js";

const PREFIX = "#/components/schemas/";
const QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/** A schema whose reference, if it was one, is followed; `definition` is the full name of what it referred to. */
export interface ResolvedSchema {
  readonly schema: RawSchema;
  readonly definition?: string;
}

/**
 * Follows the reference of a schema to a built-in definition.
 *
 * OpenAPI 3.0 allows nothing beside `$ref`, so Kubernetes wraps it: `{ default: {}, allOf: [{ $ref }] }`. What stands beside it wins.
 */
export function resolveRef(raw: RawSchema, definitions: ReadonlyMap<string, RawSchema>): ResolvedSchema {
  const definition = definitionOf(raw);
  if (definition === undefined) return { schema: raw };
  if (definition === QUANTITY) return { schema: { format: "quantity" }, definition };
  if (definition === INT_OR_STRING) return { schema: { "x-kubernetes-int-or-string": true }, definition };
  const target = definitions.get(definition);
  if (target === undefined) return { schema: {}, definition };
  const { $ref: _ref, allOf: _allOf, ...beside } = raw;
  return { schema: { ...target, ...beside }, definition };
}

/** Returns the full name of the definition that a schema refers to. */
function definitionOf(raw: RawSchema): string | undefined {
  const allOf = raw["allOf"];
  const only: unknown = Array.isArray(allOf) && allOf.length === 1 ? allOf[0] : undefined;
  const ref = raw["$ref"] ?? (isRecord(only) ? only["$ref"] : undefined);
  return typeof ref === "string" && ref.startsWith(PREFIX) ? ref.slice(PREFIX.length) : undefined;
}

/** Tells whether a definition is the metadata of an object. */
export function isObjectMetaRef(definition: string): boolean {
  return definition === OBJECT_META;
}

/** Returns the last part of the full name of a definition: `PodSpec` of `io.k8s.api.core.v1.PodSpec`. */
export function shortNameOf(definition: string): string {
  return definition.slice(definition.lastIndexOf(".") + 1);
}

/**
 * Returns the default that the API server fills in.
 *
 * The OpenAPI of built-in kinds also states Go's zero values as defaults, which the server never writes.
 */
export function realDefaultOf(schema: RawSchema, isCustom: boolean): unknown {
  const value = schema["default"];
  if (isCustom) return value;
  const isZero = value === "" || value === 0 || value === false || (isRecord(value) && Object.keys(value).length === 0);
  return isZero ? undefined : value;
}
