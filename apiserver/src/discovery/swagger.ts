// OpenAPI v2, for clients that know no v3: the definitions of all kinds, and the paths that say what may be done with each.
import { isObject, objectAt, type JsonObject, type JsonValue } from "../json.js";
import type { Group } from "./groups.js";
import { openApiDocument } from "./openapi.js";
import { GIT_VERSION } from "./version.js";

const SCHEMAS = "#/components/schemas/";
const DEFINITIONS = "#/definitions/";

/** Returns the whole document: everything that the documents of v3 say, in one. */
export function swaggerDocument(groups: Group[]): string {
  const documents = groups
    .flatMap(({ versions }) => versions)
    .map((groupVersion) => JSON.parse(openApiDocument(groupVersion).body) as JsonObject);
  const definitions: JsonObject = {};
  const paths: JsonObject = {};
  for (const document of documents) {
    Object.assign(definitions, objectAt(objectAt(document, "components"), "schemas"));
    for (const [path, item] of Object.entries(objectAt(document, "paths") ?? {}))
      paths[path] = isObject(item) ? pathItemOf(item) : {};
  }
  return JSON.stringify({
    swagger: "2.0",
    info: { title: "Kubernetes", version: GIT_VERSION },
    paths,
    definitions: inVersion2(definitions),
    securityDefinitions: { BearerToken: { type: "apiKey", name: "authorization", in: "header" } },
    security: [{ BearerToken: [] }],
  });
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
  const answer = objectAt(objectAt(objectAt(operation, "responses"), "200"), "content");
  const schemaIn = (content: JsonObject | undefined): JsonValue =>
    inVersion2(objectAt(Object.values(content ?? {}).find(isObject), "schema") ?? {});
  const body = objectAt(isObject(requestBody) ? requestBody : undefined, "content");
  const isRequired = isObject(requestBody) && requestBody["required"] === true;
  const inBody = {
    ...{ name: "body", in: "body" },
    ...(isRequired ? { required: true } : {}),
    schema: schemaIn(body),
  };
  const all = [...(body === undefined ? [] : [inBody]), ...parametersOf(parameters)];
  const types = Object.keys(body ?? {});
  return {
    consumes: types.length === 0 ? ["*/*"] : types,
    produces: ["application/json", "application/yaml"],
    schemes: ["https"],
    ...(all.length === 0 ? {} : { parameters: all }),
    ...(responses === undefined ? {} : { responses: { "200": { description: "OK", schema: schemaIn(answer) } } }),
    ...rest,
  };
}

// What version 2 does not know goes, and a reference that stands in an allOf for its description stands alone.
function inVersion2(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(inVersion2);
  if (!isObject(value)) return value;
  const { allOf, ...rest } = value;
  const only = Array.isArray(allOf) && allOf.length === 1 && isObject(allOf[0]) ? allOf[0] : undefined;
  const reference = only?.["$ref"] ?? rest["$ref"];
  if (typeof reference === "string") {
    const { description } = rest;
    return {
      ...(typeof description === "string" ? { description } : {}),
      $ref: reference.replace(SCHEMAS, DEFINITIONS),
    };
  }
  return Object.fromEntries(
    Object.entries(rest)
      .filter(([key]) => !LEFT_OUT.has(key))
      .map(([key, member]) => [key, inVersion2(member)]),
  );
}

const LEFT_OUT: ReadonlySet<string> = new Set(["nullable", "oneOf", "anyOf", "not"]);
