// Validates the OpenAPI schema of a version in the order of kube-apiserver 1.36: structural rules and defaults, the keywords of each nested schema
// including list types, and the expressions of validation rules.
import {
  arrayAt,
  clone,
  deepEqual,
  isJsonObject,
  memberOf,
  stringAt,
  type JsonObject,
  type JsonValue,
} from "../json/json.js";
import { checkEmbeddedResources, misfitOfEmbedded, type MetadataRules } from "./embedded-resource.js";
import {
  fieldErrorText,
  forbiddenError,
  invalidError,
  notSupportedError,
  requiredError,
  textNotSupportedError,
  type FieldError,
} from "./field-error.js";
import { internalSchema, setFields } from "./go-structs.js";
import {
  checkStructure,
  conversionOf,
  itemSchema,
  propertiesOf,
  pruneUnknownFields,
  RESOURCE_FIELDS,
  type StructuralSchema,
} from "./structural-schema.js";
import { validateSchema } from "./validate-schema.js";
import { checkExpressions, checkRuleFields, evaluateRules } from "./validation-rules.js";

const STATUS_TEXT =
  'only "object" is allowed as the type at the root of the schema if the status subresource is enabled';
const ROOT_FIELDS =
  "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations";

/** Validates the schema of a version. */
export function checkVersionSchema(
  schema: StructuralSchema,
  { path, hasStatus, metadata }: { path: string; hasStatus: boolean; metadata: MetadataRules },
): FieldError[] {
  const ofNull =
    schema["nullable"] === true ? [forbiddenError(`${path}.nullable`, "nullable cannot be true at the root")] : [];
  const ofRoot = [...(hasStatus ? checkRoot(schema, path) : []), ...ofNull];
  const conversion = conversionOf(schema);
  const ofStructure = conversion.isPossible ? checkStructure(schema, path) : [];
  // Defaults are validated only if the schema is structural, and expressions only if the defaults are valid.
  const isStructural = conversion.isPossible && ofStructure.length === 0;
  const ofDefaults = isStructural ? checkDefaults(schema, path, metadata) : [];
  const ofSchema = checkOpenApi(schema, { path, isRoot: true });
  const ofRules = isStructural && ofDefaults.length === 0 ? checkExpressions(schema, { path, errors: ofSchema }) : [];
  const errors = [...ofRoot, ...ofStructure, ...ofDefaults, ...ofSchema, ...ofRules];
  const isUnexplained = errors.length === 0 && conversion.problem !== undefined;
  return isUnexplained ? [invalidError(path, "", conversion.problem!)] : errors;
}

// On requests to the status subresource, the schema of `status` is used on its own, so the root must not constrain it.
function checkRoot(schema: StructuralSchema, path: string): FieldError[] {
  const fields = setFields(schema);
  const type = stringAt(schema, "type") ?? "";
  const odd = fields.find(
    (field) => !ROOT_FIELDS.split(" ").includes(field) || (field === "Type" && type !== "object"),
  );
  if (odd === undefined) return [];
  if (odd === "Type") return [invalidError(`${path}.type`, type, STATUS_TEXT)];
  const text = `only [${ROOT_FIELDS}] fields are allowed at the root of the schema if the status subresource is enabled`;
  return [invalidError(path, internalSchema(schema), text)];
}

/** The supported values of `type`. */
const TYPES = ["array", "boolean", "integer", "number", "object", "string"];

const UNSUPPORTED = ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] as const;
const QUADRATIC = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";

interface Place {
  readonly path: string;
  readonly isRoot?: boolean;
  /** Whether the schema describes the metadata or the type of an object. */
  readonly isMeta?: boolean;
  /** Why defaults are forbidden here; undefined if they are allowed. */
  readonly noDefaults?: string | undefined;
}

/** Validates a schema and all schemas nested in it. */
function checkOpenApi(schema: StructuralSchema, place: Place): FieldError[] {
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
      const isOfType = RESOURCE_FIELDS.has(name) && (isRoot || schema["x-kubernetes-embedded-resource"] === true);
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

const KEYS = "x-kubernetes-list-map-keys";
const LIST_TYPE = "x-kubernetes-list-type";
const MAP_TYPE = "x-kubernetes-map-type";
const LIST_TYPES = ["atomic", "set", "map"];
const KEY_TEXT = "this property is in x-kubernetes-list-map-keys, so it";

/** Validates the list type and map type of a schema. */
function checkListType(schema: StructuralSchema, path: string): FieldError[] {
  return [...checkMapType(schema, path), ...checkOwnListType(schema, path), ...checkKeys(schema, path)];
}

function checkMapType(schema: StructuralSchema, path: string): FieldError[] {
  const mapType = stringAt(schema, MAP_TYPE);
  if (mapType === undefined) return [];
  return [
    ...checkType(schema, { path, wanted: "object", member: MAP_TYPE }),
    ...(mapType === "atomic" || mapType === "granular"
      ? []
      : [notSupportedError(`${path}.${MAP_TYPE}`, mapType, ["atomic", "granular"])]),
  ];
}

function checkType(
  schema: StructuralSchema,
  { path, wanted, member }: { path: string; wanted: string; member: string },
): FieldError[] {
  const type = stringAt(schema, "type") ?? "";
  if (type === wanted) return [];
  const text = `must be ${wanted} if ${member} is specified`;
  return [type === "" ? requiredError(`${path}.type`, text) : invalidError(`${path}.type`, type, text)];
}

function checkOwnListType(schema: StructuralSchema, path: string): FieldError[] {
  const listType = stringAt(schema, LIST_TYPE);
  if (listType === undefined) return [];
  const ofType = checkType(schema, { path, wanted: "array", member: LIST_TYPE });
  const items = itemSchema(schema) ?? {};
  const isKnown = LIST_TYPES.includes(listType);
  const nullable =
    ofType.length === 0 && isKnown && items["nullable"] === true && listType !== "atomic"
      ? [forbiddenError(`${path}.items.nullable`, `cannot be nullable when ${LIST_TYPE} is ${listType}`)]
      : [];
  return [
    ...ofType,
    ...(ofType.length === 0 && listType === "set" ? checkSetItems(items, path) : []),
    ...(isKnown ? [] : [notSupportedError(`${path}.${LIST_TYPE}`, listType, LIST_TYPES)]),
    ...nullable,
  ];
}

function checkSetItems(items: StructuralSchema, path: string): FieldError[] {
  const suffix = `must be atomic as item of a list with ${LIST_TYPE}=set`;
  if (items["type"] === "object" && items[MAP_TYPE] !== "atomic") {
    return [invalidError(`${path}.items.${MAP_TYPE}`, items[LIST_TYPE] ?? null, suffix)];
  }
  const listType = items[LIST_TYPE];
  return items["type"] === "array" && listType !== undefined && listType !== "atomic"
    ? [invalidError(`${path}.items.${LIST_TYPE}`, listType, suffix)]
    : [];
}

function checkKeys(schema: StructuralSchema, path: string): FieldError[] {
  const keys = (arrayAt(schema, KEYS) ?? []).map(String);
  const listType = stringAt(schema, LIST_TYPE);
  if (listType !== "map") {
    const text = `must be map if ${KEYS} is non-empty`;
    const field = `${path}.${LIST_TYPE}`;
    if (keys.length === 0) return [];
    return [listType === undefined ? requiredError(field, text) : invalidError(field, listType, text)];
  }
  const errors =
    keys.length === 0 ? [requiredError(`${path}.${KEYS}`, `must not be empty if ${LIST_TYPE} is map`)] : [];
  const items = itemSchema(schema);
  if (items === undefined)
    return [...errors, requiredError(`${path}.items`, `must have a schema if ${LIST_TYPE} is map`)];
  if (items["type"] !== "object") {
    const text = `must be object if parent array's ${LIST_TYPE} is map`;
    return [...errors, invalidError(`${path}.items.type`, items["type"] ?? "", text)];
  }
  const properties = propertiesOf(items);
  for (const [index, key] of keys.entries()) {
    if (!Object.hasOwn(properties, key))
      errors.push(invalidError(`${path}.${KEYS}`, keys, "entries must all be names of item properties"));
    if (keys.indexOf(key) < index)
      errors.push(invalidError(`${path}.${KEYS}`, keys, "must not contain duplicate entries"));
  }
  return [...errors, ...[...new Set(keys)].flatMap((key) => checkKey(items, { key, path }))];
}

function checkKey(items: StructuralSchema, { key, path }: { key: string; path: string }): FieldError[] {
  const property = memberOf(propertiesOf(items), key);
  if (!isJsonObject(property)) return [];
  const field = `${path}.items.properties[${key}]`;
  const type = stringAt(property, "type") ?? "";
  const errors: FieldError[] = [];
  if (type === "object" || type === "array") {
    // Kubernetes prints the type of the item here.
    errors.push(invalidError(`${field}.type`, "object", `must be a scalar type if parent array's ${LIST_TYPE} is map`));
  }
  if (memberOf(property, "default") === undefined && !(arrayAt(items, "required") ?? []).includes(key)) {
    errors.push(requiredError(`${field}.default`, `${KEY_TEXT} must have a default or be a required property`));
  }
  if (property["nullable"] === true) {
    errors.push(forbiddenError(`${field}.nullable`, `${KEY_TEXT} cannot be nullable`));
  }
  return errors;
}

// Defaults must be valid values of their schemas.

const EMBEDDED = "x-kubernetes-embedded-resource";

interface DefaultPlace {
  readonly path: string;
  /** Returns the enclosing resource with the given value at this position. */
  readonly objectOf: (value: JsonValue) => JsonObject;
  /** Whether the schema describes the metadata or the type of that resource. */
  readonly isMeta: boolean;
  readonly metadata: MetadataRules;
}

/** Validates the defaults of a structural schema. */
function checkDefaults(schema: StructuralSchema, path: string, metadata: MetadataRules): FieldError[] {
  return checkDefaultsBelow({ ...schema, [EMBEDDED]: true }, { path, objectOf: resourceWith, isMeta: false, metadata });
}

function checkDefaultsBelow(schema: StructuralSchema, place: DefaultPlace): FieldError[] {
  const { path, isMeta, metadata } = place;
  const isResource = schema[EMBEDDED] === true && !isMeta;
  const objectOf = isResource ? resourceWith : place.objectOf;
  const inner = (child: JsonValue | undefined, name: string, more: Partial<DefaultPlace> = {}): FieldError[] =>
    isJsonObject(child)
      ? checkDefaultsBelow(child, { objectOf, isMeta, metadata, ...more, path: `${path}.${name}` })
      : [];
  return [
    ...checkDefault(schema, place),
    ...Object.entries(propertiesOf(schema)).flatMap(([name, child]) =>
      inner(child, `properties[${name}]`, {
        isMeta: isMeta || (isResource && RESOURCE_FIELDS.has(name)),
        objectOf: (value) => objectOf({ [name]: value }),
      }),
    ),
    ...inner(itemSchema(schema), "items", { objectOf: (value) => objectOf([value]) }),
  ];
}

function checkDefault(schema: StructuralSchema, { path, objectOf, isMeta, metadata }: DefaultPlace): FieldError[] {
  const fallback = memberOf(schema, "default") ?? null;
  if (fallback === null) return [];
  const field = `${path}.default`;
  if (isMeta) {
    const problem = problemOfMeta(objectOf(fallback), metadata);
    if (problem !== undefined) return [invalidError(field, fallback, `must result in valid metadata: ${problem}`)];
    return checkValue(schema, field, fallback);
  }
  // Pruning works on objects, so wrap the value in one.
  const wrapper = { type: "object", properties: { value: schema } };
  const wrapped: JsonObject = { value: clone(fallback) };
  pruneUnknownFields(wrapper, wrapped);
  const isPruned = deepEqual(wrapped["value"], fallback);
  const ofFields = isPruned ? [] : [invalidError(field, fallback, "must not have unknown fields")];
  const misfit = misfitOfEmbedded(schema, fallback, { path: field, metadata });
  if (misfit !== undefined) return [...ofFields, misfit];
  const ofResources = checkEmbeddedResources(schema, fallback, { path: field, metadata });
  if (ofResources.length > 0) return [...ofFields, ...ofResources];
  return [...ofFields, ...checkValue(schema, field, fallback)];
}

function checkValue(schema: StructuralSchema, field: string, value: JsonValue): FieldError[] {
  // In Kubernetes 1.36, ToKubeOpenAPI drops x-kubernetes-int-or-string.
  const { errors } = validateSchema(withoutIntOrString(schema), { path: "", value });
  if (errors.length === 0) return checkRules(schema, field, value);
  return errors.map((error) => ({ ...error, field: error.field === "" ? field : `${field}.${error.field}` }));
}

// Rules that do not compile are skipped here; they are reported at the rule itself.
function checkRules(schema: StructuralSchema, field: string, value: JsonValue): FieldError[] {
  const wrapper = { type: "object", properties: { value: schema } };
  const { errors } = evaluateRules(wrapper, { object: { value }, found: [] });
  return errors.map((error) => ({ ...error, field: `${field}${error.field.slice("value".length)}` }));
}

function withoutIntOrString<Value extends JsonValue>(value: Value): Value {
  if (Array.isArray(value)) return value.map(withoutIntOrString) as Value;
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value as JsonObject).filter(([name]) => name !== "x-kubernetes-int-or-string");
  return Object.fromEntries(entries.map(([name, member]) => [name, withoutIntOrString(member)])) as Value;
}

function problemOfMeta(resource: JsonObject, metadata: MetadataRules): string | undefined {
  const schema = { [EMBEDDED]: true };
  const misfit = misfitOfEmbedded(schema, resource, { metadata });
  if (misfit !== undefined) return fieldErrorText(misfit);
  const errors = checkEmbeddedResources(schema, resource, { metadata }).map(fieldErrorText);
  return errors.length > 1 ? `[${errors.join(", ")}]` : errors[0];
}

function resourceWith(value: JsonValue): JsonObject {
  return { apiVersion: "validation/v1", kind: "Validation", ...(isJsonObject(value) ? value : {}) };
}
