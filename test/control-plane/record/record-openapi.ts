// node test/dist/control-plane/record/record-openapi.js writes apiserver/data/kubernetes-1.36-openapi.txt.br: what a real API server says in /openapi/v3
// beside the schemas that are in apiserver/data already. Lines of JSON: the hashes of the documents by path; each document in that order; and what
// is said of each definition and of its fields. src/discovery/builtin-documents.ts puts them together again; this checks that nothing is lost.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { brotliCompressSync, constants } from "node:zlib";
import { builtinSchemas } from "#apiserver/builtin/schemas.js";
import { builtinDocument } from "#apiserver/discovery/builtin-documents.js";
import { apiRequest } from "../../support/api/api-request.js";
import { startControlPlane } from "../../support/machine/control-plane.js";
import { repositoryRoot } from "../../support/repository.js";

const OUTPUT = join(repositoryRoot, "apiserver/data/kubernetes-1.36-openapi.txt.br");

interface DescribedSchema {
  readonly description?: string;
  readonly properties?: { readonly [name: string]: { readonly description?: string } };
}

interface OpenApiDocument {
  readonly paths: object;
  readonly components?: { readonly schemas?: { readonly [name: string]: DescribedSchema } };
}

await using server = await startControlPlane();
// It calls the index plain text.
const read = async <T>(path: string) => JSON.parse((await apiRequest(server, `GET ${path}`)).text) as T;
const index = await read<{ readonly paths: { readonly [path: string]: { readonly serverRelativeURL: string } } }>(
  "/openapi/v3",
);
const hashes: Record<string, string> = {};
const documents: OpenApiDocument[] = [];
const described = new Map<string, { readonly [field: string]: string }>();
for (const [path, { serverRelativeURL }] of Object.entries(index.paths)) {
  const document = await read<OpenApiDocument>(serverRelativeURL);
  hashes[path] = new URL(serverRelativeURL, server.url).searchParams.get("hash") ?? "";
  documents.push(document);
  for (const [name, schema] of Object.entries(document.components?.schemas ?? {}))
    described.set(name, descriptionsOf(schema));
}
const descriptions = Object.fromEntries(
  Object.keys(builtinSchemas())
    .sort()
    .map((name) => [name, described.get(name) ?? {}]),
);
const lines = [
  hashes,
  ...documents.map(({ paths, components }) => ({ paths, schemas: Object.keys(components?.schemas ?? {}) })),
  descriptions,
];
const text = Buffer.from(lines.map((line) => JSON.stringify(line)).join("\n"));
const params = {
  [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
  [constants.BROTLI_PARAM_SIZE_HINT]: text.length,
};
writeFileSync(OUTPUT, brotliCompressSync(text, { params }));
for (const [index, path] of Object.keys(hashes).entries())
  assert.ok(
    isDeepStrictEqual(comparable(JSON.parse(builtinDocument(path)?.body ?? "{}")), comparable(documents[index])),
    path,
  );
console.log(`${documents.length} documents written to ${OUTPUT}`);

/** Returns what is said of a definition, under the empty name, and of its fields. */
function descriptionsOf({ description, properties = {} }: DescribedSchema): { readonly [field: string]: string } {
  const entries = [["", description], ...Object.entries(properties).map(([name, field]) => [name, field.description])];
  return Object.fromEntries(entries.filter(([, text]) => text !== undefined && text !== ""));
}

/** Without the version of the build. */
function comparable(document: unknown): unknown {
  return JSON.parse(JSON.stringify(document), (key, value: unknown) => (key === "info" ? undefined : value));
}
