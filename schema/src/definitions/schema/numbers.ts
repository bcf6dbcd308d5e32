import { invalidError, type FieldError } from "../errors/field-error.js";
import { floatText } from "../errors/go-format.js";
import { memberOf } from "../json.js";
import { brokenNumberRule, brokenRule, unattributed } from "../check/schema-messages.js";
import { isInt64 } from "../types.js";
import type { StructuralSchema } from "./structural.js";

const INT32_LIMIT = 2 ** 31;
const INT64_LIMIT = 2 ** 63;
const MINIMUM = ["Minimum", "should be greater than", -1] as const;
const MAXIMUM = ["Maximum", "should be less than", 1] as const;
const FLOAT32_MAX = 3.4028234663852886e38;

/** Checks range, multipleOf, minimum and maximum of a number. */
export function checkNumber(schema: StructuralSchema, path: string, value: number): FieldError[] {
  const { multipleOf, minimum, maximum } = schema;
  const errors: FieldError[] = [];
  const fits = (what: string, number: number) => {
    const isFit = fitsFormat(schema, number);
    if (!isFit) errors.push(unattributed(`${what} must be of type ${formatText(schema)} in ${path}`));
    return isFit;
  };
  fits("Checked value", value);
  if (typeof multipleOf === "number") errors.push(...checkMultiple(multipleOf, path, value));
  const check = (bound: number, isExclusive: boolean, [what, words, sign]: typeof MINIMUM | typeof MAXIMUM) => {
    const compared = comparisonOf(value, bound, { isFit: fits(`${what} boundary value`, bound) });
    const distance = (value - compared.bound) * sign;
    if (distance > 0 || (isExclusive && distance === 0)) {
      const valueText = compared.isFloat ? floatText(value) : String(value);
      errors.push(brokenNumberRule(path, valueText, `${words}${isExclusive ? "" : " or equal to"} ${compared.text}`));
    }
  };
  if (typeof minimum === "number") check(minimum, schema["exclusiveMinimum"] === true, MINIMUM);
  if (typeof maximum === "number") check(maximum, schema["exclusiveMaximum"] === true, MAXIMUM);
  return errors;
}

/** What is compared with a bound, and the texts of both. */
interface Comparison {
  bound: number;
  text: string;
  isFloat: boolean;
}

// Kubernetes compares integers with the bound as an int64, without its fraction, and with the least int64 if it is beyond them. Where the
// bound does not fit the format, both are floats.
function comparisonOf(value: number, bound: number, { isFit }: { isFit: boolean }): Comparison {
  if (!isInt64(value) || !isFit) return { bound, text: floatText(bound), isFloat: true };
  const integer = isInt64(Math.trunc(bound)) ? Math.trunc(bound) : -INT64_LIMIT;
  return { bound: integer, text: String(integer), isFloat: false };
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
  return isMultiple ? [] : [brokenRule(path, value, `should be a multiple of ${floatText(factor)}`)];
}

// An integer up to rounding errors that a JSON number can hold exactly.
function isJsonInteger(value: number): boolean {
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER) return false;
  const integer = Math.round(value);
  return value === integer || Math.abs(value - integer) / (Math.abs(value) + Math.abs(integer)) < 1e-9;
}
