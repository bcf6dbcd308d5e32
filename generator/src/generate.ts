import { resolve } from "node:path";
import { hasErrors, sortDiagnostics, type Diagnostic } from "./diagnostic.js";
import { readProject, type SpecTexts } from "./input/read-project.js";
import { readSources } from "./input/read-sources.js";
import { buildModel } from "./model/build/build-model.js";
import { acceptWarnings } from "./model/build/accept-warnings.js";
import { checkConditions } from "./output/conditions/check-conditions.js";
import type { LocateExpression, ProjectModel } from "./model/project-model.js";
import { emitProject } from "./output/emit-project.js";
import { readChanges, type FileChange } from "./output/files/file-changes.js";
import { writeFiles, type WriteReport } from "./output/files/write-files.js";

/** What `generate` works on. */
export interface GenerateOptions {
  /** The folder with the workflow specs. Default: the working directory. */
  readonly project?: string;
  /** Reports what is stale and writes nothing. */
  readonly check?: boolean;
  /** Reports what would change, with the texts, and writes nothing. */
  readonly dryRun?: boolean;
  /** Texts of specs that take the place of what is on disk: what would be if they were written. */
  readonly specTexts?: SpecTexts;
  /** Treats warnings as errors. */
  readonly strict?: boolean;
}

/** What came of it. */
export interface GenerateResult {
  readonly diagnostics: readonly Diagnostic[];
  /** What became of the files; absent when a diagnostic is an error, for then nothing is written. */
  readonly report?: WriteReport;
  /** With `dryRun`: the files that would change. */
  readonly changes?: readonly FileChange[];
}

/** Generates the code of a project: reads its CRDs and workflow specs, checks them, and writes what differs. */
export async function generate(options: GenerateOptions = {}): Promise<GenerateResult> {
  const { project = ".", check = false, dryRun = false, strict = false } = options;
  const root = resolve(project);
  const input = await readProject(root, options.specTexts);
  if (hasErrors(input.diagnostics)) return { diagnostics: sortDiagnostics(input.diagnostics) };

  const { model, diagnostics, locate } = await buildModel(input);
  if (model === undefined) return { diagnostics: sortDiagnostics([...input.diagnostics, ...diagnostics]) };

  const files = await emitProject(model);
  const problems = [...(await checkUserCode(model, root, locate)), ...(await checkConditions(model, files, locate))];
  const reported = [...input.diagnostics, ...diagnostics, ...problems];
  const all = sortDiagnostics(acceptWarnings(reported, input.workflows));
  const found = strict ? all.map((diagnostic) => ({ ...diagnostic, severity: "error" as const })) : all;
  if (hasErrors(found)) return { diagnostics: found };

  const report = await writeFiles(root, files, { check, dryRun });
  return { diagnostics: found, report, ...(dryRun ? { changes: await readChanges(root, files, report) } : {}) };
}

/** Checks what only the user's code tells. */
export async function checkUserCode(
  model: ProjectModel,
  root: string,
  locate: LocateExpression,
): Promise<readonly Diagnostic[]> {
  const code = (await readSources(root)).map(({ file, text }) => ({ path: file, text }));
  const hasExpressions = model.controllers.some(({ dependents }) =>
    dependents.some(({ conditions }) => Object.values(conditions).some(({ kind }) => kind === "when")),
  );
  // The compiler takes a while to load.
  if (code.length === 0 && !hasExpressions) return [];
  const [{ checkCode }, { unlessTooDeep }] = await Promise.all([
    import("./output/reads/check-code.js"),
    import("./output/reads/source-program.js"),
  ]);
  const found = unlessTooDeep(() => checkCode(model, code, locate), "warning");
  return Array.isArray(found) ? found : [found];
}
