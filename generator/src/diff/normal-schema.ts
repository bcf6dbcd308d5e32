// The normal form of a structural schema. Schemas that the API server treats alike have equal normal forms. The comparison walks them, so whatever
// the normal form omits is never reported, and whatever it keeps always is.
import { type JsonObject, type JsonValue, exactJson, isJsonObject, isKnownFormat } from "@gen-operator/schema";
import { canonicalExpression } from "@gen-operator/schema/cel";
import type { RawSchema } from "../model/project-model.js";
import { isRecord, ownSchema, schemasOf } from "../model/schema.js";
import type { Crd, CrdVersion } from "../read/crd/read-crds.js";

/** A schema in normal form. */
export interface NormalSchema {
  /** All other keywords, with their values in normal form. */
  readonly keywords: ReadonlyMap<string, JsonValue>;
  /** Fields by name. A field that is only listed in `required` has no schema. */
  readonly fields: ReadonlyMap<string, NormalField>;
  readonly items?: NormalSchema;
  /** Handling of undeclared fields. */
  readonly others: OtherFields;
}

export interface NormalField {
  readonly isRequired: boolean;
  readonly schema?: NormalSchema;
}

/**
 * Handling of undeclared fields: `dropped` is the default (pruning), `kept` is x-kubernetes-preserve-unknown-fields, `any` and `refused` are
 * additionalProperties true and false, `checked` is additionalProperties with a schema.
 */
export type OtherFields =
  | { readonly kind: "dropped" | "kept" | "any" | "refused" }
  | { readonly kind: "checked"; readonly schema: NormalSchema; readonly isKept: boolean };

export interface Bound extends JsonObject {
  readonly limit: number;
  readonly isExclusive: boolean;
}

/** A rule of x-kubernetes-validations in normal form. */
export interface NormalRule extends JsonObject {
  readonly rule: string;
}

/** Type of values that may be an integer or a string. */
const INT_OR_STRING = "int-or-string";
/** Documentation, which does not affect validation. */
const DOCUMENTATION: ReadonlySet<string> = new Set(["description", "title", "externalDocs", "example"]);
/** Keywords that the normal form represents in other fields. */
const STRUCTURE: ReadonlySet<string> = new Set([
  ...["properties", "required", "items", "additionalProperties", "x-kubernetes-preserve-unknown-fields"],
  ...["x-kubernetes-int-or-string", "exclusiveMinimum", "exclusiveMaximum"],
  ...["x-kubernetes-list-type", "x-kubernetes-list-map-keys"],
]);
/** Values that are equivalent to an absent keyword. */
const DEFAULTS: ReadonlyMap<string, JsonValue> = new Map<string, JsonValue>([
  ...["type", "format", "pattern"].map((keyword): [string, JsonValue] => [keyword, ""]),
  ...["nullable", "uniqueItems", "x-kubernetes-embedded-resource"].map((keyword): [string, JsonValue] => [
    keyword,
    false,
  ]),
  ...["minLength", "minItems", "minProperties"].map((keyword): [string, JsonValue] => [keyword, 0]),
  ["x-kubernetes-map-type", "granular"],
  // A null default is equivalent to none.
  ["default", null],
]);
/** Types to which a keyword applies. A keyword that is not listed applies to all types. */
const APPLIES_TO: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ...["pattern", "minLength", "maxLength"].map((keyword) => [keyword, ["string", INT_OR_STRING]] as const),
  ...["minimum", "maximum", "multipleOf"].map((keyword) => [keyword, ["integer", "number", INT_OR_STRING]] as const),
  ...["minItems", "maxItems"].map((keyword) => [keyword, ["array"]] as const),
  ...["minProperties", "maxProperties", "x-kubernetes-map-type"].map((keyword) => [keyword, ["object"]] as const),
]);
/** Formats that are assumed if none is set, by type. */
const DEFAULT_FORMATS: ReadonlyMap<string, string> = new Map([
  ["integer", "int64"],
  ["number", "double"],
]);
/** Fields that the root and embedded resources have implicitly. */
const IMPLIED: ReadonlyMap<string, string> = new Map([
  ["apiVersion", "string"],
  ["kind", "string"],
  ["metadata", "object"],
]);

/** Returns the normal form of the schema of a version. */
export function normalizeSchema(schema: RawSchema): NormalSchema {
  return normalize({ ...schema, type: "object" }, { isResource: true, isRoot: true });
}

interface Role {
  readonly isResource?: boolean;
  readonly isRoot?: boolean;
}

function normalize(schema: RawSchema, role: Role = {}): NormalSchema {
  const isResource = role.isResource === true || schema["x-kubernetes-embedded-resource"] === true;
  const items = ownSchema(schema, "items");
  return {
    keywords: new Map(keywordsOf(schema)),
    fields: fieldsOf(schema, { ...role, isResource }),
    ...(items === undefined ? {} : { items: normalize(items) }),
    others: othersOf(schema),
  };
}

function fieldsOf(schema: RawSchema, { isResource, isRoot }: Role): Map<string, NormalField> {
  const required = new Set(listOf(schema["required"]).filter((name) => typeof name === "string"));
  const declared = schemasOf(schema, "properties");
  const names = [...new Set([...declared.keys(), ...required])].filter((name) => {
    const type = isResource === true ? IMPLIED.get(name) : undefined;
    if (type === undefined) return true;
    const own = declared.get(name);
    const isImplied = own === undefined || Object.keys(own).every((each) => each === "type" || DOCUMENTATION.has(each));
    // The API server requires these fields of every object, and all except metadata of an embedded resource.
    return !isImplied || (required.has(name) && isRoot !== true && name === "metadata");
  });
  return new Map(
    names.map((name) => {
      const own = declared.get(name);
      return [
        name,
        { isRequired: required.has(name), ...(own === undefined ? {} : { schema: normalize(own) }) },
      ] as const;
    }),
  );
}

function othersOf(schema: RawSchema): OtherFields {
  const isKept = schema["x-kubernetes-preserve-unknown-fields"] === true;
  const own = Object.hasOwn(schema, "additionalProperties") ? schema["additionalProperties"] : undefined;
  if (isRecord(own)) return { kind: "checked", schema: normalize(own), isKept };
  if (own === true) return { kind: "any" };
  if (own === false) return { kind: "refused" };
  return { kind: isKept ? "kept" : "dropped" };
}

function* keywordsOf(schema: RawSchema): Generator<[string, JsonValue]> {
  const type = typeOf(schema);
  if (type !== undefined) yield ["type", type];
  const listType = (schema["x-kubernetes-list-type"] ?? "atomic") as JsonValue;
  const keys = sortedSet(listOf(schema["x-kubernetes-list-map-keys"]));
  if (listType !== "atomic" || keys.length > 0) yield ["x-kubernetes-list-type", { type: listType, keys }];
  for (const keyword of Object.keys(schema)) {
    if (keyword === "type" || STRUCTURE.has(keyword) || DOCUMENTATION.has(keyword)) continue;
    const value = valueOf(keyword, schema, type);
    if (value !== undefined) yield [keyword, value];
  }
}

/** Returns the type as used in the comparison; undefined for any type. */
function typeOf(schema: RawSchema): string | undefined {
  if (schema["x-kubernetes-int-or-string"] === true) return INT_OR_STRING;
  return typeof schema["type"] === "string" && schema["type"] !== "" ? schema["type"] : undefined;
}

/** Returns the value of a keyword in normal form; undefined if the keyword has no effect. */
function valueOf(keyword: string, schema: RawSchema, type: string | undefined): JsonValue | undefined {
  const value = schema[keyword] as JsonValue | undefined;
  if (value === undefined || value === null || value === DEFAULTS.get(keyword)) return undefined;
  if (type !== undefined && APPLIES_TO.get(keyword)?.includes(type) === false) return undefined;
  switch (keyword) {
    case "format":
      return value === DEFAULT_FORMATS.get(type ?? "") ? undefined : value;
    case "multipleOf":
      return value === 1 && type === "integer" ? undefined : value;
    case "minimum":
      return boundOf(value, { isExclusive: schema["exclusiveMinimum"] === true, step: type === "integer" ? 1 : 0 });
    case "maximum":
      return boundOf(value, { isExclusive: schema["exclusiveMaximum"] === true, step: type === "integer" ? -1 : 0 });
    case "enum":
      return emptyAsAbsent(sortedSet(listOf(value)));
    case "anyOf":
    case "allOf":
      if (isSpellingOfIntOrString(schema, keyword)) return undefined;
      return emptyAsAbsent(sortedSet(branchesOf(value)));
    case "oneOf":
      return emptyAsAbsent(branchesOf(value).sort(byText));
    case "not":
      return isRecord(value) ? branchOf(value) : value;
    case "x-kubernetes-validations":
      return emptyAsAbsent(sortedSet(listOf(value).map(ruleOf)));
    default:
      return canonical(value);
  }
}

function boundOf(limit: JsonValue, { isExclusive, step }: { isExclusive: boolean; step: number }): JsonValue {
  if (typeof limit !== "number") return limit;
  // For integers, an exclusive bound of 4 equals an inclusive bound of 5 (or 3).
  return isExclusive && step !== 0 && Number.isSafeInteger(limit)
    ? { limit: limit + step, isExclusive: false }
    : { limit, isExclusive };
}

// x-kubernetes-int-or-string may be accompanied by an equivalent anyOf for older tools.
function isSpellingOfIntOrString(schema: RawSchema, keyword: string): boolean {
  if (schema["x-kubernetes-int-or-string"] !== true) return false;
  const types = (value: unknown) => JSON.stringify(value) === '[{"type":"integer"},{"type":"string"}]';
  if (keyword === "anyOf") return types(schema["anyOf"]);
  const [first, ...more] = listOf(schema["allOf"]);
  return more.length === 0 && isRecord(first) && Object.keys(first).length === 1 && types(first["anyOf"]);
}

function branchesOf(value: JsonValue): JsonValue[] {
  return listOf(value).map((branch) => (isRecord(branch) ? branchOf(branch) : branch));
}

/** Returns a branch of a logical keyword in normal form. It is JSON because branches are compared as a whole. */
function branchOf(schema: RawSchema): JsonValue {
  return schemaJson(normalize(schema));
}

const jsonOf = new WeakMap<NormalSchema, JsonObject>();

/** Returns a schema in normal form as OpenAPI. Equal results mean equivalent schemas. */
export function schemaJson(schema: NormalSchema): JsonObject {
  let json = jsonOf.get(schema);
  if (json !== undefined) return json;
  const { keywords, fields, items, others } = schema;
  const required = [...fields].flatMap(([name, { isRequired }]) => (isRequired ? [name] : []));
  const declared = [...fields].flatMap(([name, field]): [string, JsonValue][] =>
    field.schema === undefined ? [] : [[name, schemaJson(field.schema)]],
  );
  json = sorted({
    ...Object.fromEntries([...keywords].flatMap(([keyword, value]) => Object.entries(keywordJson(keyword, value)))),
    ...(declared.length === 0 ? {} : { properties: sorted(Object.fromEntries(declared)) }),
    ...(required.length === 0 ? {} : { required: required.sort() }),
    ...(items === undefined ? {} : { items: schemaJson(items) }),
    ...othersJson(others),
  });
  jsonOf.set(schema, json);
  return json;
}

function keywordJson(keyword: string, value: JsonValue): JsonObject {
  if (keyword === "x-kubernetes-list-type" && isJsonObject(value))
    return { [keyword]: value["type"] ?? null, "x-kubernetes-list-map-keys": value["keys"] ?? null };
  if ((keyword !== "minimum" && keyword !== "maximum") || !isBound(value)) return { [keyword]: value };
  const exclusive = keyword === "minimum" ? "exclusiveMinimum" : "exclusiveMaximum";
  return { [keyword]: value.limit, ...(value.isExclusive ? { [exclusive]: true } : {}) };
}

function isBound(value: JsonValue): value is Bound {
  return isJsonObject(value) && typeof value["limit"] === "number" && typeof value["isExclusive"] === "boolean";
}

/** Returns the handling of undeclared fields as OpenAPI keywords. */
export function othersJson(others: OtherFields): JsonObject {
  const kept = { "x-kubernetes-preserve-unknown-fields": true };
  if (others.kind === "checked")
    return { additionalProperties: schemaJson(others.schema), ...(others.isKept ? kept : {}) };
  if (others.kind === "kept") return kept;
  return others.kind === "dropped" ? {} : { additionalProperties: others.kind === "any" };
}

/** Returns a field in normal form as JSON. */
export function fieldJson({ isRequired, schema }: NormalField): JsonObject {
  return { ...(isRequired ? { isRequired } : {}), ...(schema === undefined ? {} : { schema: schemaJson(schema) }) };
}

function ruleOf(value: JsonValue): JsonValue {
  if (!isRecord(value)) return value;
  const { rule, message, messageExpression, reason, fieldPath, optionalOldSelf, ...others } = value as JsonObject;
  return canonical({
    ...others,
    rule: expressionOf(rule),
    ...stated("message", typeof message === "string" ? message.trim() : message, ""),
    ...stated("messageExpression", expressionOf(messageExpression), ""),
    ...stated("reason", reason, "FieldValueInvalid"),
    ...stated("fieldPath", fieldPath, ""),
    ...stated("optionalOldSelf", optionalOldSelf, false),
  });
}

function stated(name: string, value: JsonValue | undefined, fallback: JsonValue): JsonObject {
  return value === undefined || value === null || value === fallback ? {} : { [name]: value };
}

function expressionOf(value: JsonValue | undefined): JsonValue {
  return typeof value === "string" ? canonicalExpression(value) : (value ?? "");
}

/** Returns whether the API server checks a format of strings or numbers. */
export function isCheckedFormat(format: string, type: JsonValue | undefined): boolean {
  if (type === "integer") return format === "int32" || format === "int64";
  if (type === "number") return format === "float" || format === "double";
  return isKnownFormat(format, type ?? "string");
}

/** Copies a value with the members of its objects sorted by name. */
function canonical(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(canonical);
  if (!isJsonObject(value)) return value;
  return sorted(Object.fromEntries(Object.entries(value).map(([name, member]) => [name, canonical(member)])));
}

function sorted(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).sort(([one], [other]) => (one < other ? -1 : 1)));
}

function sortedSet(values: readonly JsonValue[]): JsonValue[] {
  const byJson = new Map(values.map((value) => [exactJson(canonical(value)), canonical(value)]));
  return [...byJson.values()].sort(byText);
}

function byText(one: JsonValue, other: JsonValue): number {
  const [left, right] = [one, other].map((value) => exactJson(value)) as [string, string];
  return left < right ? -1 : Number(left > right);
}

function emptyAsAbsent(values: JsonValue[]): JsonValue[] | undefined {
  return values.length === 0 ? undefined : values;
}

function listOf(value: unknown): JsonValue[] {
  return Array.isArray(value) ? (value as JsonValue[]) : [];
}

// The normal form of a CustomResourceDefinition: with the defaults of the API server, and without parts that have no effect. Every difference between
// two normal forms is reported, including fields without a rule.

/** Parts of a definition or of a version, by path. */
export type Parts = ReadonlyMap<string, JsonValue>;

/** Returns the parts of a definition except its group, plural, and versions, by their path in the definition. */
export function partsOfCrd(crd: Crd): Parts {
  const spec = objectAt(crd.document, "spec");
  const { group: _group, versions: _versions, names, scope, conversion, preserveUnknownFields, ...others } = spec;
  const { plural: _plural, ...otherNames } = isJsonObject(names) ? names : {};
  return new Map<string, JsonValue>([
    ["spec.scope", scope ?? null],
    ...entriesOf("spec.names", {
      ...otherNames,
      singular: crd.singular,
      listKind: crd.listKind,
      shortNames: setOf(otherNames["shortNames"]),
      categories: setOf(otherNames["categories"]),
    }),
    ...entriesOf("spec.conversion", conversionOf(conversion)),
    ...(preserveUnknownFields === true ? [["spec.preserveUnknownFields", true] as const] : []),
    ...entriesOf("spec", others),
  ]);
}

/** Returns the parts of a version except its name and schema, by their path in the version. */
export function partsOfVersion(crd: Crd, { name }: CrdVersion): Parts {
  const versions = objectAt(crd.document, "spec")["versions"];
  const version = (Array.isArray(versions) ? versions : []).find(
    (each): each is JsonObject => isJsonObject(each) && each["name"] === name,
  );
  const {
    name: _name,
    schema,
    subresources,
    additionalPrinterColumns,
    selectableFields,
    deprecated,
    ...others
  } = version ?? {};
  const { openAPIV3Schema: _schema, ...besideSchema } = isJsonObject(schema) ? schema : {};
  const { status, scale, ...otherSubresources } = isJsonObject(subresources) ? subresources : {};
  return new Map<string, JsonValue>([
    ...entriesOf("schema", besideSchema),
    ...(isJsonObject(status) ? [["subresources.status", status] as const] : []),
    ...(isJsonObject(scale) ? [["subresources.scale", withoutEmpty(scale)] as const] : []),
    ...entriesOf("subresources", otherSubresources),
    ...listed("additionalPrinterColumns", columnsOf(additionalPrinterColumns)),
    ...listed("selectableFields", setOf(selectableFields)),
    ...(deprecated === true ? [["deprecated", true] as const] : []),
    ...entriesOf("", others),
  ]);
}

// Adds the defaults of the API server.
function conversionOf(conversion: JsonValue | undefined): JsonObject {
  const { strategy = "None", webhook, ...others } = isJsonObject(conversion) ? conversion : {};
  if (!isJsonObject(webhook)) return { strategy, ...others };
  const { clientConfig, ...rest } = webhook;
  if (!isJsonObject(clientConfig)) return { strategy, webhook, ...others };
  const { service, ...config } = clientConfig;
  const withPort = isJsonObject(service) ? { service: { port: 443, ...withoutEmpty(service) } } : {};
  return { strategy, webhook: { ...rest, clientConfig: { ...withoutEmpty(config), ...withPort } }, ...others };
}

// Columns are compared by name; their order is kept because it is that of the printed table.
function columnsOf(columns: JsonValue | undefined): JsonValue[] {
  return (Array.isArray(columns) ? columns : []).map((column) => {
    if (!isJsonObject(column)) return column;
    const { priority = 0, description: _description, ...others } = column;
    return canonical({ ...withoutEmpty(others), ...(priority === 0 ? {} : { priority }) });
  });
}

function entriesOf(path: string, object: JsonObject): [string, JsonValue][] {
  return Object.entries(object).flatMap(([name, value]) => {
    const isEmpty = value === null || value === "" || (Array.isArray(value) && value.length === 0);
    return isEmpty ? [] : [[path === "" ? name : `${path}.${name}`, canonical(value)] as [string, JsonValue]];
  });
}

function listed(path: string, values: JsonValue[]): [string, JsonValue][] {
  return values.length === 0 ? [] : [[path, values]];
}

function setOf(values: JsonValue | undefined): JsonValue[] {
  const texts = (Array.isArray(values) ? values : []).map((value) => JSON.stringify(canonical(value)));
  return [...new Set(texts)].sort().map((text) => JSON.parse(text) as JsonValue);
}

function withoutEmpty(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null && value !== ""));
}

function objectAt(object: object, member: string): JsonObject {
  const value = (object as JsonObject)[member];
  return isJsonObject(value) ? value : {};
}
