import { join } from "node:path";
import { builtinDescriptions } from "#apiserver/discovery/builtin-documents.js";
import { readBuiltinKinds } from "#generator/read/kinds.js";
import { buildCatalog } from "#generator/model/resolved-project.js";
import type { OutputFile } from "#generator/emit/output-file.js";
import { describe, emitKinds } from "#generator/emit/kinds.js";
import { repositoryRoot } from "../repository.js";

/** The workspace of the built-in kinds. */
export const kindsFolder = join(repositoryRoot, "kinds");

/** Generates the sources of the package of built-in kinds in memory, from the recorded OpenAPI of an API server. */
export async function generateKinds(): Promise<OutputFile[]> {
  const builtin = await readBuiltinKinds();
  const definitions = describe(builtin.definitions, builtinDescriptions());
  const names = new Map([...builtin.definitions].map(([name, schema]) => [schema, name]));
  const described = builtin.kinds.map((kind) => ({
    ...kind,
    schema: definitions.get(names.get(kind.schema) ?? "") ?? kind.schema,
  }));
  const catalog = buildCatalog([], { kinds: described, definitions });
  const resources = described.flatMap((kind) => catalog.find(kind) ?? []);
  return emitKinds(resources, definitions);
}
