import { comparedLimit, fitsFormat, isInt64, isMultipleOf, isRoundedInt64 } from "./numbers.js";
import type { Schema } from "./schema.js";
import { hasFormat } from "../strings/formats.js";
import { hasMatch } from "../strings/pattern-part.js";

/** Reports a problem of a value. */
export type Fail = (message: string) => void;

/** The limits of a count, and what is counted. */
export type Limits = readonly [min: number | undefined, max: number | undefined, what: string];

/** Checks the range of a number. One beyond 2^53 is refused only if each int64 that is rounded to it is. */
export function checkNumber(value: number, schema: Schema, fail: Fail): void {
  const { minimum, maximum, multipleOf, format, type } = schema;
  const isRounded = isRoundedInt64(value);
  const fits = fitsFormat(value, schema) || (isRounded && format !== "int32");
  if (!fits) fail(`must fit into ${format ?? (type === "integer" ? "int64" : "double")}, is ${value}`);
  else if (schema["x-kubernetes-int-or-string"] === true && !isInt64(value) && !isRounded)
    fail(`must fit into int64, is ${value}`);
  for (const [keyword, limit] of Object.entries({ minimum, maximum }))
    if (limit !== undefined && !fitsFormat(limit, schema))
      fail(`is refused, as the ${keyword} ${limit} of the schema is no ${format ?? type ?? "number"}`);
  if (minimum !== undefined) {
    const least = comparedLimit(value, minimum, schema);
    if (value < least || (schema.exclusiveMinimum === true && value === least && !isRounded))
      fail(`must be ${schema.exclusiveMinimum === true ? "greater than" : "at least"} ${least}, is ${value}`);
  }
  if (maximum !== undefined) {
    const most = comparedLimit(value, maximum, schema);
    if (value > most || (schema.exclusiveMaximum === true && value === most && !isRounded))
      fail(`must be ${schema.exclusiveMaximum === true ? "less than" : "at most"} ${most}, is ${value}`);
  }
  const mayBeMultiple = isRounded && (multipleOf ?? 0) >= 1;
  if (multipleOf !== undefined && !mayBeMultiple && isMultipleOf(value, multipleOf) !== true)
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
