import { invalidError, type FieldError } from "../../errors/field-error.js";
import { memberOf } from "../../json.js";
import { brokenRule, numberText, unattributed } from "../check/schema-messages.js";
import { isInt64 } from "../types.js";
import type { StructuralSchema } from "./structural.js";

const INT32_LIMIT = 2 ** 31;
const INT64_LIMIT = 2 ** 63;
const FLOAT32_MAX = 3.4028234663852886e38;

/** Checks range, multipleOf, minimum and maximum of a number. */
export function checkNumber(schema: StructuralSchema, path: string, value: number): FieldError[] {
  const { multipleOf, minimum, maximum } = schema;
  const errors: FieldError[] = [];
  if (!fitsFormat(schema, value)) {
    errors.push(unattributed(`Checked value must be of type ${formatText(schema)} in ${path}`));
  }
  if (typeof multipleOf === "number") errors.push(...checkMultiple(multipleOf, path, value));
  if (typeof minimum === "number") {
    const isExclusive = schema["exclusiveMinimum"] === true;
    const bound = comparableBound(value, minimum);
    const rule = isExclusive ? "should be greater than" : "should be greater than or equal to";
    if (value < bound || (isExclusive && value === bound)) {
      errors.push(brokenRule(path, value, `${rule} ${numberText(bound)}`));
    }
  }
  if (typeof maximum === "number") {
    const isExclusive = schema["exclusiveMaximum"] === true;
    const bound = comparableBound(value, maximum);
    const rule = isExclusive ? "should be less than" : "should be less than or equal to";
    if (value > bound || (isExclusive && value === bound)) {
      errors.push(brokenRule(path, value, `${rule} ${numberText(bound)}`));
    }
  }
  return errors;
}

// Kubernetes compares integers with the bound as an int64: without its fraction, and the least int64 if it does not fit.
function comparableBound(value: number, bound: number): number {
  if (!isInt64(value)) return bound;
  return isInt64(Math.trunc(bound)) ? Math.trunc(bound) : -INT64_LIMIT;
}

function fitsFormat(schema: StructuralSchema, value: number): boolean {
  const format = memberOf(schema, "format");
  if (schema["type"] === "integer") {
    const limit = format === "int32" ? INT32_LIMIT : INT64_LIMIT;
    return Number.isInteger(value) && value >= -limit && value < limit;
  }
  return format !== "float" || Math.abs(value) <= FLOAT32_MAX;
}

function formatText(schema: StructuralSchema): string {
  const format = memberOf(schema, "format");
  const type = String(schema["type"]);
  return typeof format === "string" && format !== "" ? `${type} with format ${format}` : `${type} (default format)`;
}

function checkMultiple(factor: number, path: string, value: number): FieldError[] {
  const whole = Math.trunc(factor);
  if (isInt64(value) && whole <= 0) {
    return [invalidError(path, whole, `factor MultipleOf declared for ${path} must be positive: ${whole}`)];
  }
  const quotient = factor < 1 ? (1 / factor) * value : value / factor;
  const isMultiple = isInt64(value) ? value % whole === 0 : isJsonInteger(quotient);
  return isMultiple ? [] : [brokenRule(path, value, `should be a multiple of ${numberText(factor)}`)];
}

// An integer up to rounding errors that a JSON number can hold exactly.
function isJsonInteger(value: number): boolean {
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER) return false;
  const integer = Math.round(value);
  return value === integer || Math.abs(value - integer) / (Math.abs(value) + Math.abs(integer)) < 1e-9;
}
