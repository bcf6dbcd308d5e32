// Field errors with the messages of k8s.io/apimachinery/pkg/util/validation/field, checks for required and supported values, and Go's formatting of
// values.
import { compareText, goJson, isJsonObject, type JsonValue } from "../json/json.js";
import { quote } from "../strings/escape.js";

/** The type of a field error, as the reason of a Status cause. */
export type FieldErrorReason =
  | "FieldValueRequired"
  | "FieldValueInvalid"
  | "FieldValueNotSupported"
  | "FieldValueForbidden"
  | "FieldValueTooLong"
  | "FieldValueTooMany"
  | "FieldValueDuplicate"
  | "FieldValueNotFound"
  | "FieldValueTypeInvalid"
  | "InternalError";

/** A validation error of one field. */
export interface FieldError {
  reason: FieldErrorReason;
  /** The path, such as `spec.list[0].key`. The root is "", printed as `<nil>`. */
  field: string;
  /** The message after the path, such as `Required value` or `Invalid value: -1: must be positive`. */
  message: string;
}

/** The path of the root that a few validations of Kubernetes use. */
export const WHOLE = "[]";

/** Reports a required field that is not set. */
export function requiredError(field: string, detail = ""): FieldError {
  return { reason: "FieldValueRequired", field, message: withDetail("Required value", detail) };
}

/** Reports an invalid value. */
export function invalidError(field: string, value: JsonValue, detail: string): FieldError {
  return { reason: "FieldValueInvalid", field, message: withDetail(`Invalid value: ${formatValue(value)}`, detail) };
}

/** Reports a value of the wrong JSON type. */
export function typeInvalidError(field: string, value: JsonValue, detail: string): FieldError {
  return { ...invalidError(field, value, detail), reason: "FieldValueTypeInvalid" };
}

/** Reports an unsupported value; lists the supported ones in the given order. A string has a named type in Go here, so it is formatted as JSON. */
export function notSupportedError(field: string, value: JsonValue, supported: readonly string[]): FieldError {
  return unsupported(field, typeof value === "string" ? goJson(value) : formatValue(value), supported);
}

/** Reports an unsupported value of a field that is a plain string in Go. */
export function textNotSupportedError(field: string, text: string, supported: readonly string[]): FieldError {
  return unsupported(field, quote(text), supported);
}

function unsupported(field: string, shown: string, supported: readonly string[]): FieldError {
  const detail = supported.length > 0 ? `supported values: ${supported.map(quote).join(", ")}` : "";
  return { reason: "FieldValueNotSupported", field, message: withDetail(`Unsupported value: ${shown}`, detail) };
}

/** Reports a field that must not be set, or not to this value. */
export function forbiddenError(field: string, detail = ""): FieldError {
  return { reason: "FieldValueForbidden", field, message: withDetail("Forbidden", detail) };
}

/** Reports a string of more than `maxBytes` bytes. */
export function tooLongError(field: string, maxBytes: number): FieldError {
  return { reason: "FieldValueTooLong", field, message: `Too long: may not be more than ${maxBytes} bytes` };
}

/** Reports a list or map of more than `max` items. */
export function tooManyError(field: string, count: number, max: number): FieldError {
  const items = max === 1 ? "item" : "items";
  return { reason: "FieldValueTooMany", field, message: `Too many: ${count}: must have at most ${max} ${items}` };
}

/** Reports a duplicate value. */
export function duplicateError(field: string, value: JsonValue): FieldError {
  return { reason: "FieldValueDuplicate", field, message: `Duplicate value: ${formatValue(value)}` };
}

/** Reports an invalid or duplicate list or object without printing it. */
export function withoutValue(
  field: string,
  reason: "FieldValueInvalid" | "FieldValueDuplicate",
  detail = "",
): FieldError {
  const message = reason === "FieldValueInvalid" ? withDetail("Invalid value", detail) : "Duplicate value";
  return { reason, field, message };
}

/** Reports a reference to an object or entry that does not exist. */
export function notFoundError(field: string, value: JsonValue): FieldError {
  return { reason: "FieldValueNotFound", field, message: `Not found: ${formatValue(value)}` };
}

/** Reports a failure of the server that an otherwise valid value causes. */
export function internalError(field: string, detail: string): FieldError {
  return { reason: "InternalError", field, message: withDetail("Internal error", detail) };
}

/** Formats an error as Kubernetes does: the path, a colon, and the message. */
export function fieldErrorText(error: FieldError): string {
  return `${fieldErrorPath(error)}: ${error.message}`;
}

/** Returns the path as Kubernetes prints it and returns it in a Status cause. */
export function fieldErrorPath(error: FieldError): string {
  return error.field === "" ? "<nil>" : error.field;
}

/** Formats a value for an error message: strings quoted, numbers and booleans as they are, and everything else as compact JSON. */
export function formatValue(value: JsonValue): string {
  if (typeof value === "string") return quote(value);
  if (typeof value === "number" && !Number.isInteger(value)) return floatText(value);
  return goJson(value);
}

function withDetail(body: string, detail: string): string {
  return detail === "" ? body : `${body}: ${detail}`;
}

/** Requires a non-empty value. */
export function checkRequired(field: string, value: JsonValue | undefined): FieldError[] {
  return value === undefined || value === null || value === "" ? [requiredError(field)] : [];
}

/** Requires a supported value, if it is set. */
export function checkOneOf(field: string, value: JsonValue | undefined, supported: string[]): FieldError[] {
  if (value === undefined || (typeof value === "string" && supported.includes(value))) return [];
  return [notSupportedError(field, value, supported)];
}

/** Requires a supported value. */
export function checkRequiredOneOf(field: string, value: JsonValue | undefined, supported: string[]): FieldError[] {
  const missing = checkRequired(field, value);
  return missing.length > 0 ? missing : checkOneOf(field, value, supported);
}

/** Returns the name of a value's JSON type in the error messages of Go's decoder. */
export function goTypeOf(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value;
}

/** Formats a float as Go's `%v` does: with an exponent if it is at least 1e6 or less than 1e-4. */
export function floatText(value: number): string {
  const magnitude = Math.abs(value);
  if (value === 0 || (magnitude >= 1e-4 && magnitude < 1e6)) return String(value);
  return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
}

/** Formats a value as Go's `%v` does: `map[a:1 b:[x y]]`, with sorted keys. */
export function goFormat(value: JsonValue): string {
  if (value === null) return "<nil>";
  if (Array.isArray(value)) return `[${value.map(goFormat).join(" ")}]`;
  if (!isJsonObject(value)) return String(value);
  const keys = Object.keys(value).sort(compareText);
  return `map[${keys.map((key) => `${key}:${goFormat(value[key] as JsonValue)}`).join(" ")}]`;
}
