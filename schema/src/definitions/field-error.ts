// Field errors as k8s.io/apimachinery/pkg/util/validation/field makes and prints them, the checks for required and supported values, and values as
// Go formats them.
import { compareText, goJson, isJsonObject, type JsonValue } from "../json/json.js";
import { quote } from "../strings/escape.js";

/** The kinds of field errors, in the words of a Status cause. */
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

/** One thing that is wrong with one field of an object. */
export interface FieldError {
  reason: FieldErrorReason;
  /** The path, e.g. `spec.list[0].key`; "" is the root and prints as `<nil>`. */
  field: string;
  /** The text after the path, e.g. `Required value` or `Invalid value: -1: must be positive`. */
  message: string;
}

/** The path of the whole object as Kubernetes writes it in a few places. */
export const WHOLE = "[]";

/** A field that must be set is not. */
export function requiredError(field: string, detail = ""): FieldError {
  return { reason: "FieldValueRequired", field, message: withDetail("Required value", detail) };
}

/** A value breaks a rule. */
export function invalidError(field: string, value: JsonValue, detail: string): FieldError {
  return { reason: "FieldValueInvalid", field, message: withDetail(`Invalid value: ${formatValue(value)}`, detail) };
}

/** A value has the wrong JSON type. */
export function typeInvalidError(field: string, value: JsonValue, detail: string): FieldError {
  return { ...invalidError(field, value, detail), reason: "FieldValueTypeInvalid" };
}

/** A value is none of the supported ones, which are listed in the given order. A word has a Go type of its own and is shown as JSON. */
export function notSupportedError(field: string, value: JsonValue, supported: readonly string[]): FieldError {
  return unsupported(field, typeof value === "string" ? goJson(value) : formatValue(value), supported);
}

/** Text of no type of its own is none of the supported ones. */
export function textNotSupportedError(field: string, text: string, supported: readonly string[]): FieldError {
  return unsupported(field, quote(text), supported);
}

function unsupported(field: string, shown: string, supported: readonly string[]): FieldError {
  const detail = supported.length > 0 ? `supported values: ${supported.map(quote).join(", ")}` : "";
  return { reason: "FieldValueNotSupported", field, message: withDetail(`Unsupported value: ${shown}`, detail) };
}

/** A field may not be set, or not so. */
export function forbiddenError(field: string, detail = ""): FieldError {
  return { reason: "FieldValueForbidden", field, message: withDetail("Forbidden", detail) };
}

/** A text is longer than `maxBytes`. */
export function tooLongError(field: string, maxBytes: number): FieldError {
  return { reason: "FieldValueTooLong", field, message: `Too long: may not be more than ${maxBytes} bytes` };
}

/** A list or map has more than `max` members. */
export function tooManyError(field: string, count: number, max: number): FieldError {
  const items = max === 1 ? "item" : "items";
  return { reason: "FieldValueTooMany", field, message: `Too many: ${count}: must have at most ${max} ${items}` };
}

/** A value occurs twice where it may occur once. */
export function duplicateError(field: string, value: JsonValue): FieldError {
  return { reason: "FieldValueDuplicate", field, message: `Duplicate value: ${formatValue(value)}` };
}

/** A list or an object is wrong as a whole, and is not shown. */
export function withoutValue(
  field: string,
  reason: "FieldValueInvalid" | "FieldValueDuplicate",
  detail = "",
): FieldError {
  const message = reason === "FieldValueInvalid" ? withDetail("Invalid value", detail) : "Duplicate value";
  return { reason, field, message };
}

/** A value refers to something that does not exist. */
export function notFoundError(field: string, value: JsonValue): FieldError {
  return { reason: "FieldValueNotFound", field, message: `Not found: ${formatValue(value)}` };
}

/** What is right as it is written fails in the server. */
export function internalError(field: string, detail: string): FieldError {
  return { reason: "InternalError", field, message: withDetail("Internal error", detail) };
}

/** Writes the error as Kubernetes prints it: path, colon, body. */
export function fieldErrorText(error: FieldError): string {
  return `${fieldErrorPath(error)}: ${error.message}`;
}

/** Gives the path as it is printed and sent in a cause. */
export function fieldErrorPath(error: FieldError): string {
  return error.field === "" ? "<nil>" : error.field;
}

/** Writes a value as it appears in messages: text quoted, numbers and booleans bare, the rest as compact JSON. */
export function formatValue(value: JsonValue): string {
  if (typeof value === "string") return quote(value);
  if (typeof value === "number" && !Number.isInteger(value)) return floatText(value);
  return goJson(value);
}

function withDetail(body: string, detail: string): string {
  return detail === "" ? body : `${body}: ${detail}`;
}

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

/** Names a JSON value's type as Go's decoder does in its messages. */
export function goTypeOf(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value;
}

/** Writes a float as Go does with `%v`: with an exponent from a million on, and below a ten thousandth. */
export function floatText(value: number): string {
  const magnitude = Math.abs(value);
  if (value === 0 || (magnitude >= 1e-4 && magnitude < 1e6)) return String(value);
  return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
}

/** Writes a value as Go prints it with `%v`: `map[a:1 b:[x y]]`, keys sorted. */
export function goFormat(value: JsonValue): string {
  if (value === null) return "<nil>";
  if (Array.isArray(value)) return `[${value.map(goFormat).join(" ")}]`;
  if (!isJsonObject(value)) return String(value);
  const keys = Object.keys(value).sort(compareText);
  return `map[${keys.map((key) => `${key}:${goFormat(value[key] as JsonValue)}`).join(" ")}]`;
}
