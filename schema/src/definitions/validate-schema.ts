// Validates values against a schema as kube-openapi does, in its order and with its messages, which contain the path twice for errors in nested
// schemas.
import { hasFormat } from "../strings/formats.js";
import { hasMatch } from "../strings/pattern.js";
import {
  floatText,
  invalidError,
  notSupportedError,
  requiredError,
  textNotSupportedError,
  tooLongError,
  tooManyError,
  typeInvalidError,
  type FieldError,
} from "./field-error.js";
import { deepEqual, isJsonObject, memberOf, type JsonObject, type JsonValue } from "../json/json.js";
import { itemSchema, memberSchema, propertiesOf, type StructuralSchema } from "./structural-schema.js";
import { quote } from "../strings/escape.js";
import { comparedLimit, fitsFormat, isInt64, isMultipleOf } from "../values/numbers.js";
import type { Schema } from "../values/schema.js";

/** A value, and the one before the update. Without `old` there is no ratcheting. */
interface Validated {
  readonly path: string;
  readonly value: JsonValue;
  readonly old?: JsonValue | undefined;
}

/** Validates a value. Errors of values that the update does not change are dropped (ratcheting). */
export function validateSchema(schema: StructuralSchema, validated: Validated): SchemaResult {
  const result = validateAll(schema, validated);
  const { value, old } = validated;
  if (result.errors.length > 0 && old !== undefined && deepEqual(value, old)) {
    return { errors: [], matches: result.matches };
  }
  return result;
}

function validateAll(schema: StructuralSchema, validated: Validated): SchemaResult {
  const { path, value } = validated;
  const errors = checkType(schema, path, value);
  if (value === null) return { errors: [...errors, ...checkEnum(schema, path, value)], matches: 0 };
  const parts: SchemaResult[] = [
    { errors, matches: 1 },
    checkJunctors(schema, path, (branch) => validateSchema(branch, { path, value })),
    checkShape(schema, validated),
    { errors: checkEnum(schema, path, value), matches: 1 },
  ];
  if (isJsonObject(value)) parts.push(checkObject(schema, { ...validated, value }));
  return mergeResults(parts);
}

function checkShape(schema: StructuralSchema, validated: Validated): SchemaResult {
  const { path, value } = validated;
  if (typeof value === "string") return { errors: checkText(schema, path, value), matches: 1 };
  if (typeof value === "number") return { errors: checkNumber(schema, path, value), matches: 2 };
  return Array.isArray(value) ? checkList(schema, { ...validated, value }) : { errors: [], matches: 0 };
}

function checkText(schema: StructuralSchema, path: string, text: string): FieldError[] {
  const errors = checkLengthOrPattern(schema, path, text);
  const format = memberOf(schema, "format");
  if (typeof format === "string" && hasFormat(text, format) === false) errors.push(wrongType(path, format, text));
  return errors;
}

// Kubernetes reports only the first of these errors.
function checkLengthOrPattern(schema: StructuralSchema, path: string, text: string): FieldError[] {
  const { maxLength, minLength, pattern } = schema;
  const length = [...text].length;
  if (typeof maxLength === "number" && length > maxLength) return [tooLongError(path, maxLength)];
  if (typeof minLength === "number" && length < minLength) {
    return [brokenRule(path, text, `should be at least ${minLength} chars long`)];
  }
  if (typeof pattern !== "string") return [];
  // A CRD with an invalid pattern is rejected, so the pattern can be compiled.
  return hasMatch(text, pattern) !== false ? [] : [brokenRule(path, text, `should match '${pattern}'`)];
}

function checkList(schema: StructuralSchema, { path, value, old }: Validated & { value: JsonValue[] }): SchemaResult {
  const { minItems, maxItems } = schema;
  const items = itemSchema(schema);
  const oldItems = correlatedItems(schema, old);
  const parts = value.map((item, index) =>
    items === undefined
      ? { errors: [], matches: 0 }
      : validateSchema(items, { path: `${path}[${index}]`, value: item, old: oldItems(item) }),
  );
  const errors: FieldError[] = [];
  if (typeof minItems === "number" && value.length < minItems) {
    errors.push(brokenRule(path, value.length, `should have at least ${minItems} items`));
  }
  if (typeof maxItems === "number" && value.length > maxItems) errors.push(tooManyError(path, value.length, maxItems));
  return mergeResults([...parts, { errors, matches: 1 }]);
}

/** Returns a lookup of the old value of an item; only items of `map` lists are correlated. */
function correlatedItems(
  schema: StructuralSchema,
  old: JsonValue | undefined,
): (item: JsonValue) => JsonValue | undefined {
  const keys = memberOf(schema, "x-kubernetes-list-map-keys");
  if (!Array.isArray(old) || schema["x-kubernetes-list-type"] !== "map" || !Array.isArray(keys)) return () => undefined;
  return (item) =>
    isJsonObject(item)
      ? old.find(
          (other) => isJsonObject(other) && keys.every((key) => deepEqual(item[String(key)], other[String(key)])),
        )
      : undefined;
}

function checkObject(schema: StructuralSchema, { path, value, old }: Validated & { value: JsonObject }): SchemaResult {
  const { minProperties, maxProperties, required } = schema;
  const count = Object.keys(value).length;
  const errors: FieldError[] = [];
  if (typeof minProperties === "number" && count < minProperties)
    errors.push(brokenRule(path, count, `should have at least ${minProperties} properties`));
  if (typeof maxProperties === "number" && count > maxProperties) errors.push(tooManyError(path, count, maxProperties));
  errors.push(...forbiddenMembers(schema, path, value));
  const oldObject = isJsonObject(old) ? old : undefined;
  const parts = memberNames(schema, value).map((name) => {
    const inner = memberSchema(schema, name) as StructuralSchema;
    const memberPath = path === "" ? name : `${path}.${name}`;
    return validateSchema(inner, { path: memberPath, value: value[name] as JsonValue, old: memberOf(oldObject, name) });
  });
  const missing = (Array.isArray(required) ? required : []).filter((name) => !Object.hasOwn(value, String(name)));
  errors.push(...missing.map((name) => requiredError(path === "" ? String(name) : `${path}.${String(name)}`)));
  return mergeResults([...parts, { errors, matches: 1 }]);
}

function forbiddenMembers(schema: StructuralSchema, path: string, object: JsonObject): FieldError[] {
  if (memberOf(schema, "additionalProperties") !== false) return [];
  const properties = propertiesOf(schema);
  return Object.keys(object)
    .filter((name) => !Object.hasOwn(properties, name))
    .map((name) => invalidError(path, name, `${path}.${name} in body is a forbidden property`));
}

/** Lists the members that have a schema: those of additionalProperties first, then the properties in the order of the schema. */
function memberNames(schema: StructuralSchema, object: JsonObject): string[] {
  const properties = propertiesOf(schema);
  const others = isJsonObject(memberOf(schema, "additionalProperties"))
    ? Object.keys(object).filter((name) => !Object.hasOwn(properties, name))
    : [];
  return [...others, ...Object.keys(properties).filter((name) => Object.hasOwn(object, name))];
}

function checkEnum(schema: StructuralSchema, path: string, value: JsonValue): FieldError[] {
  const allowed = memberOf(schema, "enum");
  if (!Array.isArray(allowed) || allowed.length === 0) return [];
  if (allowed.some((other) => isAllowed(value, other))) return [];
  const supported = allowed.map((other) => (typeof other === "string" ? other : JSON.stringify(other)));
  return [
    typeof value === "string"
      ? textNotSupportedError(path, value, supported)
      : notSupportedError(path, value, supported),
  ];
}

// Go converts the value to the type of the enum value, which truncates fractions. null has no type, so it never matches.
function isAllowed(value: JsonValue, allowed: JsonValue): boolean {
  if (allowed === null) return false;
  const converted = typeof value === "number" && Number.isInteger(allowed) ? Math.trunc(value) : value;
  return deepEqual(converted, allowed);
}

function mergeResults(parts: readonly SchemaResult[]): SchemaResult {
  return {
    errors: parts.flatMap((part) => part.errors),
    matches: parts.reduce((sum, part) => sum + part.matches, 0),
  };
}

/**
 * Validates anyOf, oneOf, allOf, and not for a value at `path`; `check` validates a branch. Except for `not`, the errors of the branch with the most
 * matches are reported, too.
 */
function checkJunctors(
  schema: StructuralSchema,
  path: string,
  check: (branch: JsonObject) => SchemaResult,
): SchemaResult {
  const parts = [
    checkAnyOf(path, branchesOf(schema, "anyOf").map(check)),
    checkOneOf(path, branchesOf(schema, "oneOf").map(check)),
    checkAllOf(path, branchesOf(schema, "allOf").map(check)),
  ];
  const not = memberOf(schema, "not");
  if (isJsonObject(not) && check(not).errors.length === 0) {
    parts.push({ errors: [unattributed(`${quote(path)} must not validate the schema (not)`)], matches: 0 });
  }
  return {
    errors: parts.flatMap((part) => part.errors),
    matches: 1 + parts.reduce((sum, part) => sum + part.matches, 0),
  };
}

function checkAnyOf(path: string, results: SchemaResult[]): SchemaResult {
  const best = bestFailure(results);
  if (best === undefined || results.some(isValid)) return NO_ERRORS;
  const message = `${quote(path)} must validate at least one schema (anyOf)`;
  return { errors: [unattributed(message), ...best.errors], matches: best.matches };
}

function checkOneOf(path: string, results: SchemaResult[]): SchemaResult {
  const valid = results.filter(isValid).length;
  if (results.length === 0 || valid === 1) return NO_ERRORS;
  const found = valid === 0 ? "Found none valid" : `Found ${valid} valid alternatives`;
  const message = `${quote(path)} must validate one and only one schema (oneOf). ${found}`;
  const best = valid === 0 ? bestFailure(results) : undefined;
  return { errors: [unattributed(message), ...(best?.errors ?? [])], matches: best?.matches ?? 0 };
}

function checkAllOf(path: string, results: SchemaResult[]): SchemaResult {
  const errors = results.flatMap((result) => result.errors);
  const matches = results.reduce((sum, result) => sum + result.matches + 1, 0);
  const valid = results.filter(isValid).length;
  if (valid === results.length) return { errors, matches };
  const none = valid === 0 ? ". None validated" : "";
  return { errors: [...errors, unattributed(`${quote(path)} must validate all the schemas (allOf)${none}`)], matches };
}

const NO_ERRORS: SchemaResult = { errors: [], matches: 0 };

function isValid(result: SchemaResult): boolean {
  return result.errors.length === 0;
}

function bestFailure(results: SchemaResult[]): SchemaResult | undefined {
  return results
    .filter((result) => !isValid(result))
    .reduce<SchemaResult | undefined>(
      (best, result) => (best && best.matches >= result.matches ? best : result),
      undefined,
    );
}

function branchesOf(schema: StructuralSchema, junctor: "anyOf" | "oneOf" | "allOf"): JsonObject[] {
  const branches = memberOf(schema, junctor);
  return Array.isArray(branches) ? branches.filter(isJsonObject) : [];
}

const MINIMUM = ["Minimum", "should be greater than", -1] as const;
const MAXIMUM = ["Maximum", "should be less than", 1] as const;

/** Validates the format range, multipleOf, minimum, and maximum of a number. */
function checkNumber(schema: StructuralSchema, path: string, value: number): FieldError[] {
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

/** Returns the OpenAPI type of a value. A number without a fraction is an integer. */
function actualType(value: JsonValue): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return isInt64(value) ? "integer" : "number";
  return typeof value;
}

/** Validates the JSON type of a value. A fraction in an integer format is reported with its Go type. */
function checkType(schema: StructuralSchema, path: string, value: JsonValue): FieldError[] {
  const types = typesOf(schema);
  if (types.length === 0) return [];
  const actual = actualType(value);
  if (actual === "null") return schema["nullable"] === true ? [] : [wrongType(path, types.join(","), actual)];
  if (types.includes(actual) || (actual === "integer" && types.includes("number"))) return [];
  const format = memberOf(schema, "format");
  const isNumeric = types.includes("number") || types.includes("integer");
  if (typeof format === "string" && format !== "") {
    const isTextOrList = typeof value === "string" || Array.isArray(value);
    // Quirks of kube-openapi for schemas with a format: strings and lists are rejected only by numeric types; other values are reported with the
    // format.
    if (!isTextOrList) return [wrongType(path, format, goNumberType(value))];
    if (!isNumeric) return [];
  }
  return [wrongType(path, types.join(","), actual)];
}

function typesOf(schema: StructuralSchema): string[] {
  if (schema["x-kubernetes-int-or-string"] === true) return ["integer", "string"];
  const type = memberOf(schema, "type");
  return typeof type === "string" && type !== "" ? [type] : [];
}

function goNumberType(value: JsonValue): string {
  if (typeof value !== "number") return "";
  return isInt64(value) ? "int64" : "float64";
}

/** The result of a validation. `matches` is the number of checks, by which kube-openapi chooses the best of several branches. */
interface SchemaResult {
  readonly errors: FieldError[];
  readonly matches: number;
}

/** Reports a violated constraint: `{path} in body {rule}`. */
export function brokenRule(path: string, value: JsonValue, rule: string): FieldError {
  return invalidError(path, value, `${inBody(path)} ${rule}`);
}

/** Reports a violated numeric constraint with the number in Go's format. */
function brokenNumberRule(path: string, numberText: string, rule: string): FieldError {
  const detail = `${inBody(path)} ${rule}`;
  return { reason: "FieldValueInvalid", field: path, message: `Invalid value: ${numberText}: ${detail}` };
}

/** Reports a value of the wrong type. `actual` is its type, or the value if its format is wrong. */
export function wrongType(path: string, type: string, actual: string): FieldError {
  return typeInvalidError(path, actual, `${inBody(path)} must be of type ${type}: ${quote(actual)}`);
}

/** Reports an error that Kubernetes does not attribute to a field. */
function unattributed(message: string): FieldError {
  return invalidError("", "", message);
}

// The path of the root is empty, which leaves a leading space.
function inBody(path: string): string {
  return `${path} in body`;
}
