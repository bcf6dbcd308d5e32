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

function pathItemOf(item: JsonObject): JsonObject {
  const operations = Object.entries(item).flatMap(([method, operation]) =>
    isObject(operation) ? [[method, operationOf(operation)] as const] : [],
  );
  return Object.fromEntries(operations);
}

// Version 2 has the schema of an answer beside its description, and the type of a parameter in the parameter itself.
function operationOf(operation: JsonObject): JsonObject {
  const { parameters, responses, ...rest } = operation;
  const content = objectAt(objectAt(objectAt(objectAt(operation, "responses"), "200"), "content"), "application/json");
  const schema = inVersion2(objectAt(content, "schema") ?? {});
  const given = Array.isArray(parameters) ? parameters.filter(isObject) : [];
  return {
    consumes: ["*/*"],
    produces: ["application/json", "application/yaml"],
    schemes: ["https"],
    ...(given.length === 0
      ? {}
      : {
          parameters: given.map(({ schema: type, ...parameter }) => ({
            ...parameter,
            ...(isObject(type) ? type : {}),
          })),
        }),
    ...(responses === undefined ? {} : { responses: { "200": { description: "OK", schema } } }),
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
