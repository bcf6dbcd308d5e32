// Validation results in the words of kube-openapi: what fails inside a schema names its path twice, in the cause and in the text.
import { invalidError, typeInvalidError, type FieldError } from "./field-error.js";
import { quote } from "../strings/escape.js";
import type { JsonValue } from "../json/json.js";

/** What a schema makes of a value; `matches` counts the checks, by which Kubernetes picks the best of several branches. */
export interface SchemaResult {
  readonly errors: FieldError[];
  readonly matches: number;
}

/** A rule that a value breaks: `{path} in body {rule}`. */
export function brokenRule(path: string, value: JsonValue, rule: string): FieldError {
  return invalidError(path, value, `${inBody(path)} ${rule}`);
}

/** A rule that a number breaks, which is written in Go's way. */
export function brokenNumberRule(path: string, numberText: string, rule: string): FieldError {
  const detail = `${inBody(path)} ${rule}`;
  return { reason: "FieldValueInvalid", field: path, message: `Invalid value: ${numberText}: ${detail}` };
}

/** A value of the wrong type; `actual` is the type that it has, or the value of a wrong format. */
export function wrongType(path: string, type: string, actual: string): FieldError {
  return typeInvalidError(path, actual, `${inBody(path)} must be of type ${type}: ${quote(actual)}`);
}

/** A failure that Kubernetes does not attribute to a field. */
export function unattributed(message: string): FieldError {
  return invalidError("", "", message);
}

// At the root the path is empty and so are the words for it, which leaves a space in front.
function inBody(path: string): string {
  return `${path} in body`;
}
