import { readFileSync } from "node:fs";
import { type JsonObject, arrayAt, isObject, memberOf, stringAt } from "../json.js";
import { packageFile } from "../package-file.js";

const SCHEMAS_FILE = packageFile("data/kubernetes-1.36-schemas.json");
const REFERENCE_PREFIX = "#/components/schemas/";

let memoisedSchemas: Record<string, JsonObject> | undefined;
let memoisedNames: Map<string, string> | undefined;

/** Returns the OpenAPI v3 schemas of all built-in types by name, e.g. `io.k8s.api.apps.v1.Deployment`. */
export function builtinSchemas(): Record<string, JsonObject> {
  memoisedSchemas ??= JSON.parse(readFileSync(SCHEMAS_FILE, "utf8")) as Record<string, JsonObject>;
  return memoisedSchemas;
}

/** Returns the schema name of a kind; undefined if it is not built in. */
export function schemaNameOf(kind: { group: string; version: string; kind: string }): string | undefined {
  memoisedNames ??= indexKinds();
  return memoisedNames.get(`${kind.group}/${kind.version}/${kind.kind}`);
}

function indexKinds(): Map<string, string> {
  const names = new Map<string, string>();
  for (const [name, schema] of Object.entries(builtinSchemas())) {
    for (const gvk of (arrayAt(schema, "x-kubernetes-group-version-kind") ?? []).filter(isObject)) {
      names.set(`${String(gvk["group"])}/${String(gvk["version"])}/${String(gvk["kind"])}`, name);
    }
  }
  return names;
}

/** A node of a built-in schema with its reference resolved. */
export interface ResolvedSchema {
  /** The named schema that the node refers to, e.g. `io.k8s.api.core.v1.Container`. */
  name?: string;
  /** The schema itself: type, properties, items. */
  schema: JsonObject;
}

/** Resolves the `$ref` of a node, which Kubernetes writes bare or as the only element of `allOf`. */
export function resolveSchema(node: JsonObject): ResolvedSchema {
  const name = referenceOf(node);
  if (name === undefined) return { schema: node };
  return { name, schema: memberOf(builtinSchemas(), name) as JsonObject };
}

function referenceOf(node: JsonObject): string | undefined {
  const only = arrayAt(node, "allOf")?.[0];
  const reference = stringAt(node, "$ref") ?? (isObject(only) ? stringAt(only, "$ref") : undefined);
  return reference?.slice(REFERENCE_PREFIX.length);
}

const FLAG = { type: "boolean" };
const TEXT = { type: "string" };
const STREAMS = { stdin: FLAG, stdout: FLAG, stderr: FLAG, tty: FLAG, container: TEXT };

/**
 * Schemas of the options of exec, attach, and portforward, by schema name, with the fields in Kubernetes' order. The options are only sent as query
 * parameters, so the OpenAPI documents do not contain them.
 */
export const connectSchemas: Record<string, JsonObject> = {
  "io.k8s.api.core.v1.PodExecOptions": structOf({ ...STREAMS, command: { type: "array", items: TEXT } }),
  "io.k8s.api.core.v1.PodAttachOptions": structOf(STREAMS),
  "io.k8s.api.core.v1.PodPortForwardOptions": structOf({
    ports: { type: "array", items: { type: "integer", format: "int32" } },
  }),
};

function structOf(properties: JsonObject): JsonObject {
  return { type: "object", properties: { apiVersion: TEXT, kind: TEXT, ...properties } };
}
