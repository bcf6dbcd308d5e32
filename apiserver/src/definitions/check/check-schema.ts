// The rules for structural schemas: every field has one declared shape, and only values are constrained by anyOf and the like.
import { findPatternProblem } from "@gen-operator/schema";
import {
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
  type FieldError,
} from "../../errors/field-error.js";
import {
  arrayAt,
  clone,
  deepEqual,
  isObject,
  memberOf,
  stringAt,
  type JsonObject,
  type JsonValue,
} from "../../json.js";
import { applyDefaults, pruneUnknownFields, propertiesOf, type StructuralSchema } from "../schema/structural.js";
import { validateSchema } from "../schema/validate-schema.js";
import { checkCompleteness, checkJunctorSchemas, schemasInJunctors } from "./check-junctors.js";
import { checkListType } from "./check-list-type.js";
import { checkExpressions, checkRuleFields } from "./check-rules.js";

const TYPES = ["array", "boolean", "integer", "number", "object", "string"];
const UNSUPPORTED = ["id", "definitions", "dependencies", "patternProperties", "additionalItems", "$ref"] as const;
const EMPTY_AT = {
  root: "must not be empty at the root",
  field: "must not be empty for specified object fields",
  item: "must not be empty for specified array items",
};

/** Checks the schema of a version. */
export function checkVersionSchema(
  schema: StructuralSchema,
  { path, hasStatus }: { path: string; hasStatus: boolean },
): FieldError[] {
  const type = stringAt(schema, "type") ?? "";
  const statusText =
    'only "object" is allowed as the type at the root of the schema if the status subresource is enabled';
  const errors = [
    ...(hasStatus && type !== "object" ? [invalidError(`${path}.type`, type, statusText)] : []),
    ...checkNode(schema, { path, isStructural: !hasUnsupported(schema), place: "root" }),
    ...(type !== "" && type !== "object" && TYPES.includes(type)
      ? [invalidError(`${path}.type`, type, "must be object at the root")]
      : []),
    ...checkCompleteness(schema, path),
    ...checkTypeMeta(schema, path),
  ];
  return errors.length > 0 ? errors : checkExpressions(schema, path);
}

interface Node {
  path: string;
  /** Does the whole schema do without keywords that end the search for missing types? */
  isStructural: boolean;
  place: keyof typeof EMPTY_AT;
}

function hasUnsupported(schema: JsonValue | undefined): boolean {
  if (!isObject(schema)) return false;
  if (UNSUPPORTED.some((keyword) => schema[keyword] !== undefined)) return true;
  const inner = [schema["items"], schema["additionalProperties"], ...Object.values(propertiesOf(schema))];
  return inner.some(hasUnsupported) || schemasInJunctors(schema, "").some((branch) => hasUnsupported(branch.schema));
}

function checkNode(schema: StructuralSchema, node: Node): FieldError[] {
  const { path } = node;
  return [
    ...checkUnsupported(schema, path),
    ...schemasInJunctors(schema, path).flatMap((branch) => [
      ...checkUnsupported(branch.schema, branch.path),
      ...checkPattern(branch.schema, branch.path),
    ]),
    ...Object.entries(propertiesOf(schema)).flatMap(([name, property]) =>
      // Metadata is declared by the server; what a schema may say of it is checked at the root.
      isObject(property) && !(node.place === "root" && name === "metadata")
        ? checkNode(property, { ...node, path: `${path}.properties[${name}]`, place: "field" })
        : [],
    ),
    ...checkRest(schema, node),
    ...checkItems(schema, node),
    ...checkJunctorSchemas(schema, path),
    ...checkExtensions(schema, path),
    ...checkListType(schema, path),
    ...checkOwnType(schema, node),
    ...checkPattern(schema, path),
    ...checkDefault(schema, path),
    ...checkRuleFields(schema, path),
  ];
}

function checkUnsupported(schema: StructuralSchema, path: string): FieldError[] {
  const errors = UNSUPPORTED.flatMap((keyword) =>
    schema[keyword] === undefined ? [] : [forbiddenError(`${path}.${keyword}`, `${keyword} is not supported`)],
  );
  if (schema["uniqueItems"] === true) {
    const text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
    errors.push(forbiddenError(`${path}.uniqueItems`, text));
  }
  return errors;
}

function checkRest(schema: StructuralSchema, node: Node): FieldError[] {
  const { path, place } = node;
  const rest = memberOf(schema, "additionalProperties");
  const field = `${path}.additionalProperties`;
  if (rest === undefined || rest === false) return [];
  if (place === "root") return [forbiddenError(field, "must not be used at the root")];
  if (Object.keys(propertiesOf(schema)).length > 0) {
    return [forbiddenError(field, "additionalProperties and properties are mutual exclusive")];
  }
  return isObject(rest) ? checkNode(rest, { ...node, path: field, place: "field" }) : [];
}

function checkItems(schema: StructuralSchema, node: Node): FieldError[] {
  const { path } = node;
  const items = memberOf(schema, "items");
  const field = `${path}.items`;
  if (Array.isArray(items)) return [forbiddenError(field, "items must be a schema object and not an array")];
  if (isObject(items)) return checkNode(items, { ...node, path: field, place: "item" });
  return schema["type"] === "array" ? [requiredError(field, "must be specified")] : [];
}

function checkOwnType(schema: StructuralSchema, { path, place, isStructural }: Node): FieldError[] {
  const type = stringAt(schema, "type") ?? "";
  if (type !== "") return TYPES.includes(type) ? [] : [notSupportedError(`${path}.type`, type, TYPES)];
  const isFree =
    place !== "root" &&
    (schema["x-kubernetes-int-or-string"] === true || schema["x-kubernetes-preserve-unknown-fields"] === true);
  return isFree || !isStructural ? [] : [requiredError(`${path}.type`, EMPTY_AT[place])];
}

function checkExtensions(schema: StructuralSchema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const preserves = schema["x-kubernetes-preserve-unknown-fields"];
  if (preserves === false) {
    errors.push(invalidError(`${path}.x-kubernetes-preserve-unknown-fields`, false, "must be true or undefined"));
  }
  if (schema["x-kubernetes-embedded-resource"] !== true) return errors;
  if (preserves !== true && Object.keys(propertiesOf(schema)).length === 0) {
    const text =
      "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
    errors.push(requiredError(`${path}.properties`, text));
  }
  if (schema["type"] !== "object") {
    const text = "must be object if x-kubernetes-embedded-resource is true";
    errors.push(invalidError(`${path}.type`, schema["type"] ?? "", text));
  }
  return errors;
}

function checkPattern(schema: StructuralSchema, path: string): FieldError[] {
  const pattern = stringAt(schema, "pattern") ?? "";
  const problem = findPatternProblem(pattern);
  if (problem === undefined) return [];
  const text = `must be a valid regular expression, but isn't: error parsing regexp: ${problem}`;
  return [invalidError(`${path}.pattern`, pattern, text)];
}

function checkDefault(schema: StructuralSchema, path: string): FieldError[] {
  const fallback = memberOf(schema, "default");
  if (fallback === undefined || fallback === null) return [];
  const field = `${path}.default`;
  // Pruning and defaulting work on objects, so the value is put into one.
  const wrapper = { type: "object", properties: { value: schema } };
  const wrapped: JsonObject = { value: clone(fallback) };
  pruneUnknownFields(wrapper, wrapped);
  if (!deepEqual(wrapped["value"], fallback)) return [invalidError(field, fallback, "must not have unknown fields")];
  applyDefaults(wrapper, wrapped);
  const { errors } = validateSchema(schema, { path: "", value: wrapped["value"] as JsonValue });
  return errors.map((error) => ({ ...error, field: error.field === "" ? field : `${field}.${error.field}` }));
}

function checkTypeMeta(schema: StructuralSchema, path: string): FieldError[] {
  const properties = propertiesOf(schema);
  const errors = ["apiVersion", "kind"].flatMap((name) => {
    const type = stringAt(properties[name] as JsonObject | undefined, "type") ?? "string";
    return type === "string" ? [] : [invalidError(`${path}.properties[${name}].type`, type, "must be string")];
  });
  const metadata = memberOf(properties, "metadata");
  if (!isObject(metadata)) return errors;
  const field = `${path}.properties[metadata]`;
  if (metadata["type"] !== "object") {
    errors.push(invalidError(`${field}.type`, metadata["type"] ?? "", "must be object"));
  }
  const others = Object.keys(metadata).filter(
    (name) => name !== "type" && name !== "properties" && name !== "description",
  );
  const constrained = Object.keys(propertiesOf(metadata)).filter((name) => name !== "name" && name !== "generateName");
  if (constrained.length > 0 || others.length > 0 || arrayAt(metadata, "required") !== undefined) {
    const text = "must not specify anything other than name and generateName, but metadata is implicitly specified";
    errors.push(forbiddenError(field, text));
  }
  return errors;
}
