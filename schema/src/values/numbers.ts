// Compares numbers with the limits of a schema as kube-openapi of Kubernetes 1.36 does: integers as int64, with fractions of limits truncated.
import type { Schema } from "./schema.js";

const INT32_LIMIT = 2 ** 31;
const INT64_LIMIT = 2 ** 63;
const FLOAT32_MAX = 3.4028234663852886e38;

/** The parts of a schema that determine the range of its numbers. */
type NumberFormat = Pick<Schema, "type" | "format">;

/** Returns whether Go decodes a number as int64. */
export function isInt64(value: number): boolean {
  return Number.isInteger(value) && Math.abs(value) < INT64_LIMIT;
}

/** Returns whether a number, or a limit of one, is within the range of its type and format. */
export function fitsFormat(value: number, { type, format }: NumberFormat): boolean {
  if (type === "integer") {
    const limit = format === "int32" ? INT32_LIMIT : INT64_LIMIT;
    return Number.isInteger(value) && value >= -limit && value < limit;
  }
  return format !== "float" || Math.abs(value) <= FLOAT32_MAX;
}

/** Returns the limit to compare a number with. For an integer, that is an int64; a limit out of range becomes the least int64. */
export function comparedLimit(value: number, limit: number, format: NumberFormat): number {
  if (!isInt64(value) || !fitsFormat(limit, format)) return limit;
  const integer = Math.trunc(limit);
  return isInt64(integer) ? integer : -INT64_LIMIT;
}

/** Returns whether a number is a multiple of a factor; undefined for an integer and a factor below 1, which the API server always rejects. */
export function isMultipleOf(value: number, factor: number): boolean | undefined {
  if (isInt64(value)) return Math.trunc(factor) <= 0 ? undefined : value % Math.trunc(factor) === 0;
  return isJsonInteger(factor < 1 ? (1 / factor) * value : value / factor);
}

// Tests for an integer within rounding errors that a JSON number can represent exactly.
function isJsonInteger(value: number): boolean {
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER) return false;
  const integer = Math.round(value);
  return value === integer || Math.abs(value - integer) / (Math.abs(value) + Math.abs(integer)) < 1e-9;
}
