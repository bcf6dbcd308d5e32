// Validates one value against one schema node, in the order in which Kubernetes runs its checks.
import { hasFormat } from "../strings/formats.js";
import { hasMatch } from "../strings/pattern.js";
import {
  invalidError,
  notSupportedError,
  textNotSupportedError,
  requiredError,
  tooLongError,
  tooManyError,
  type FieldError,
} from "./field-error.js";
import { deepEqual, isJsonObject, memberOf, type JsonObject, type JsonValue } from "../json/json.js";
import { brokenRule, wrongType, type SchemaResult } from "./schema-messages.js";
import { checkType } from "./types.js";
import { checkJunctors } from "./junctors.js";
import { checkNumber } from "./numbers.js";
import { itemSchema, memberSchema, propertiesOf, type StructuralSchema } from "./structural-schema.js";

/** A value and the one that it replaces; without `old` nothing is forgiven. */
export interface Validated {
  readonly path: string;
  readonly value: JsonValue;
  readonly old?: JsonValue | undefined;
}

/** Validates a value; errors in what an update leaves as it was are forgiven. */
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

// Kubernetes reports only the first of the three.
function checkLengthOrPattern(schema: StructuralSchema, path: string, text: string): FieldError[] {
  const { maxLength, minLength, pattern } = schema;
  const length = [...text].length;
  if (typeof maxLength === "number" && length > maxLength) return [tooLongError(path, maxLength)];
  if (typeof minLength === "number" && length < minLength) {
    return [brokenRule(path, text, `should be at least ${minLength} chars long`)];
  }
  if (typeof pattern !== "string") return [];
  // A definition with a pattern that cannot be compiled is refused.
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

/** Finds the old twin of an item; only the items of keyed lists have one. */
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

/** Lists the members that have a schema: undeclared ones first, then the declared ones in the schema's order. */
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

// Go compares after a conversion to the allowed value's type, which cuts the fraction off; null has no type, so it is never found.
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
