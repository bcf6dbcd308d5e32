import { mkdir } from "node:fs/promises";
import { resolve } from "node:path";
import { hasErrors, type Diagnostic } from "./diagnostic.js";
import type { GenerateResult } from "./generate.js";
import { readBuiltinKinds } from "./input/crd/builtin-kinds.js";
import { readCrdFiles } from "./input/crd/read-crd-files.js";
import { buildModel } from "./model/build/build-model.js";
import { emitResources } from "./output/emit-project.js";
import { writeFiles } from "./output/files/write-files.js";

/** What `generateTypes` works on. */
export interface GenerateTypesOptions {
  /** YAML or JSON files with CustomResourceDefinitions, relative to the working directory. */
  readonly files: readonly string[];
  /** The folder to write to; created if missing. */
  readonly out: string;
  /** Reports what is stale and writes nothing. */
  readonly check?: boolean;
}

/** The folder of generated files in a whole project; here, the folder that was asked for takes its place. */
const PREFIX = "src/generated/";

/** Generates the typed resources of CRDs without a workflow. */
export async function generateTypes({ files, out, check = false }: GenerateTypesOptions): Promise<GenerateResult> {
  const { crds, diagnostics } = await readCrdFiles(".", files);
  const found: Diagnostic[] = [...diagnostics];
  if (hasErrors(found)) return { diagnostics: found };

  const built = await buildModel({ crds, workflows: [], builtin: await readBuiltinKinds() });
  found.push(...built.diagnostics);
  if (built.model === undefined) return { diagnostics: found };

  const emitted = await emitResources(built.model.resources);
  const moved = emitted.map((file) => ({ ...file, path: file.path.slice(PREFIX.length) }));
  if (!check) await mkdir(resolve(out), { recursive: true });
  const report = await writeFiles(resolve(out), moved, { check, manifestPath: ".gen-operator.json" });
  return { diagnostics: found, report };
}
