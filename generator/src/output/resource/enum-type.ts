import type { RawSchema } from "../../model/project-model.js";
import type { TypeModel } from "./shape-model.js";

/** Returns the union of the values of an enum; undefined if there is none, or if one of the values is no scalar. */
export function enumTypeOf(schema: RawSchema): TypeModel | undefined {
  const values = schema["enum"];
  if (!Array.isArray(values)) return undefined;
  const scalars = values.filter(isScalar);
  // A value of another type than the schema's can never be valid.
  const possible = [...new Set(scalars)].filter((value) => hasTypeOf(schema, value));
  if (possible.length === 0 || scalars.length + values.filter((value) => value === null).length < values.length)
    return undefined;
  return { kind: "enum", values: possible };
}

function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

function hasTypeOf(schema: RawSchema, value: string | number | boolean): boolean {
  const type = schema["type"];
  if (type === undefined) return true;
  return type === "integer" ? Number.isInteger(value) : type === typeof value;
}
