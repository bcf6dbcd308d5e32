// node test/dist/control-plane/record-descriptions.js writes kinds/data/kubernetes-1.36-descriptions.json: what a real API server says in
// /openapi/v3 about each definition that a built-in kind consists of, and about its fields.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { builtinSchemas } from "#apiserver/builtin/schemas.js";
import { apiRequest } from "../support/api-request.js";
import { startControlPlane } from "../support/control-plane.js";
import { repositoryRoot } from "../support/repository.js";

const OUTPUT = join(repositoryRoot, "kinds/data/kubernetes-1.36-descriptions.json");

interface DescribedSchema {
  readonly description?: string;
  readonly properties?: { readonly [name: string]: { readonly description?: string } };
}

interface OpenApiDocument {
  readonly components?: { readonly schemas?: { readonly [name: string]: DescribedSchema } };
}

await using server = await startControlPlane();
// It calls the index plain text.
const read = async <T>(path: string) => JSON.parse((await apiRequest(server, `GET ${path}`)).text) as T;
const index = await read<{ readonly paths: { readonly [path: string]: { readonly serverRelativeURL: string } } }>(
  "/openapi/v3",
);
const described = new Map<string, { readonly [field: string]: string }>();
for (const { serverRelativeURL } of Object.values(index.paths)) {
  const { components = {} } = await read<OpenApiDocument>(serverRelativeURL);
  for (const [name, schema] of Object.entries(components.schemas ?? {})) described.set(name, descriptionsOf(schema));
}
const lines = Object.keys(builtinSchemas())
  .sort()
  .map((name) => `${JSON.stringify(name)}: ${JSON.stringify(described.get(name) ?? {})}`);
mkdirSync(join(repositoryRoot, "kinds/data"), { recursive: true });
writeFileSync(OUTPUT, `{\n${lines.join(",\n")}\n}\n`);
console.log(`${lines.length} definitions written to ${OUTPUT}`);

/** Returns what is said of a definition, under the empty name, and of its fields. */
function descriptionsOf({ description, properties = {} }: DescribedSchema): { readonly [field: string]: string } {
  const entries = [["", description], ...Object.entries(properties).map(([name, field]) => [name, field.description])];
  return Object.fromEntries(entries.filter(([, text]) => text !== undefined && text !== ""));
}
