// OpenAPI v3: the recorded documents of built-in kinds, and generated ones for the group versions that CustomResourceDefinitions add.
import { createHash } from "node:crypto";
import type { CustomOrigin, ServedType } from "../builtin/served-type.js";
import { decodedVersions } from "../builtin/versions.js";
import { type JsonObject, type JsonValue, arrayAt, isObject, memberOf, objectAt } from "../json.js";
import { type OpenApiDocument, builtinDocument, builtinHashes, describedSchemas } from "./builtin-documents.js";
import type { Group, GroupVersion } from "./groups.js";

/** Builds the index of all documents. */
export function openApiIndex(groups: Group[]): JsonObject {
  const custom = customVersionsOf(groups).map((one) => [pathOf(one), customDocument(one).hash] as const);
  const paths = [...builtinHashes(), ...custom].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    paths: Object.fromEntries(
      paths.map(([path, hash]) => [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }]),
    ),
  };
}

/** Returns the document of a group version or another listed path; undefined if there is none. */
export function openApiDocument(path: string, groups: Group[]): OpenApiDocument | undefined {
  const known = builtinDocument(path);
  if (known !== undefined) return known;
  const groupVersion = customVersionsOf(groups).find((one) => pathOf(one) === path);
  return groupVersion === undefined ? undefined : customDocument(groupVersion);
}

/** Returns all documents, those of built-in kinds first. */
export function openApiDocuments(groups: Group[]): OpenApiDocument[] {
  const builtin = [...builtinHashes().keys()].flatMap((path) => builtinDocument(path) ?? []);
  return [...builtin, ...customVersionsOf(groups).map(customDocument)];
}

// A CustomResourceDefinition that adds a kind to a built-in group version does not change its document.
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
  if (typeof reference === "string") addReferenced(schemas, [reference.slice(SCHEMAS.length)]);
  for (const member of Object.values(node)) addReferencedBy(schemas, member);
}

// The paths of custom resources as kube-apiserver publishes them, without the descriptions of parameters.

const SCHEMAS = "#/components/schemas/";
const META = "io.k8s.apimachinery.pkg.apis.meta.v1.";
/** The schemas that paths refer to, besides the schema of the kind. */
const PATH_SCHEMAS: readonly string[] = ["DeleteOptions", "Patch", "Status"].map((name) => META + name);
/** The schema of the scale subresource. */
const SCALE_SCHEMA = "io.k8s.api.autoscaling.v1.Scale";

const TYPES: Record<string, string> = {
  ...{ allowWatchBookmarks: "boolean", sendInitialEvents: "boolean", watch: "boolean", force: "boolean" },
  ...{ ignoreStoreReadErrorWithClusterBreakingPotential: "boolean", orphanDependents: "boolean" },
  ...{ limit: "integer", timeoutSeconds: "integer", gracePeriodSeconds: "integer" },
};
const OF_LIST = [
  ...["allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "pretty", "resourceVersion"],
  ...["resourceVersionMatch", "sendInitialEvents", "shardSelector", "timeoutSeconds", "watch"],
];
const OF_LIST_IN_NAMESPACE = OF_LIST.filter((name) => name !== "pretty");
const OF_WRITE = ["dryRun", "fieldManager", "fieldValidation"];
const OF_DELETE = [
  ...["dryRun", "gracePeriodSeconds", "ignoreStoreReadErrorWithClusterBreakingPotential", "orphanDependents"],
  "propagationPolicy",
];
const PATCHES = ["apply-patch+yaml", "json-patch+json", "merge-patch+json"].map((type) => `application/${type}`);
const DESCRIPTIONS: Record<string, string> = { "200": "OK", "201": "Created", "202": "Accepted" };

interface Operation {
  verb: string;
  action: string;
  description: string;
  parameters?: readonly string[];
  /** The schema of the body, with its content types; the default is JSON and YAML. */
  body?: { schema: string; types?: readonly string[]; isOptional?: true };
  answers: string[];
  schema: string;
}

/** Returns the paths of a custom resource. `root` is the path of its group version, `schema` the name of its schema. */
function customPaths(type: ServedType, { root, schema }: { root: string; schema: string }): JsonObject {
  const { kind, plural, namespaced, group, version } = type;
  const scope = namespaced ? "Namespaced" : "";
  const tag = `${camelCase(group)}_${version}`;
  const prefix = `${upperFirst(camelCase(group))}${upperFirst(version)}`;
  const gvk = { group, version, kind };
  const operation = ({ verb, action, description, parameters, body, answers, schema }: Operation, id: string) => ({
    tags: [tag],
    description,
    operationId: verb + prefix + id,
    ...(parameters === undefined ? {} : { parameters: parameters.map(inQuery) }),
    ...(body === undefined ? {} : { requestBody: bodyOf(body) }),
    responses: {
      ...Object.fromEntries(
        answers.map((code) => [code, { description: DESCRIPTIONS[code] ?? "", content: contentOf(schema) }]),
      ),
      "401": { description: "Unauthorized" },
    },
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": gvk,
  });
  const list = { verb: "list", action: "list", description: `list objects of kind ${kind}`, answers: ["200"] };
  const listed = { ...list, schema: `${schema}List` };
  const collection = `${root}/${namespaced ? "namespaces/{namespace}/" : ""}${plural}`;
  const inNamespace = namespaced ? [NAMESPACE] : [];
  const objectParameters = [inPath("name", `name of the ${kind}`), ...inNamespace, inQuery("pretty")];
  const body = { schema };
  const ofObject = (below: string, shown: string): JsonObject => {
    const id = `${scope}${kind}${upperFirst(below)}`;
    const what = `${below === "" ? "" : `${below} of `}the specified ${kind}`;
    const patched = { schema: `${META}Patch`, types: PATCHES };
    const common = { schema: shown, answers: ["200"] };
    const written = { ...common, body: { schema: shown }, answers: ["200", "201"] };
    return {
      get: operation(
        { ...common, verb: "read", action: "get", description: `read ${what}`, parameters: ["resourceVersion"] },
        id,
      ),
      put: operation(
        { ...written, verb: "replace", action: "put", description: `replace ${what}`, parameters: OF_WRITE },
        id,
      ),
      ...(below === "" ? { delete: operation(deletion(kind), id) } : {}),
      patch: operation(
        {
          ...{ ...common, body: patched, verb: "patch", action: "patch", description: `partially update ${what}` },
          parameters: [...OF_WRITE, "force"],
        },
        id,
      ),
      parameters: objectParameters,
    };
  };
  const subresources = type.subresources.filter(({ name }) => name === "status" || name === "scale");
  return {
    ...(namespaced
      ? {
          [`${root}/${plural}`]: {
            get: operation(listed, `${kind}ForAllNamespaces`),
            parameters: OF_LIST.map(inQuery),
          },
        }
      : {}),
    [collection]: {
      get: operation({ ...listed, parameters: OF_LIST_IN_NAMESPACE }, scope + kind),
      post: operation(
        {
          ...{ verb: "create", action: "post", description: `create a ${kind}`, parameters: OF_WRITE, body, schema },
          answers: ["200", "201", "202"],
        },
        scope + kind,
      ),
      delete: operation(
        {
          ...{ verb: "delete", action: "deletecollection", description: `delete collection of ${kind}` },
          ...{ parameters: OF_LIST_IN_NAMESPACE, answers: ["200"], schema: `${META}Status` },
        },
        `Collection${scope}${kind}`,
      ),
      parameters: [...inNamespace, inQuery("pretty")],
    },
    [`${collection}/{name}`]: ofObject("", schema),
    ...Object.fromEntries(
      subresources.map(({ name }) => [
        `${collection}/{name}/${name}`,
        ofObject(name, name === "scale" ? SCALE_SCHEMA : schema),
      ]),
    ),
  };
}

function deletion(kind: string): Operation {
  return {
    ...{ verb: "delete", action: "delete", description: `delete a ${kind}`, parameters: OF_DELETE },
    body: { schema: `${META}DeleteOptions`, isOptional: true },
    answers: ["200", "202"],
    schema: `${META}Status`,
  };
}

function bodyOf({ schema, types, isOptional }: NonNullable<Operation["body"]>): JsonObject {
  return { content: contentOf(schema, types), ...(isOptional === true ? {} : { required: true }) };
}

function contentOf(schema: string, types: readonly string[] = ["application/json", "application/yaml"]): JsonObject {
  return Object.fromEntries(types.map((type) => [type, { schema: { $ref: SCHEMAS + schema } }]));
}

function inQuery(name: string): JsonObject {
  return { name, in: "query", schema: { type: TYPES[name] ?? "string", uniqueItems: true } };
}

function inPath(name: string, description: string): JsonObject {
  return { name, in: "path", description, required: true, schema: { type: "string", uniqueItems: true } };
}

const NAMESPACE = inPath("namespace", "object name and auth scope, such as for teams and projects");

/** Converts `example.com` to `exampleCom`. */
function camelCase(group: string): string {
  return group.replace(/[^A-Za-z0-9]+([A-Za-z0-9])/g, (_, first: string) => first.toUpperCase());
}

function upperFirst(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

// kube-apiserver publishes the schema of a custom resource with apiVersion, kind, and metadata, and adds a schema for its list.

const OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

// The descriptions that kubectl explain shows for these fields (Kubernetes 1.36).
const CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
const TYPE_META = {
  apiVersion: {
    type: "string",
    description:
      "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the " +
      `latest internal value, and may reject unrecognized values. More info: ${CONVENTIONS}#resources`,
  },
  kind: {
    type: "string",
    description:
      "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the " +
      `client submits requests to. Cannot be updated. In CamelCase. More info: ${CONVENTIONS}#types-kinds`,
  },
};
const METADATA = {
  description: `Standard object's metadata. More info: ${CONVENTIONS}#metadata`,
  allOf: [{ $ref: SCHEMAS + OBJECT_META }],
};
const EMBEDDED = {
  apiVersion: {
    type: "string",
    description:
      "apiVersion defines the versioned schema of this representation of an object. " +
      `More info: ${CONVENTIONS}#resources`,
  },
  kind: {
    type: "string",
    description:
      "kind is a string value representing the type of this object. In CamelCase. " +
      `More info: ${CONVENTIONS}#types-kinds`,
  },
  metadata: METADATA,
};

/** Returns the schema of DeleteOptions with the group versions of all built-in kinds. */
function deleteOptionsSchema(common: JsonObject): JsonObject {
  const kinds = decodedVersions().map(({ group, version }) => ({ group, kind: "DeleteOptions", version }));
  return { ...common, "x-kubernetes-group-version-kind": kinds };
}

/** Returns the published schema of a custom resource. */
function publishedSchema({ group, version, kind }: ServedType, custom: CustomOrigin): JsonObject {
  const schema = completed(custom.schema) as JsonObject;
  return {
    ...schema,
    type: "object",
    properties: { ...objectAt(schema, "properties"), ...TYPE_META, metadata: METADATA },
    "x-kubernetes-group-version-kind": [{ group, version, kind }],
    ...selectableFieldsOf(custom),
  };
}

/** Returns the schema of the list of a custom resource. `itemName` is the name of the schema of its items. */
function listSchema(type: ServedType, custom: CustomOrigin, itemName: string): JsonObject {
  const { group, version, listKind, kind, plural } = type;
  const item = { $ref: SCHEMAS + itemName };
  const gvk = { "x-kubernetes-group-version-kind": [{ group, version, kind: listKind }] };
  return {
    description: `${listKind} is a list of ${kind}`,
    type: "object",
    required: ["items"],
    properties: {
      ...TYPE_META,
      metadata: {
        description: `Standard list metadata. More info: ${CONVENTIONS}#types-kinds`,
        allOf: [{ $ref: SCHEMAS + LIST_META }],
      },
      items: { description: `List of ${plural}. More info: ${CONVENTIONS}`, type: "array", items: item },
    },
    ...gvk,
    ...selectableFieldsOf(custom),
  };
}

function selectableFieldsOf({ version }: CustomOrigin): JsonObject {
  const fields = (arrayAt(version, "selectableFields") ?? []).filter(isObject);
  if (fields.length === 0) return {};
  const paths = fields.map(({ jsonPath }) => ({ fieldPath: String(jsonPath).replace(/^\./, "") }));
  return { "x-kubernetes-selectable-fields": paths };
}

/** Returns a copy in which embedded resources have the common fields, and int-or-string fields have an anyOf. */
function completed(schema: JsonValue): JsonValue {
  if (!isObject(schema)) return schema;
  const { properties, items, additionalProperties } = schema;
  const copy: JsonObject = { ...schema };
  if (isObject(properties))
    copy["properties"] = Object.fromEntries(Object.entries(properties).map(([name, node]) => [name, completed(node)]));
  if (items !== undefined) copy["items"] = completed(items);
  if (additionalProperties !== undefined) copy["additionalProperties"] = completed(additionalProperties);
  if (schema["x-kubernetes-int-or-string"] === true && schema["anyOf"] === undefined && schema["allOf"] === undefined)
    copy["anyOf"] = [{ type: "integer" }, { type: "string" }];
  if (schema["x-kubernetes-embedded-resource"] !== true) return copy;
  const required = (arrayAt(schema, "required") ?? []).map(String);
  const missing = ["kind", "apiVersion"].filter((name) => !required.includes(name));
  return {
    ...copy,
    properties: { ...objectAt(copy, "properties"), ...EMBEDDED },
    required: [...required, ...missing],
  };
}
