// OpenAPI v2, for clients that know no v3: the definitions of all kinds, and the paths that say what may be done with each.
import { isDeepStrictEqual } from "node:util";
import { arrayAt, isObject, objectAt, type JsonObject, type JsonValue } from "../json.js";
import type { Group } from "./groups.js";
import { BEARER } from "./builtin-documents.js";
import { openApiDocuments } from "./openapi.js";
import { GIT_VERSION } from "./version.js";

const SCHEMAS = "#/components/schemas/";
const DEFINITIONS = "#/definitions/";

/** Returns the whole document: everything that the documents of v3 say, in one. */
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

// Version 2 has the type of a parameter in the parameter itself.
function parametersOf(parameters: JsonValue | undefined): JsonObject[] {
  const given = Array.isArray(parameters) ? parameters.filter(isObject) : [];
  return given.map(({ schema: type, ...parameter }) => ({ ...parameter, ...(isObject(type) ? type : {}) }));
}

// Version 2 has the schemas of an answer and of a body beside their descriptions.
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

// Discovery, the version and the kinds of definitions consume what they produce.
function consumesWithoutBody(operation: JsonObject, produces: string[]): string[] {
  const isBuiltinKind = Object.hasOwn(operation, "x-kubernetes-action") && !isDeepStrictEqual(produces, CUSTOM);
  if (isBuiltinKind) return [ANY];
  return produces.length > 1 || operation["operationId"] === "getCodeVersion" ? produces : [];
}

// Version 3 sorts the types of contents.
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

/** A schema as version 2 has it: what it does not know goes, and a reference that stands in an allOf for its description stands alone. */
function inVersion2(schema: JsonObject): JsonObject {
  const { allOf, oneOf, type: given, $ref, nullable, required: _, ...rest } = schema;
  const isFree = schema["x-kubernetes-preserve-unknown-fields"] === true;
  const only = Array.isArray(allOf) && allOf.length === 1 && isObject(allOf[0]) ? allOf[0] : undefined;
  const reference = only?.["$ref"] ?? $ref;
  const type = typeof reference === "string" || nullable === true ? undefined : (given ?? (oneOf && "string"));
  // Old clients fail at the members of what has no type, and at free objects that have one.
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
