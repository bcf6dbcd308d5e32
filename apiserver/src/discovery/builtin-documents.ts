// What a real server publishes in OpenAPI of the built-in kinds: recorded, compressed, and read when it is asked for. The structure of the schemas is
// in a file that every start reads.
import { readFileSync } from "node:fs";
import { brotliDecompressSync } from "node:zlib";
import { builtinSchemas } from "../builtin/schemas.js";
import { type JsonObject, objectAt } from "../json.js";
import { packageFile } from "../package-file.js";
import { GIT_VERSION } from "./groups.js";

/** A document and the hash of its content. */
export interface OpenApiDocument {
  body: string;
  hash: string;
}

/** What is said of a definition, under the empty name, and of its fields. */
export type Descriptions = Record<string, Record<string, string>>;

const RECORDED = packageFile("data/kubernetes-1.36-openapi.txt.br");
/** How one logs in. */
export const BEARER = {
  type: "apiKey",
  description: "Bearer Token authentication",
  name: "authorization",
  in: "header",
};
const META = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const OF_EVERY_GROUP = [`${META}DeleteOptions`, `${META}WatchEvent`];

// The lines of the file are too large to be kept for long; what was made of them is kept as soon as anybody has asked for it.
let recorded: WeakRef<string[]> | undefined;
let memoisedHashes: ReadonlyMap<string, string> | undefined;
let memoisedSchemas: Record<string, JsonObject> | undefined;
const documents = new Map<string, OpenApiDocument>();

/** Gives the hashes of the documents of built-in group versions by their paths: `api/v1`, `apis/apps/v1`, `version`. */
export function builtinHashes(): ReadonlyMap<string, string> {
  memoisedHashes ??= new Map(Object.entries(JSON.parse(recordedLines()[0] ?? "{}") as Record<string, string>));
  return memoisedHashes;
}

/** Gives the document of such a path. */
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

/** Gives the schemas of all built-in types as they are published: with what is said of them. */
export function describedSchemas(): Record<string, JsonObject> {
  memoisedSchemas ??= describeSchemas(builtinDescriptions());
  return memoisedSchemas;
}

/** Reads what is said of the built-in types. */
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

// These are of the core group, and of that of the document.
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
