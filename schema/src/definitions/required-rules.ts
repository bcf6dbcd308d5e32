import type { JsonValue } from "../json/json.js";
import { notSupportedError, requiredError, type FieldError } from "./field-error.js";

/** Demands that text is there. */
export function checkRequired(field: string, value: JsonValue | undefined): FieldError[] {
  return value === undefined || value === null || value === "" ? [requiredError(field)] : [];
}

/** Demands that text, if given, is one of a few. */
export function checkOneOf(field: string, value: JsonValue | undefined, supported: string[]): FieldError[] {
  if (value === undefined || (typeof value === "string" && supported.includes(value))) return [];
  return [notSupportedError(field, value, supported)];
}

/** Demands text that is one of a few. */
export function checkRequiredOneOf(field: string, value: JsonValue | undefined, supported: string[]): FieldError[] {
  const missing = checkRequired(field, value);
  return missing.length > 0 ? missing : checkOneOf(field, value, supported);
}
