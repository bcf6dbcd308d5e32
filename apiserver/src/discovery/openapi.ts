// OpenAPI v3, as much of it as kubectl reads: the schemas of a group version, and for each of its kinds the paths that say that
// the server itself finds unknown fields.
import { createHash } from "node:crypto";
import { builtinSchemas } from "../builtin/schemas.js";
import type { ServedType } from "../builtin/served-type.js";
import { isObject, memberOf, type JsonObject, type JsonValue } from "../json.js";
import { customPaths, PATH_SCHEMAS, SCALE_SCHEMA } from "./custom-paths.js";
import { LIST_META, listSchema, OBJECT_META, publishedSchema, REFERENCE } from "./custom-schemas.js";
import type { Group, GroupVersion } from "./groups.js";
import { GIT_VERSION } from "./version.js";

const FIELD_VALIDATION = { name: "fieldValidation", in: "query", schema: { type: "string", uniqueItems: true } };

/** A document and the hash of its content. */
export interface OpenApiDocument {
  body: string;
  hash: string;
}

// The documents of built-in group versions never change; those of custom resources do with their definitions.
const documents = new WeakMap<ServedType, OpenApiDocument>();

/** Lists the documents of all group versions. */
export function openApiIndex(groups: Group[]): JsonObject {
  const paths: JsonObject = {};
  for (const groupVersion of groups.flatMap(({ versions }) => versions)) {
    const path = pathOf(groupVersion);
    paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${openApiDocument(groupVersion).hash}` };
  }
  return { paths };
}

/** Gives the document of a group version. */
export function openApiDocument(groupVersion: GroupVersion): OpenApiDocument {
  const [first] = groupVersion.types;
  const isFixed = first !== undefined && first.custom === undefined;
  const known = isFixed ? documents.get(first) : undefined;
  if (known !== undefined) return known;
  const body = JSON.stringify({
    openapi: "3.0.0",
    info: isFixed
      ? { title: "Kubernetes", version: GIT_VERSION }
      : { title: "Kubernetes CRD Swagger", version: "v0.1.0" },
    paths: Object.assign({}, ...groupVersion.types.map(pathsOf)) as JsonObject,
    components: { schemas: schemasOf(groupVersion.types) },
  });
  const document = { body, hash: createHash("sha512").update(body).digest("hex").toUpperCase() };
  if (isFixed) documents.set(first, document);
  return document;
}

/** Gives the path of a group version below the root: `api/v1`, `apis/apps/v1`. */
export function pathOf({ group, version }: GroupVersion | ServedType): string {
  return group === "" ? `api/${version}` : `apis/${group}/${version}`;
}

function pathsOf(type: ServedType): JsonObject {
  if (type.custom !== undefined) return customPaths(type, { root: `/${pathOf(type)}`, schema: schemaNameOf(type) });
  const { group, version, kind } = type;
  const collection = `/${pathOf(type)}/${type.namespaced ? "namespaces/{namespace}/" : ""}${type.plural}`;
  const reference = { $ref: REFERENCE + schemaNameOf(type) };
  const operation = (action: string, hasBody: boolean): JsonObject => ({
    ...(hasBody ? { parameters: [FIELD_VALIDATION] } : {}),
    responses: { "200": { description: "OK", content: { "application/json": { schema: reference } } } },
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": { group, version, kind },
  });
  return {
    [collection]: { get: operation("list", false), post: operation("post", true) },
    [`${collection}/{name}`]: {
      get: operation("get", false),
      put: operation("put", true),
      patch: operation("patch", true),
      delete: operation("delete", false),
    },
  };
}

function schemaNameOf(type: ServedType): string {
  const domain = type.group.split(".").reverse().join(".");
  return type.schemaName ?? `${domain}.${type.version}.${type.kind}`;
}

function schemasOf(types: ServedType[]): JsonObject {
  const schemas: JsonObject = {};
  for (const type of types) {
    const name = schemaNameOf(type);
    if (type.custom !== undefined) schemas[name] = publishedSchema(type, type.custom);
    if (type.verbs.includes("list")) schemas[`${name}List`] = listSchema(type, name);
    addReferenced(schemas, [name, OBJECT_META, LIST_META]);
    if (type.custom !== undefined) addReferenced(schemas, PATH_SCHEMAS);
    if (type.custom !== undefined && type.subresources.some(({ name }) => name === "scale"))
      addReferenced(schemas, [SCALE_SCHEMA]);
    addReferencedBy(schemas, schemas[name] ?? null);
  }
  return schemas;
}

function addReferenced(schemas: JsonObject, names: readonly string[]): void {
  for (const name of names) {
    if (memberOf(schemas, name) !== undefined) continue;
    const schema = memberOf(builtinSchemas(), name);
    if (schema === undefined) continue;
    schemas[name] = schema;
    addReferencedBy(schemas, schema);
  }
}

function addReferencedBy(schemas: JsonObject, node: JsonValue): void {
  if (Array.isArray(node)) for (const item of node) addReferencedBy(schemas, item);
  if (!isObject(node)) return;
  const reference = memberOf(node, "$ref");
  if (typeof reference === "string") addReferenced(schemas, [reference.slice(REFERENCE.length)]);
  for (const member of Object.values(node)) addReferencedBy(schemas, member);
}
