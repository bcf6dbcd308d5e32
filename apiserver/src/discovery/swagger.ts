// OpenAPI v2, for clients without support for v3: the definitions of all kinds and the paths with their operations.
import { isDeepStrictEqual } from "node:util";
import { type JsonObject, type JsonValue, arrayAt, isObject, objectAt } from "../json.js";
import { delimited, integerField, textField, varint } from "../protobuf-writer.js";
import { yamlLibrary } from "../yaml-library.js";
import { BEARER } from "./builtin-documents.js";
import { GIT_VERSION, type Group } from "./groups.js";
import { openApiDocuments } from "./openapi.js";

const SCHEMAS = "#/components/schemas/";
const DEFINITIONS = "#/definitions/";

/** Returns the OpenAPI v2 document, which merges all v3 documents. */
export function swaggerDocument(groups: Group[]): JsonObject {
  const documents = openApiDocuments(groups).map(({ body }) => JSON.parse(body) as JsonObject);
  const definitions: JsonObject = {};
  const paths: JsonObject = {};
  for (const document of documents) {
    Object.assign(definitions, objectAt(objectAt(document, "components"), "schemas"));
    for (const [path, item] of Object.entries(objectAt(document, "paths") ?? {}))
      paths[path] = isObject(item) ? pathItemOf(item) : {};
  }
  return {
    swagger: "2.0",
    info: { title: "Kubernetes", version: GIT_VERSION },
    paths,
    definitions: schemasInVersion2(definitions),
    securityDefinitions: { BearerToken: BEARER },
    security: [{ BearerToken: [] }],
  };
}

function pathItemOf({ parameters, ...item }: JsonObject): JsonObject {
  const operations = Object.entries(item).flatMap(([method, operation]) =>
    isObject(operation) ? [[method, operationOf(operation)] as const] : [],
  );
  const ofPath = parametersOf(parameters);
  return { ...Object.fromEntries(operations), ...(ofPath.length === 0 ? {} : { parameters: ofPath }) };
}

// In v2, the schema of a parameter is inlined into the parameter.
function parametersOf(parameters: JsonValue | undefined): JsonObject[] {
  const given = Array.isArray(parameters) ? parameters.filter(isObject) : [];
  return given.map(({ schema: type, ...parameter }) => ({ ...parameter, ...(isObject(type) ? type : {}) }));
}

// In v2, an operation has its content types on top level, the request body among its parameters, and one schema per response.
function operationOf(operation: JsonObject): JsonObject {
  const { parameters, responses, requestBody, ...rest } = operation;
  const body = objectAt(isObject(requestBody) ? requestBody : undefined, "content");
  const isRequired = isObject(requestBody) && requestBody["required"] === true;
  const inBody = {
    ...{ name: "body", in: "body" },
    ...(isRequired ? { required: true } : {}),
    ...schemaIn(body),
  };
  const all = [...(body === undefined ? [] : [inBody]), ...parametersOf(parameters)];
  const answers = Object.entries(isObject(responses) ? responses : {}).map(([code, response]) => {
    const { content, ...description } = isObject(response) ? response : {};
    return [code, { ...description, ...schemaIn(isObject(content) ? content : undefined) }] as const;
  });
  const produces = inOrder(
    Object.keys(objectAt(objectAt(objectAt(operation, "responses"), "200"), "content") ?? { [ANY]: {} }),
  );
  const consumes = body === undefined ? consumesWithoutBody(operation, produces) : inOrder(Object.keys(body));
  return {
    ...(consumes.length === 0 ? {} : { consumes }),
    produces,
    schemes: ["https"],
    ...(all.length === 0 ? {} : { parameters: all }),
    responses: Object.fromEntries(answers),
    ...rest,
  };
}

// As kube-apiserver publishes it, discovery, the version, and custom resources consume the content types that they produce.
function consumesWithoutBody(operation: JsonObject, produces: string[]): string[] {
  const isBuiltinKind = Object.hasOwn(operation, "x-kubernetes-action") && !isDeepStrictEqual(produces, CUSTOM);
  if (isBuiltinKind) return [ANY];
  return produces.length > 1 || operation["operationId"] === "getCodeVersion" ? produces : [];
}

// Restores the order of content types in v2; v3 sorts them by name.
function inOrder(types: string[]): string[] {
  const place = (type: string) => TYPES.findIndex((known) => type.startsWith(known));
  return types.sort((a, b) => Number(a.includes(";")) - Number(b.includes(";")) || place(a) - place(b));
}

const ANY = "*/*";
const CUSTOM = ["application/json", "application/yaml"];
const TYPES = [
  "json",
  "yaml",
  "vnd.kubernetes",
  "json-patch",
  "merge-patch",
  "strategic-merge-patch",
  "apply-patch",
].map((type) => `application/${type}`);

function schemaIn(content: JsonObject | undefined): JsonObject {
  const schema = objectAt(Object.values(content ?? {}).find(isObject), "schema");
  return schema === undefined ? {} : { schema: inVersion2(schema) };
}

/** Converts a schema to v2: drops unsupported keywords and unwraps a reference that is the only element of an allOf. */
function inVersion2(schema: JsonObject): JsonObject {
  const { allOf, oneOf, type: given, $ref, nullable, required: _, ...rest } = schema;
  const isFree = schema["x-kubernetes-preserve-unknown-fields"] === true;
  const only = Array.isArray(allOf) && allOf.length === 1 && isObject(allOf[0]) ? allOf[0] : undefined;
  const reference = only?.["$ref"] ?? $ref;
  const type = typeof reference === "string" || nullable === true ? undefined : (given ?? (oneOf && "string"));
  // Old clients reject the fields of schemas without a type, and schemas with preserve-unknown-fields that have a type.
  const leftOut = nullable === true || isFree ? [...LEFT_OUT, "items", "properties"] : LEFT_OUT;
  const hasType = type !== undefined && !(isFree && (type === "object" || type === "array"));
  const names = arrayAt(schema, "required")?.filter((name) => !isNullable(schema, String(name))) ?? [];
  return {
    ...Object.fromEntries(
      Object.entries(rest)
        .filter(([key]) => !leftOut.includes(key))
        .map(([key, member]) => [key, memberInVersion2(key, member)]),
    ),
    ...(typeof reference === "string" ? { $ref: reference.replace(SCHEMAS, DEFINITIONS) } : {}),
    ...(hasType ? { type } : {}),
    ...(names.length === 0 ? {} : { required: names }),
  };
}

function isNullable(schema: JsonObject, name: string): boolean {
  return objectAt(objectAt(schema, "properties"), name)?.["nullable"] === true;
}

function memberInVersion2(key: string, member: JsonValue): JsonValue {
  if (!isObject(member)) return member;
  if (key === "properties") return schemasInVersion2(member);
  return key === "items" || key === "additionalProperties" ? inVersion2(member) : member;
}

function schemasInVersion2(schemas: JsonObject): JsonObject {
  const entries = Object.entries(schemas).map(([name, schema]) => [
    name,
    isObject(schema) ? inVersion2(schema) : schema,
  ]);
  return Object.fromEntries(entries) as JsonObject;
}

const LEFT_OUT = ["default", "anyOf", "not"];

// OpenAPI v2 in protobuf (gnostic), which kubectl before 1.27 and OpenAPISchema() of client-go request.
// https://github.com/google/gnostic-models/blob/main/openapiv2/OpenAPIv2.proto

/** The type of a field; `[]` marks a repeated field, `Named<…>` a map that is encoded as a list of name and value. */
type FieldType = string;
/** The fields of a message, by JSON key. */
type Message = Readonly<Record<string, readonly [number: number, type: FieldType]>>;

// The messages that Kubernetes uses, with the fields in order of their numbers. The key "" stands for all extensions (`x-…`).
const MESSAGES: Readonly<Record<string, Message>> = {
  Document: {
    ...{ swagger: [1, "text"], info: [2, "Info"], paths: [8, "Paths"], definitions: [9, "Named<Schema>"] },
    ...{ parameters: [10, "Named<Parameter>"], security: [12, "Named<Texts>[]"] },
    securityDefinitions: [13, "Named<SecurityDefinition>"],
  },
  Info: { title: [1, "text"], version: [2, "text"] },
  PathItem: {
    ...{ get: [2, "Operation"], put: [3, "Operation"], post: [4, "Operation"], delete: [5, "Operation"] },
    ...{ options: [6, "Operation"], head: [7, "Operation"], patch: [8, "Operation"] },
    parameters: [9, "ParametersItem[]"],
  },
  Operation: {
    ...{ tags: [1, "text[]"], summary: [2, "text"], description: [3, "text"], operationId: [5, "text"] },
    ...{ produces: [6, "text[]"], consumes: [7, "text[]"], parameters: [8, "ParametersItem[]"] },
    ...{ responses: [9, "Responses"], schemes: [10, "text[]"], deprecated: [11, "bool"], "": [13, "any"] },
  },
  Reference: { $ref: [1, "text"] },
  BodyParameter: {
    ...{ description: [1, "text"], name: [2, "text"], in: [3, "text"], required: [4, "bool"] },
    ...{ schema: [5, "Schema"], "": [6, "any"] },
  },
  QueryParameter: {
    ...{ required: [1, "bool"], in: [2, "text"], description: [3, "text"], name: [4, "text"] },
    ...{ type: [6, "text"], format: [7, "text"], uniqueItems: [20, "bool"], "": [23, "any"] },
  },
  PathParameter: {
    ...{ required: [1, "bool"], in: [2, "text"], description: [3, "text"], name: [4, "text"] },
    ...{ type: [5, "text"], format: [6, "text"], uniqueItems: [19, "bool"], "": [22, "any"] },
  },
  Response: { description: [1, "text"], schema: [2, "SchemaItem"], "": [5, "any"] },
  Schema: {
    ...{ $ref: [1, "text"], format: [2, "text"], title: [3, "text"], description: [4, "text"], default: [5, "yaml"] },
    ...{ multipleOf: [6, "double"], maximum: [7, "double"], exclusiveMaximum: [8, "bool"] },
    ...{ minimum: [9, "double"], exclusiveMinimum: [10, "bool"], maxLength: [11, "int"], minLength: [12, "int"] },
    ...{ pattern: [13, "text"], maxItems: [14, "int"], minItems: [15, "int"], uniqueItems: [16, "bool"] },
    ...{ maxProperties: [17, "int"], minProperties: [18, "int"], required: [19, "text[]"], enum: [20, "yaml[]"] },
    ...{ additionalProperties: [21, "Additional"], type: [22, "Texts"], items: [23, "Items"] },
    ...{ allOf: [24, "Schema[]"], properties: [25, "Named<Schema>"], example: [30, "yaml"], "": [31, "any"] },
  },
  ApiKey: { type: [1, "text"], name: [2, "text"], in: [3, "text"], description: [4, "text"] },
};

/** Encodes an OpenAPI v2 document as protobuf. */
export function swaggerProtobuf(document: JsonObject): Buffer {
  written.clear();
  return Buffer.concat(partsOf("Document", document));
}

function partsOf(name: string, value: JsonValue): Buffer[] {
  const message = MESSAGES[name];
  if (message === undefined) return wrapped(name, value);
  if (!isObject(value)) return [];
  return Object.entries(message).flatMap(([member, [number, type]]) => {
    if (member === "") return extensionsOf(number, value);
    const given = value[member];
    if (given === undefined) return [];
    if (!type.endsWith("[]")) return fieldOf(number, type, given);
    return (Array.isArray(given) ? given : []).flatMap((each) => fieldOf(number, type.slice(0, -2), each));
  });
}

// Messages that are inlined in JSON.
function wrapped(name: string, value: JsonValue): Buffer[] {
  const [, of] = /^Named<(.*)>$/.exec(name) ?? [];
  if (of !== undefined) return namedOf(1, of, value);
  switch (name) {
    case "Paths":
      return namedOf(2, "PathItem", value);
    case "Responses":
      return namedOf(1, "ResponseValue", value);
    case "SchemaItem":
      return fieldOf(1, "Schema", value);
    case "ResponseValue":
      return fieldOf(1, "Response", value);
    case "Texts":
      return [value].flat().flatMap((text) => fieldOf(1, "text", text));
    case "Items":
      return [value].flat().flatMap((item) => fieldOf(1, "Schema", item));
    case "Additional":
      return typeof value === "boolean" ? fieldOf(2, "bool", value) : fieldOf(1, "Schema", value);
    case "ParametersItem":
      return isObject(value) && "$ref" in value ? fieldOf(2, "Reference", value) : fieldOf(1, "Parameter", value);
    case "Parameter":
      return isIn(value, "body") ? fieldOf(1, "BodyParameter", value) : fieldOf(2, "NonBodyParameter", value);
    case "NonBodyParameter":
      return isIn(value, "query") ? fieldOf(3, "QueryParameter", value) : fieldOf(4, "PathParameter", value);
    case "SecurityDefinition":
      return fieldOf(2, "ApiKey", value);
    default:
      throw new Error(`there is no message ${name}`);
  }
}

function isIn(parameter: JsonValue, place: string): boolean {
  return isObject(parameter) && parameter["in"] === place;
}

function namedOf(number: number, type: FieldType, members: JsonValue): Buffer[] {
  if (!isObject(members)) return [];
  return Object.entries(members).flatMap(([name, value]) =>
    delimited(number, [...fieldOf(1, "text", name), ...fieldOf(2, type, value)]),
  );
}

function extensionsOf(number: number, object: JsonObject): Buffer[] {
  return Object.entries(object)
    .filter(([name]) => name.startsWith("x-"))
    .flatMap(([name, value]) => delimited(number, [...fieldOf(1, "text", name), ...fieldOf(2, "yaml", value)]));
}

// As in proto3, empty strings and zeros are omitted.
function fieldOf(number: number, type: FieldType, value: JsonValue): Buffer[] {
  switch (type) {
    case "text":
      return value === "" ? [] : textField(number, String(value));
    case "bool":
      return value === true ? integerField(number, 1) : [];
    case "int":
      return value === 0 ? [] : integerField(number, Number(value));
    case "double":
      return value === 0 ? [] : [varint(number * 8 + 1), doubleOf(Number(value))];
    case "yaml":
      return delimited(number, fieldOf(2, "text", yamlOf(value)));
    default:
      return delimited(number, partsOf(type, value));
  }
}

function doubleOf(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return bytes;
}

// A few distinct values occur thousands of times, so their YAML is cached.
const written = new Map<string, string>();

function yamlOf(value: JsonValue): string {
  const json = JSON.stringify(value);
  const known = written.get(json);
  if (known !== undefined) return known;
  const text = yamlLibrary().stringify(value, { lineWidth: 0, indentSeq: false, singleQuote: true });
  // Go's YAML encoder writes empty strings in double quotes.
  const yaml = text.replace(/(^|: |- )''$/gm, '$1""');
  written.set(json, yaml);
  return yaml;
}
