import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { UNKNOWN_KIND } from "../read/rules.js";
import { type Diagnostic, didYouMean, quote } from "../diagnostic.js";
import type { RawSchema, ResourceModel } from "../model/project-model.js";
import { type ResourceCatalog, buildCatalog, parseKind } from "../model/resolved-project.js";
import { isIntOrString, isRecord, ownSchema, resolveRef, schemasOf, shortNameOf } from "../model/schema.js";
import { packageFile } from "../package-file.js";
import { readCrds } from "../read/crd/read-crds.js";
import { readBuiltinKinds, withKinds } from "../read/kinds.js";
import { listCrdFiles, readProjectFile } from "../read/project-files.js";

/** Returns the published JSON Schema of workflow specs. */
export async function readWorkflowSchema(): Promise<string> {
  return readFile(packageFile("data/workflow.schema.json"), "utf8");
}

/** Returns the JSON Schema of a kind of the project or of Kubernetes, for example `WebPage`, `Deployment`, or `example.com/v1/WebPage`. */
export async function readKindSchema(
  project: string,
  name: string,
): Promise<{ readonly schema?: object; readonly diagnostics: readonly Diagnostic[] }> {
  const root = resolve(project);
  const read = await Promise.all((await listCrdFiles(root)).map((file) => readProjectFile(root, file)));
  const parsed = read.map((file) => ("rule" in file ? { crds: [], kinds: [], diagnostics: [file] } : readCrds(file)));
  const diagnostics = parsed.flatMap((each) => [...each.diagnostics]);
  const catalog = buildCatalog(
    parsed.flatMap(({ crds }) => crds),
    withKinds(
      await readBuiltinKinds(),
      parsed.flatMap(({ kinds }) => kinds),
    ),
  );
  const resource = findKind(catalog, name);
  if (resource !== undefined) return { schema: buildKindSchema(resource), diagnostics };
  const kinds = catalog.names.map((each) => parseKind(each).kind);
  const problem: Diagnostic = {
    ...UNKNOWN_KIND.violation,
    message: `kind ${quote(name)} not found in crds/ or Kubernetes`,
    ...didYouMean(name, name.includes("/") ? catalog.names : kinds),
  };
  return { diagnostics: [...diagnostics, problem] };
}

// For a kind without a group, custom kinds take precedence over built-in ones, and the stored version over others.
function findKind(catalog: ResourceCatalog, name: string): ResourceModel | undefined {
  if (name.includes("/")) return catalog.find(parseKind(name));
  const custom = catalog.custom.filter(({ kind }) => kind === name);
  if (custom.length > 0) return custom.find(({ isStorage }) => isStorage) ?? custom[0];
  const names = catalog.names.map(parseKind).filter(({ kind }) => kind === name);
  const stable = names.find(({ version }) => /^v\d+$/.test(version)) ?? names[0];
  return stable === undefined ? undefined : catalog.find(stable);
}

// Keywords that OpenAPI and JSON Schema draft 7 share.

const COPIED = [
  ...["title", "description", "default", "enum", "format", "pattern", "multipleOf", "uniqueItems", "required"],
  ...["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"],
] as const;

interface JsonSchema {
  [keyword: string]: unknown;
}

/** Builds the JSON Schema of a kind for editors. A field that the API server would prune is an error. */
function buildKindSchema(resource: ResourceModel): JsonSchema {
  const { group, version, kind } = resource;
  const definitions = new Map<string, JsonSchema>();
  const { schema: root } = resolveRef(resource.schema, resource.definitions);
  const built = schemaOf({ ...root, type: "object" }, { resource, definitions });
  const apiVersion = group === "" ? version : `${group}/${version}`;
  const properties = isRecord(built["properties"]) ? built["properties"] : {};
  const required = Array.isArray(built["required"]) ? (built["required"] as string[]) : [];
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    ...built,
    required: [...new Set(["apiVersion", "kind", "metadata", ...required])],
    properties: {
      ...properties,
      apiVersion: { const: apiVersion },
      kind: { const: kind },
      // Custom kinds do not declare metadata, which the API server validates itself.
      metadata: resource.isCustom ? { type: "object" } : (properties["metadata"] ?? { type: "object" }),
    },
    ...(definitions.size === 0 ? {} : { definitions: Object.fromEntries(definitions) }),
  };
}

interface Conversion {
  readonly resource: ResourceModel;
  readonly definitions: Map<string, JsonSchema>;
}

function schemaOf(raw: RawSchema, conversion: Conversion): JsonSchema {
  const { definition, schema } = resolveRef(raw, conversion.resource.definitions);
  if (definition === undefined || isIntOrString(schema)) return withoutReference(schema, conversion);
  const name = shortNameOf(definition);
  if (!conversion.definitions.has(name)) {
    // Register the definition before building it, because definitions can be recursive.
    conversion.definitions.set(name, {});
    const target = conversion.resource.definitions.get(definition) ?? {};
    conversion.definitions.set(name, withoutReference(target, conversion));
  }
  const description = raw["description"] === undefined ? {} : { description: raw["description"] };
  return { ...description, allOf: [{ $ref: `#/definitions/${name}` }] };
}

function withoutReference(schema: RawSchema, conversion: Conversion): JsonSchema {
  const copied = Object.fromEntries(COPIED.flatMap((key) => (schema[key] === undefined ? [] : [[key, schema[key]]])));
  const isNullable = schema["nullable"] === true;
  const typed = (type: unknown) => (isNullable && typeof type === "string" ? [type, "null"] : type);
  if (isIntOrString(schema)) return { ...copied, type: ["integer", "string", ...(isNullable ? ["null"] : [])] };
  const built: JsonSchema = { ...copied, ...(schema["type"] === undefined ? {} : { type: typed(schema["type"]) }) };
  if (isNullable && Array.isArray(schema["enum"])) built["enum"] = [...(schema["enum"] as unknown[]), null];
  const items = ownSchema(schema, "items");
  if (items !== undefined) built["items"] = schemaOf(items, conversion);
  const fields = [...schemasOf(schema, "properties")].map(([name, field]) => [name, schemaOf(field, conversion)]);
  const values = ownSchema(schema, "additionalProperties");
  if (fields.length > 0) built["properties"] = Object.fromEntries(fields);
  if (values !== undefined) built["additionalProperties"] = schemaOf(values, conversion);
  else if (isClosed(schema, fields.length)) built["additionalProperties"] = false;
  return built;
}

// An embedded resource has fields that its schema need not declare.
function isClosed(schema: RawSchema, fields: number): boolean {
  if (schema["x-kubernetes-preserve-unknown-fields"] === true || schema["x-kubernetes-embedded-resource"] === true)
    return false;
  return fields > 0 && schema["additionalProperties"] === undefined;
}
