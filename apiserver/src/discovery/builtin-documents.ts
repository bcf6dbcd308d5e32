// The OpenAPI documents of the built-in kinds, recorded from kube-apiserver, compressed, and read on demand. The structure of the schemas is in a
// separate file that every start reads.
import { readFileSync } from "node:fs";
import { brotliDecompressSync } from "node:zlib";
import { builtinSchemas } from "../builtin/schemas.js";
import { type JsonObject, objectAt } from "../json.js";
import { packageFile } from "../package-file.js";
import { GIT_VERSION } from "./groups.js";

/** An OpenAPI document with the hash of its content. */
export interface OpenApiDocument {
  body: string;
  hash: string;
}

/** Descriptions by schema name: of the schema itself under the empty key, and of its fields. */
export type Descriptions = Record<string, Record<string, string>>;

const RECORDED = packageFile("data/kubernetes-1.36-openapi.txt.br");
/** The security scheme for bearer tokens. */
export const BEARER = {
  type: "apiKey",
  description: "Bearer Token authentication",
  name: "authorization",
  in: "header",
};
const META = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const OF_EVERY_GROUP = [`${META}DeleteOptions`, `${META}WatchEvent`];

// The lines are too large to keep in memory; the documents built from them are cached.
let recorded: WeakRef<string[]> | undefined;
let memoisedHashes: ReadonlyMap<string, string> | undefined;
let memoisedSchemas: Record<string, JsonObject> | undefined;
const documents = new Map<string, OpenApiDocument>();

/** Returns the hashes of the built-in documents by path: `api/v1`, `apis/apps/v1`, `version`. */
export function builtinHashes(): ReadonlyMap<string, string> {
  memoisedHashes ??= new Map(Object.entries(JSON.parse(recordedLines()[0] ?? "{}") as Record<string, string>));
  return memoisedHashes;
}

/** Returns the built-in document of a path; undefined if there is none. */
export function builtinDocument(path: string): OpenApiDocument | undefined {
  const hash = builtinHashes().get(path);
  if (hash === undefined) return undefined;
  let document = documents.get(path);
  if (document === undefined) {
    document = { body: bodyOf(path, recordedLines()[1 + [...builtinHashes().keys()].indexOf(path)] ?? "{}"), hash };
    documents.set(path, document);
  }
  return document;
}

/** Returns the schemas of all built-in types with their descriptions, as they are published. */
export function describedSchemas(): Record<string, JsonObject> {
  memoisedSchemas ??= describeSchemas(builtinDescriptions());
  return memoisedSchemas;
}

/** Reads the descriptions of the built-in types. */
export function builtinDescriptions(): Descriptions {
  return JSON.parse(recordedLines().at(-1) ?? "{}") as Descriptions;
}

function recordedLines(): string[] {
  const kept = recorded?.deref();
  if (kept !== undefined) return kept;
  const lines = brotliDecompressSync(readFileSync(RECORDED)).toString("utf8").split("\n");
  recorded = new WeakRef(lines);
  return lines;
}

function bodyOf(path: string, line: string): string {
  const { paths, schemas: names } = JSON.parse(line) as { paths: JsonObject; schemas: string[] };
  const schemas = Object.fromEntries(names.map((name) => [name, describedSchemas()[name]]));
  for (const name of OF_EVERY_GROUP.filter((name) => name in schemas))
    schemas[name] = { ...schemas[name], "x-kubernetes-group-version-kind": kindsOf(path, name) };
  return JSON.stringify({
    openapi: "3.0.0",
    info: { title: "Kubernetes", version: GIT_VERSION },
    paths,
    components: {
      ...(names.length === 0 ? {} : { schemas }),
      securitySchemes: { BearerToken: BEARER },
    },
  });
}

// These kinds belong to the core group and to the group of the document.
function kindsOf(path: string, name: string): JsonObject[] {
  const kind = name.slice(META.length);
  const [, group = "", version = ""] = /^apis\/(.+)\/(.+)$/.exec(path) ?? [];
  return [{ group: "", kind, version: "v1" }, ...(group === "" ? [] : [{ group, kind, version }])];
}

function describeSchemas(descriptions: Descriptions): Record<string, JsonObject> {
  const described = ([name, schema]: [string, JsonObject]): [string, JsonObject] => {
    const { "": description, ...ofFields } = descriptions[name] ?? {};
    const properties = Object.entries(objectAt(schema, "properties") ?? {}).map(([field, node]) => {
      const text = ofFields[field];
      return [field, text === undefined ? node : { description: text, ...(node as JsonObject) }];
    });
    return [
      name,
      {
        ...(description === undefined ? {} : { description }),
        ...schema,
        ...(properties.length === 0 ? {} : { properties: Object.fromEntries(properties) as JsonObject }),
      },
    ];
  };
  return Object.fromEntries(Object.entries(builtinSchemas()).map(described));
}
