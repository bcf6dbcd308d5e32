// What every schema in a definition may say, wherever it stands, before anybody asks whether it is structural.
import { forbiddenError, invalidError, textNotSupportedError, type FieldError } from "./field-error.js";
import { isJsonObject, memberOf, stringAt, type JsonObject, type JsonValue } from "../json/json.js";
import { propertiesOf, type StructuralSchema } from "./structural-schema.js";
import { checkListType } from "./check-list-type.js";
import { checkRuleFields } from "./validation-rules.js";

/** The types that a schema may state. */
export const TYPES = ["array", "boolean", "integer", "number", "object", "string"];
/** The fields of an object that Kubernetes itself declares. */
export const META_FIELDS = ["apiVersion", "kind", "metadata"];

const UNSUPPORTED = ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] as const;
const QUADRATIC = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";

interface Place {
  readonly path: string;
  readonly isRoot?: boolean;
  /** Whether it describes the metadata of an object, or its type. */
  readonly isMeta?: boolean;
  /** Why there may be no defaults; absent where there may. */
  readonly noDefaults?: string | undefined;
}

/** Checks a schema and all that it consists of. */
export function checkOpenApi(schema: StructuralSchema, place: Place): FieldError[] {
  const { path, isRoot = false, isMeta = false, noDefaults } = place;
  const below = (child: JsonValue | undefined, name: string, more: Partial<Place> = {}): FieldError[] =>
    isJsonObject(child) ? checkOpenApi(child, { isMeta, noDefaults, ...more, path: `${path}.${name}` }) : [];
  const belowMap = (name: string): FieldError[] =>
    Object.entries(objectOf(schema, name)).flatMap(([key, child]) => below(child, `${name}[${key}]`));
  const belowList = (name: string): FieldError[] =>
    listOf(schema, name).flatMap((child, index) => below(child, `${name}[${index}]`));
  const ofMap = isMeta ? { noDefaults: "inside additionalProperties applying to object metadata" } : {};
  return [
    ...checkOwn(schema, place),
    ...below(memberOf(schema, "additionalProperties"), "additionalProperties", ofMap),
    ...Object.entries(propertiesOf(schema)).flatMap(([name, child]) => {
      const isOfType = META_FIELDS.includes(name) && (isRoot || schema["x-kubernetes-embedded-resource"] === true);
      const ofRoot = isRoot ? { noDefaults: `in top-level ${name}` } : {};
      return below(child, `properties[${name}]`, isOfType ? { isMeta: true, ...ofRoot } : {});
    }),
    ...below(memberOf(schema, "not"), "not"),
    ...["allOf", "oneOf", "anyOf"].flatMap(belowList),
    ...belowMap("definitions"),
    ...below(memberOf(schema, "items"), "items"),
    ...belowList("items"),
    ...belowMap("dependencies"),
    ...checkPreserving(schema, path),
    ...checkListType(schema, path),
    ...checkRuleFields(schema, path),
  ];
}

function checkOwn(schema: StructuralSchema, { path, isMeta = false, noDefaults }: Place): FieldError[] {
  const type = stringAt(schema, "type") ?? "";
  const errors: FieldError[] = [];
  const forbid = (member: string, text: string) => void errors.push(forbiddenError(`${path}.${member}`, text));
  if (type !== "" && !TYPES.includes(type)) errors.push(textNotSupportedError(`${path}.type`, type, TYPES));
  if (noDefaults !== undefined && (schema["default"] ?? null) !== null)
    forbid("default", `must not be set ${noDefaults}`);
  for (const keyword of UNSUPPORTED) if (schema[keyword] !== undefined) forbid(keyword, `${keyword} is not supported`);
  if (type === "null") forbid("type", "type cannot be set to null, use nullable as an alternative");
  if (Array.isArray(schema["items"])) forbid("items", "items must be a schema object and not an array");
  if (isMeta && schema["x-kubernetes-embedded-resource"] === true)
    forbid("x-kubernetes-embedded-resource", "must not be used inside of resource meta");
  if (schema["uniqueItems"] === true) forbid("uniqueItems", QUADRATIC);
  const rest = memberOf(schema, "additionalProperties");
  const isClosing = rest !== undefined && rest !== true;
  if (isClosing && Object.keys(propertiesOf(schema)).length > 0)
    forbid("additionalProperties", "additionalProperties and properties are mutual exclusive");
  return errors;
}

function checkPreserving(schema: StructuralSchema, path: string): FieldError[] {
  const field = "x-kubernetes-preserve-unknown-fields";
  return schema[field] === false ? [invalidError(`${path}.${field}`, false, "must be true or undefined")] : [];
}

function objectOf(schema: StructuralSchema, name: string): JsonObject {
  const value = memberOf(schema, name);
  return isJsonObject(value) ? value : {};
}

function listOf(schema: StructuralSchema, name: string): readonly JsonValue[] {
  const value = memberOf(schema, name);
  return Array.isArray(value) ? value : [];
}
