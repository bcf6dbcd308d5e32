import { resolve } from "node:path";
import { hasErrors, sortDiagnostics, type Diagnostic } from "./diagnostic.js";
import { readProject } from "./input/read-project.js";
import { buildModel } from "./model/build-model.js";
import { checkConditions } from "./output/check-conditions.js";
import { emitProject } from "./output/emit-project.js";
import { writeFiles, type WriteReport } from "./output/write-files.js";

/** What `generate` works on. */
export interface GenerateOptions {
  /** The folder with the workflow specs; the working directory unless given. */
  readonly project?: string;
  /** Reports what is stale and writes nothing. */
  readonly check?: boolean;
}

/** What came of it. */
export interface GenerateResult {
  readonly diagnostics: readonly Diagnostic[];
  /** What became of the files; absent when a diagnostic is an error, for then nothing is written. */
  readonly report?: WriteReport;
}

/** Generates the code of a project: reads its CRDs and workflow specs, checks them, and writes what differs. */
export async function generate({ project = ".", check = false }: GenerateOptions = {}): Promise<GenerateResult> {
  const root = resolve(project);
  const input = await readProject(root);
  if (hasErrors(input.diagnostics)) return { diagnostics: sortDiagnostics(input.diagnostics) };

  const { model, diagnostics, locate } = await buildModel(input);
  if (model === undefined) return { diagnostics: sortDiagnostics([...input.diagnostics, ...diagnostics]) };

  const files = await emitProject(model);
  const problems = await checkConditions(model, files, locate);
  const found = sortDiagnostics([...input.diagnostics, ...diagnostics, ...problems]);
  if (hasErrors(found)) return { diagnostics: found };

  return { diagnostics: found, report: await writeFiles(root, files, { check }) };
}
