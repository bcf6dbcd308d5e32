import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { CheckedCode } from "./code/check-code.js";
import type { LocateSetting } from "./code/missing-stubs.js";
import { type Diagnostic, hasErrors, sortDiagnostics } from "./diagnostic.js";
import type { OutputFile } from "./emit/output-file.js";
import { RunMemory, StoredStages, type UnchangedRun } from "./memory/run-memory.js";
import { type LocateExpression, type ProjectModel, type ResourceModel, isKubernetes } from "./model/project-model.js";
import type { MoveOptions, MovedCode } from "./move/move-code.js";
import type { ProjectFile } from "./read/project-files.js";
import type { FileTexts, ProjectInput } from "./read/read-project.js";
import { type Stage, uncached } from "./stage.js";
import { MANIFEST_PATH } from "./write/manifest.js";
import type { FileChange, WriteReport } from "./write/write-files.js";

/** Options of {@link generate}. */
export interface GenerateOptions {
  /** Folder of the workflow specs. Default: the working directory */
  readonly project?: string;
  /** Report stale files instead of writing. Default: false */
  readonly check?: boolean;
  /** Report the changes, with their texts, instead of writing. Default: false */
  readonly dryRun?: boolean;
  /** Texts of specs and CRDs to use instead of the files on disk, by path. */
  readonly texts?: FileTexts;
  /** Treat warnings as errors. Default: false */
  readonly strict?: boolean;
  /**
   * Controllers, or dependents as `controller/dependent`, that have no objects in any cluster, so that their removal needs no entry in the spec. A
   * name that the last generation did not have is an error.
   */
  readonly forget?: readonly string[];
  /** Called with a description of each step as it starts, for progress output. */
  readonly onStep?: (step: string) => void;
}

/** Result of {@link generate}. */
export interface GenerateResult {
  readonly diagnostics: readonly Diagnostic[];
  /**
   * The files that were written. Absent if a diagnostic is an error, because nothing is written then. Exception: with `check`, it lists stale files
   * even if missing stubs are reported as errors.
   */
  readonly report?: WriteReport;
  /** The files that would change. Only set with `dryRun`. */
  readonly changes?: readonly FileChange[];
  /** Information that is not a problem. Default: none */
  readonly notes?: readonly string[];
}

/**
 * Generates the code of a project: reads its CRDs and workflow specs, checks them, and writes the files that differ.
 *
 * If no input has changed since the last run, the stages are not loaded, and the result of the last run is returned.
 */
export async function generate(options: GenerateOptions = {}): Promise<GenerateResult> {
  const root = resolve(options.project ?? ".");
  const { texts, check = false, dryRun = false, forget = [] } = options;
  // A run with replaced texts must not be recorded.
  const memory = texts === undefined ? await RunMemory.open(root, MANIFEST_PATH) : undefined;
  // Names to forget must be checked even if nothing has changed.
  const unchanged = forget.length === 0 ? memory?.unchangedRun() : undefined;
  if (unchanged !== undefined) {
    await memory?.keep();
    return resultOf(unchanged, options);
  }

  const stored = await StoredStages.open(root);
  const { input, files, all, ...result } = await runStages(root, { stage: stored.stage, memory }, options);
  if (memory === undefined) return result;
  // A check or a dry run must not create node_modules.
  const creates = !check && !dryRun;
  const { report } = result;
  await stored.store({ creates, isWhole: report !== undefined });
  if (report !== undefined && !dryRun && report.stale.length === 0 && !hasErrors(result.diagnostics))
    await memory.remember(
      { named: namedFilesOf(input), diagnostics: all, notes: result.notes ?? [], files },
      { creates },
    );
  return result;
}

/** The result of the stages, with their input. */
interface StagesResult extends GenerateResult {
  readonly input: ProjectInput;
  readonly files: readonly OutputFile[];
  /** Diagnostics before `strict` turns warnings into errors. */
  readonly all: readonly Diagnostic[];
}

/** The stored results of earlier runs. */
interface Memories {
  readonly stage: Stage;
  readonly memory: RunMemory | undefined;
}

async function runStages(root: string, { stage, memory }: Memories, options: GenerateOptions): Promise<StagesResult> {
  const { check = false, dryRun = false, strict = false, forget = [], onStep = () => {} } = options;
  onStep("reading the CRDs and the spec");
  // Import all stages at once: separate imports would become separate files of the published bundle, and further files for their shared modules.
  const stages = await import("./generate-stages.js");
  const { readProject, readSources, readProjectMemory, buildModel, acceptWarnings, checkConditions } = stages;
  const { emitProject, emitInputs, writeFiles, readChanges } = stages;
  const { checkForgotten, forgetNames, followRenames, rememberControllers, rememberDependents } = stages;
  const { checkMissingStubs, checkPromises, wideSourceNotes } = stages;
  const stopped = (input: ProjectInput, found: readonly Diagnostic[]) => {
    const all = sortDiagnostics(found);
    return { input, files: [], all, diagnostics: all };
  };
  const knownDigestOf = (file: string) => memory?.inputDigestOf(file);
  const input = await readProject(root, { texts: options.texts, stage, knownDigestOf, onStep });
  if (hasErrors(input.diagnostics)) return stopped(input, input.diagnostics);

  const code = await readSources(root);
  const before = await readProjectMemory(root, () => Promise.resolve(code));
  if ("rule" in before) return stopped(input, [before]);
  const unknown = checkForgotten(before, forget);
  if (unknown.length > 0) return stopped(input, unknown);
  const known = followRenames(forgetNames(before, forget), input.workflows);
  onStep("checking the spec");
  const { model, diagnostics, locate } = await buildModel({ ...input, memory: known, stage });
  if (model === undefined) return stopped(input, [...input.diagnostics, ...diagnostics]);

  const isMissing = (path: string) => !existsSync(join(root, path));
  const emitted = await emitProject(model, { stage, isMissing, onStep });
  onStep("checking your code and the conditions");
  const readCode = async () => [...code, ...(await readSources(root, "test"))];
  const moved = await followMoves({ root, model, memory: known, workflows: input.workflows, files: emitted, readCode });
  if (moved.diagnostics.length > 0) return stopped(input, moved.diagnostics);
  const present = withChanges(code, moved.changes);
  const { specFiles } = input;
  const checked = await checkUserCode(model, { code: present, stubs: newStubsIn(emitted), specFiles, locate, stage });
  const files = emitInputs(emitted, model, checked.inputs, { isMissing });
  const notes = [...checked.inputs.flatMap(({ note }) => note ?? []), ...wideSourceNotes(model)];
  const problems = [
    ...checked.diagnostics,
    ...(await checkConditions(model, files, { code: present, locate, stage })),
    ...(await checkPromises(model, files, { root, code: present, stage })),
  ];
  const reported = [...input.diagnostics, ...diagnostics, ...problems];
  const all = sortDiagnostics(acceptWarnings(reported, input.workflows));
  const found = judge(all, strict);
  if (hasErrors(found)) return { input, files, all, diagnostics: found };

  onStep(check || dryRun ? "comparing the files" : "writing the files");
  const report = await writeFiles(root, files, {
    ...{ check, dryRun, userChanges: moved.changes },
    dependents: rememberDependents(model),
    controllers: rememberControllers(model),
    ...(memory === undefined ? {} : { digests: memory.digests }),
  });
  const changes = dryRun ? { changes: await readChanges(root, textsOf(files, moved.changes), report) } : {};
  const locateSetting: LocateSetting = ({ name }, path) => placeIn(input, name, path);
  const movedTo = new Set(moved.changes.flatMap(({ path, before }) => (before === undefined ? [path] : [])));
  const missing = check && !dryRun ? checkMissingStubs(model, files, locateSetting, movedTo) : [];
  const reports = { report, ...(notes.length > 0 && { notes }), ...changes };
  return { input, files, all, diagnostics: sortDiagnostics([...found, ...missing]), ...reports };
}

/** Returns the changes of user code for renamed dependents. Loaded on demand, because few specs have any. */
async function followMoves(options: MoveOptions): Promise<MovedCode> {
  if (options.workflows.every(({ moved }) => moved.length === 0)) return { changes: [], diagnostics: [] };
  const { moveCode } = await import("./move/move-code.js");
  return moveCode(options);
}

/** Returns the position of a field in the spec of a controller. */
function placeIn({ workflows }: ProjectInput, controller: string, path: readonly string[]) {
  return workflows.find(({ name }) => name === controller)?.document.valueAt(path) ?? {};
}

/** Returns the files with their texts after the run. */
function textsOf(files: readonly OutputFile[], changes: readonly FileChange[]) {
  const written = changes.flatMap(({ path, after }) => (after === undefined ? [] : [{ path, content: after }]));
  return [...files, ...written];
}

/** Applies changes to user code. */
function withChanges(code: readonly ProjectFile[], changes: readonly FileChange[]): readonly ProjectFile[] {
  const changed = new Map(changes.map(({ path, after }) => [path, after]));
  return [
    ...code.filter(({ file }) => !changed.has(file)),
    ...[...changed].flatMap(([file, text]) => (text === undefined || !file.startsWith("src/") ? [] : [{ file, text }])),
  ];
}

/** Returns the stubs that this run writes, which are user code for the next run. */
function newStubsIn(files: readonly OutputFile[]): ProjectFile[] {
  const missing = files.filter(
    ({ path, owner, isPresent }) => owner === "user" && !isPresent && path.startsWith("src/"),
  );
  return missing.map(({ path, content }) => ({ file: path, text: content }));
}

/** Returns the result for an unchanged project. */
function resultOf({ diagnostics, notes, generated, stubs }: UnchangedRun, options: GenerateOptions): GenerateResult {
  const found = judge(diagnostics, options.strict ?? false);
  if (hasErrors(found)) return { diagnostics: found };
  const report = { created: [], updated: [], deleted: [], unused: [], stale: [], unchanged: generated, kept: stubs };
  const noted = notes.length > 0 ? { notes } : {};
  return { diagnostics: found, report, ...noted, ...(options.dryRun === true ? { changes: [] } : {}) };
}

function judge(diagnostics: readonly Diagnostic[], strict: boolean): readonly Diagnostic[] {
  return strict ? diagnostics.map((diagnostic) => ({ ...diagnostic, severity: "error" as const })) : diagnostics;
}

/** Returns the input files that are referenced by name, and so are not found by listing the folders of the project. */
function namedFilesOf({ crds, externalFiles }: ProjectInput): string[] {
  return [...new Set([...crds.map(({ file }) => file), ...[...externalFiles.values()].map(({ path }) => path)])].sort();
}

/** Options of {@link checkUserCode}. */
export interface UserCodeOptions {
  readonly code: readonly ProjectFile[];
  /** Stubs that are to be written. Default: none */
  readonly stubs?: readonly ProjectFile[];
  /** Texts of the specs, which contain expressions. */
  readonly specFiles: readonly ProjectFile[];
  readonly locate: LocateExpression;
  /** Caches the results. Default: no cache */
  readonly stage?: Stage;
}

const NOTHING_FOUND: CheckedCode = { diagnostics: [], inputs: [] };

/** Checks user code, and finds the metadata of primaries that it reads. */
export async function checkUserCode(
  model: ProjectModel,
  { code: present, stubs = [], specFiles, locate, stage = uncached }: UserCodeOptions,
): Promise<CheckedCode> {
  const hasExpressions = model.controllers.some(({ dependents }) =>
    dependents.some((each) =>
      [...Object.values(each.conditions), ...Object.values(isKubernetes(each) ? (each.ref ?? {}) : {})].some(
        ({ kind }) => kind === "when",
      ),
    ),
  );
  // Include new stubs in the cache key, so that the next run, which finds them as user code, hits the cache. Code that is moved for a renamed
  // dependent takes precedence over its stub.
  const missing = stubs.filter(({ file }) => !present.some((each) => each.file === file));
  const code = [...present, ...missing].sort((one, other) => (one.file < other.file ? -1 : 1));
  if (code.length === 0 && !hasExpressions) return NOTHING_FOUND;
  const texts = [...specFiles, ...code].flatMap(({ file, text }) => [file, text]);
  const check = stage(
    "code",
    () => [JSON.stringify(model.resources.map(namesOf)), ...texts],
    async (): Promise<CheckedCode> => {
      // Unmodified stubs have nothing to check.
      if (present.length === 0 && !hasExpressions) return NOTHING_FOUND;
      // Load the compiler only if necessary, because it is slow.
      const { inspectCode } = await import("./code/check-code.js");
      const files = code.map(({ file, text }) => ({ path: file, text }));
      return inspectCode(model, files, locate);
    },
  );
  return check();
}

/** Returns a kind without its fields, which the checks of user code do not use. */
function namesOf(resource: ResourceModel): object {
  const names = Object.keys(resource).filter((key) => !["schema", "definitions", "crd", "digest"].includes(key));
  return Object.fromEntries(names.map((key) => [key, resource[key as keyof ResourceModel]]));
}
