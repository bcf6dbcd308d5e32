import { resolve } from "node:path";
import { hasErrors, sortDiagnostics, type Diagnostic } from "./diagnostic.js";
import { readProject } from "./input/read-project.js";
import { readSources } from "./input/read-sources.js";
import { buildModel } from "./model/build/build-model.js";
import { acceptWarnings } from "./model/build/accept-warnings.js";
import { checkConditions } from "./output/conditions/check-conditions.js";
import type { LocateExpression, ProjectModel } from "./model/project-model.js";
import { emitProject } from "./output/emit-project.js";
import type { DerivedModel } from "./output/reads/derive-forms.js";
import { writeFiles, type WriteReport } from "./output/files/write-files.js";

/** What `generate` works on. */
export interface GenerateOptions {
  /** The folder with the workflow specs. Default: the working directory. */
  readonly project?: string;
  /** Reports what is stale and writes nothing. */
  readonly check?: boolean;
  /** Treats warnings as errors. */
  readonly strict?: boolean;
}

/** What came of it. */
export interface GenerateResult {
  readonly diagnostics: readonly Diagnostic[];
  /** What the caches of event sources keep, and why: a line for each. */
  readonly caches?: readonly string[];
  /** What became of the files; absent when a diagnostic is an error, for then nothing is written. */
  readonly report?: WriteReport;
}

/** Generates the code of a project: reads its CRDs and workflow specs, checks them, and writes what differs. */
export async function generate(options: GenerateOptions = {}): Promise<GenerateResult> {
  const { project = ".", check = false, strict = false } = options;
  const root = resolve(project);
  const input = await readProject(root);
  if (hasErrors(input.diagnostics)) return { diagnostics: sortDiagnostics(input.diagnostics) };

  const { model, diagnostics, locate } = await buildModel(input);
  if (model === undefined) return { diagnostics: sortDiagnostics([...input.diagnostics, ...diagnostics]) };

  const derived = await deriveModel(model, root, locate);
  const files = await emitProject(derived.model);
  const problems = await checkConditions(derived.model, files, locate);
  const reported = [...input.diagnostics, ...diagnostics, ...derived.diagnostics, ...problems];
  const all = sortDiagnostics(acceptWarnings(reported, input.workflows));
  const found = strict ? all.map((diagnostic) => ({ ...diagnostic, severity: "error" as const })) : all;
  if (hasErrors(found)) return { diagnostics: found };

  return { diagnostics: found, caches: derived.report, report: await writeFiles(root, files, { check }) };
}

/** Decides what the event sources of a project keep, from the code that is in its folder, and checks what only the code tells. */
export async function deriveModel(model: ProjectModel, root: string, locate: LocateExpression): Promise<DerivedModel> {
  const sources = await readSources(root);
  const code = sources.map(({ file, text }) => ({ path: file, text }));
  const usesEventSources = model.controllers.some(({ eventSources }) => eventSources.length > 0);
  const unchanged: DerivedModel = { model, diagnostics: [], report: [] };
  const hasExpressions = model.controllers.some(({ dependents }) =>
    dependents.some(({ conditions }) => Object.values(conditions).some(({ kind }) => kind === "when")),
  );
  // The compiler takes a while to load.
  if (code.length === 0 && !usesEventSources && !hasExpressions) return unchanged;
  const [{ deriveForms }, { checkCode }] = await Promise.all([
    import("./output/reads/derive-forms.js"),
    import("./output/reads/check-code.js"),
  ]);
  const derived = usesEventSources ? deriveForms(model, code, locate) : unchanged;
  return { ...derived, diagnostics: [...derived.diagnostics, ...checkCode(model, code, locate)] };
}
