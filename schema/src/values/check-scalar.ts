import type { Schema } from "./schema.js";
import { hasFormat } from "../texts/formats.js";
import { hasMatch } from "../texts/pattern.js";

/** Reports a problem of a value. */
export type Fail = (message: string) => void;

/** The limits of a count, and what is counted. */
export type Limits = readonly [min: number | undefined, max: number | undefined, what: string];

const FLOAT32_MAX = 3.4028234663852886e38;

/** Checks the range of a number. */
export function checkNumber(value: number, schema: Schema, fail: Fail): void {
  const { minimum, maximum, multipleOf } = schema;
  const isInteger = schema.type === "integer" || schema["x-kubernetes-int-or-string"] === true;
  const limit = isInteger ? (schema.format === "int32" ? 2 ** 31 : 2 ** 63) : Infinity;
  if (value < -limit || value >= limit) fail(`must fit into ${schema.format ?? "int64"}, is ${value}`);
  if (schema.format === "float" && Math.abs(value) > FLOAT32_MAX) fail(`must fit into float, is ${value}`);
  if (minimum !== undefined && (value < minimum || (schema.exclusiveMinimum === true && value === minimum)))
    fail(`must be ${schema.exclusiveMinimum === true ? "greater than" : "at least"} ${minimum}, is ${value}`);
  if (maximum !== undefined && (value > maximum || (schema.exclusiveMaximum === true && value === maximum)))
    fail(`must be ${schema.exclusiveMaximum === true ? "less than" : "at most"} ${maximum}, is ${value}`);
  if (multipleOf !== undefined && !isMultiple(value, multipleOf))
    fail(`must be a multiple of ${multipleOf}, is ${value}`);
}

/** Checks the length, pattern and format of a text. The API server counts code points. */
export function checkText(value: string, { minLength, maxLength, pattern, format }: Schema, fail: Fail): void {
  const isCounted = minLength !== undefined || maxLength !== undefined;
  if (isCounted) checkCount([...value].length, [minLength, maxLength, "characters"], fail);
  if (pattern !== undefined && hasMatch(value, pattern) === false) fail(`must match ${pattern}`);
  if (format !== undefined && hasFormat(value, format) === false) fail(`must be of format ${format}`);
}

/** Checks how many there are. */
export function checkCount(count: number, [min, max, what]: Limits, fail: Fail): void {
  if (min !== undefined && count < min) fail(`must have at least ${min} ${what}, has ${count}`);
  if (max !== undefined && count > max) fail(`must have at most ${max} ${what}, has ${count}`);
}

// As the API server, which forgives rounding errors: 0.3 is a multiple of 0.1.
function isMultiple(value: number, factor: number): boolean {
  const quotient = factor < 1 ? (1 / factor) * value : value / factor;
  const nearest = Math.round(quotient);
  if (Number.isInteger(value) && Number.isInteger(factor)) return value % factor === 0;
  return quotient === nearest || Math.abs(quotient - nearest) / (Math.abs(quotient) + Math.abs(nearest)) < 1e-9;
}
