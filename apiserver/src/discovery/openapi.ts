// OpenAPI v3: the recorded documents of the built-in kinds, and those of the group versions that definitions add.
import { createHash } from "node:crypto";
import type { ServedType } from "../builtin/served-type.js";
import { isObject, memberOf, type JsonObject, type JsonValue } from "../json.js";
import { builtinDocument, builtinHashes, describedSchemas, type OpenApiDocument } from "./builtin-documents.js";
import { customPaths, PATH_SCHEMAS, SCALE_SCHEMA } from "./custom-paths.js";
import {
  DELETE_OPTIONS,
  deleteOptionsSchema,
  LIST_META,
  listSchema,
  OBJECT_META,
  publishedSchema,
  REFERENCE,
} from "./custom-schemas.js";
import type { Group, GroupVersion } from "./groups.js";

/** Lists the documents of all group versions. */
export function openApiIndex(groups: Group[]): JsonObject {
  const custom = customVersionsOf(groups).map((one) => [pathOf(one), customDocument(one).hash] as const);
  const paths = [...builtinHashes(), ...custom].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    paths: Object.fromEntries(
      paths.map(([path, hash]) => [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }]),
    ),
  };
}

/** Gives the document of a group version, or of something else that is listed, by its path; undefined if there is none. */
export function openApiDocument(path: string, groups: Group[]): OpenApiDocument | undefined {
  const known = builtinDocument(path);
  if (known !== undefined) return known;
  const groupVersion = customVersionsOf(groups).find((one) => pathOf(one) === path);
  return groupVersion === undefined ? undefined : customDocument(groupVersion);
}

/** Gives all documents, those of built-in kinds first. */
export function openApiDocuments(groups: Group[]): OpenApiDocument[] {
  const builtin = [...builtinHashes().keys()].flatMap((path) => builtinDocument(path) ?? []);
  return [...builtin, ...customVersionsOf(groups).map(customDocument)];
}

// A definition may add a kind to a built-in group version, whose document is what it was.
function customVersionsOf(groups: Group[]): GroupVersion[] {
  return groups.flatMap(({ versions }) => versions).filter((one) => !builtinHashes().has(pathOf(one)));
}

function customDocument({ types }: GroupVersion): OpenApiDocument {
  const body = JSON.stringify({
    openapi: "3.0.0",
    info: { title: "Kubernetes CRD Swagger", version: "v0.1.0" },
    paths: Object.assign(
      {},
      ...types.map((type) => customPaths(type, { root: `/${pathOf(type)}`, schema: schemaNameOf(type) })),
    ) as JsonObject,
    components: { schemas: schemasOf(types) },
  });
  return { body, hash: createHash("sha512").update(body).digest("hex").toUpperCase() };
}

function pathOf({ group, version }: GroupVersion | ServedType): string {
  return group === "" ? `api/${version}` : `apis/${group}/${version}`;
}

function schemaNameOf({ group, version, kind }: ServedType): string {
  return `${group.split(".").reverse().join(".")}.${version}.${kind}`;
}

function schemasOf(types: ServedType[]): JsonObject {
  const schemas: JsonObject = {};
  for (const type of types) {
    const name = schemaNameOf(type);
    if (type.custom === undefined) continue;
    schemas[name] = publishedSchema(type, type.custom);
    schemas[`${name}List`] = listSchema(type, type.custom, name);
    addReferenced(schemas, [OBJECT_META, LIST_META, ...PATH_SCHEMAS]);
    if (type.subresources.some(({ name }) => name === "scale")) addReferenced(schemas, [SCALE_SCHEMA]);
    addReferencedBy(schemas, schemas[name] ?? null);
  }
  return schemas;
}

function addReferenced(schemas: JsonObject, names: readonly string[]): void {
  for (const name of names) {
    if (memberOf(schemas, name) !== undefined) continue;
    const schema = memberOf(describedSchemas(), name);
    if (schema === undefined) continue;
    schemas[name] = name === DELETE_OPTIONS ? deleteOptionsSchema(schema as JsonObject) : schema;
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
