import { invalidError, type FieldError } from "./field-error.js";
import { floatText } from "./go-format.js";
import { memberOf } from "../json/json.js";
import { brokenNumberRule, brokenRule, unattributed } from "./schema-messages.js";
import { comparedLimit, fitsFormat, isInt64, isMultipleOf } from "../values/numbers.js";
import type { Schema } from "../values/schema.js";
import type { StructuralSchema } from "./structural-schema.js";

const MINIMUM = ["Minimum", "should be greater than", -1] as const;
const MAXIMUM = ["Maximum", "should be less than", 1] as const;

/** Checks range, multipleOf, minimum and maximum of a number. */
export function checkNumber(schema: StructuralSchema, path: string, value: number): FieldError[] {
  const { multipleOf, minimum, maximum } = schema;
  const errors: FieldError[] = [];
  const fits = (what: string, number: number) => {
    const isFit = fitsFormat(number, schema as Schema);
    if (!isFit) errors.push(unattributed(`${what} must be of type ${formatText(schema)} in ${path}`));
    return isFit;
  };
  fits("Checked value", value);
  if (typeof multipleOf === "number") errors.push(...checkMultiple(multipleOf, path, value));
  const check = (bound: number, isExclusive: boolean, [what, words, sign]: typeof MINIMUM | typeof MAXIMUM) => {
    const isFloat = !fits(`${what} boundary value`, bound) || !isInt64(value);
    const limit = comparedLimit(value, bound, schema as Schema);
    const compared = { bound: limit, text: isFloat ? floatText(limit) : String(limit), isFloat };
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
  return isMultipleOf(value, factor) === true
    ? []
    : [brokenRule(path, value, `should be a multiple of ${floatText(factor)}`)];
}
