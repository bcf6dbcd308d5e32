import { resolve } from "node:path";
import { counted, hasErrors, sortDiagnostics, type Diagnostic } from "./diagnostic.js";
import type { ProjectInput, SpecTexts } from "./input/read-project.js";
import { RunMemory, type UnchangedRun } from "./memory/run-memory.js";
import type { LocateExpression, ProjectModel } from "./model/project-model.js";
import { isForgotten, rememberDependents } from "./model/project-memory.js";
import type { FileChange } from "./output/files/file-changes.js";
import { MANIFEST_PATH } from "./output/files/manifest.js";
import type { WriteReport } from "./output/files/write-files.js";

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
  /** Controllers, or `controller/dependent`, of which no object runs anywhere, so that nothing has to be stated about them. */
  readonly forget?: readonly string[];
  /** Called with what is being done, as it begins: for somebody who waits. */
  readonly onStep?: (step: string) => void;
}

/** What came of it. */
export interface GenerateResult {
  readonly diagnostics: readonly Diagnostic[];
  /** What became of the files; absent when a diagnostic is an error, for then nothing is written. */
  readonly report?: WriteReport;
  /** With `dryRun`: the files that would change. */
  readonly changes?: readonly FileChange[];
}

/**
 * Generates the code of a project: reads its CRDs and workflow specs, checks them, and writes what differs.
 *
 * A project of which nothing has changed since the last run is only read, and none of the stages is loaded.
 */
export async function generate(options: GenerateOptions = {}): Promise<GenerateResult> {
  const { project = ".", check = false, dryRun = false, strict = false, forget = [], onStep = () => {} } = options;
  const root = resolve(project);
  const memory = options.specTexts === undefined ? await RunMemory.open(root) : undefined;
  const unchanged = memory?.unchangedRun(MANIFEST_PATH);
  if (unchanged !== undefined) return resultOf(unchanged, options);

  onStep("reading the CRDs and the spec");
  const stages = await loadStages();
  const { readProject, readProjectMemory, buildModel, acceptWarnings, checkConditions } = stages;
  const { emitProject, writeFiles, readChanges } = stages;
  const input = await readProject(root, options.specTexts);
  if (hasErrors(input.diagnostics)) return { diagnostics: sortDiagnostics(input.diagnostics) };

  const before = await readProjectMemory(root, async () => (await import("./input/read-sources.js")).readSources(root));
  const known = { ...before, dependents: before.dependents.filter((each) => !isForgotten(each, forget)) };
  onStep("checking the spec");
  const { model, diagnostics, locate } = await buildModel({ ...input, memory: known });
  if (model === undefined) return { diagnostics: sortDiagnostics([...input.diagnostics, ...diagnostics]) };

  onStep(`generating the code of ${counted(model.controllers.length, "controller")}`);
  const files = await emitProject(model);
  onStep("checking your code and the conditions");
  const problems = [...(await checkUserCode(model, root, locate)), ...(await checkConditions(model, files, locate))];
  const reported = [...input.diagnostics, ...diagnostics, ...problems];
  const all = sortDiagnostics(acceptWarnings(reported, input.workflows));
  const found = judge(all, strict);
  if (hasErrors(found)) return { diagnostics: found };

  onStep(check || dryRun ? "comparing the files" : "writing the files");
  const report = await writeFiles(root, files, { check, dryRun, dependents: rememberDependents(model) });
  const isWritten = !dryRun && report.stale.length === 0;
  const run = { named: namedFilesOf(input), diagnostics: all, files, manifestPath: MANIFEST_PATH };
  if (isWritten) await memory?.remember(run, { creates: !check });
  return { diagnostics: found, report, ...(dryRun ? { changes: await readChanges(root, files, report) } : {}) };
}

/** Loads what a project that has changed needs. */
async function loadStages() {
  const stages = await Promise.all([
    import("./input/read-project.js"),
    import("./output/files/read-memory.js"),
    import("./model/build/build-model.js"),
    import("./model/build/accept-warnings.js"),
    import("./output/conditions/check-conditions.js"),
    import("./output/emit-project.js"),
    import("./output/files/write-files.js"),
    import("./output/files/file-changes.js"),
  ]);
  const [{ readProject }, { readProjectMemory }, { buildModel }, { acceptWarnings }, { checkConditions }, ...writing] =
    stages;
  const [{ emitProject }, { writeFiles }, { readChanges }] = writing;
  return {
    readProject,
    readProjectMemory,
    buildModel,
    acceptWarnings,
    checkConditions,
    emitProject,
    writeFiles,
    readChanges,
  };
}

/** Returns what a whole run of a project would return of which nothing has changed. */
function resultOf({ diagnostics, generated, stubs }: UnchangedRun, options: GenerateOptions): GenerateResult {
  const found = judge(diagnostics, options.strict ?? false);
  if (hasErrors(found)) return { diagnostics: found };
  const report = { created: [], updated: [], deleted: [], unused: [], stale: [], unchanged: generated, kept: stubs };
  return { diagnostics: found, report, ...(options.dryRun === true ? { changes: [] } : {}) };
}

function judge(diagnostics: readonly Diagnostic[], strict: boolean): readonly Diagnostic[] {
  return strict ? diagnostics.map((diagnostic) => ({ ...diagnostic, severity: "error" as const })) : diagnostics;
}

/** Returns the files that no folder of the project tells apart from others. */
function namedFilesOf({ crds, externalFiles }: ProjectInput): string[] {
  return [...new Set([...crds.map(({ file }) => file), ...[...externalFiles.values()].map(({ path }) => path)])].sort();
}

/** Checks what only the user's code tells. */
export async function checkUserCode(
  model: ProjectModel,
  root: string,
  locate: LocateExpression,
): Promise<readonly Diagnostic[]> {
  const { readSources } = await import("./input/read-sources.js");
  const code = (await readSources(root)).map(({ file, text }) => ({ path: file, text }));
  const hasExpressions = model.controllers.some(({ dependents }) =>
    dependents.some(({ conditions }) => Object.values(conditions).some(({ kind }) => kind === "when")),
  );
  // The compiler takes a while to load.
  if (code.length === 0 && !hasExpressions) return [];
  const { checkStubs } = await import("./output/stubs/check-stubs.js");
  const misshapen = checkStubs(model, code);
  if (misshapen.length > 0) return misshapen;
  const [{ checkCode }, { unlessTooDeep }] = await Promise.all([
    import("./output/reads/check-code.js"),
    import("./output/reads/source-program.js"),
  ]);
  const found = unlessTooDeep(() => checkCode(model, code, locate), "warning");
  return Array.isArray(found) ? found : [found];
}
