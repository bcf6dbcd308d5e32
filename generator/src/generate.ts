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

/** What `generate` works on. */
export interface GenerateOptions {
  /** The folder with the workflow specs. Default: the working directory. */
  readonly project?: string;
  /** Reports what is stale and writes nothing. */
  readonly check?: boolean;
  /** Reports what would change, with the texts, and writes nothing. */
  readonly dryRun?: boolean;
  /** Texts of specs and CRDs that take the place of what is on disk: what would be if they were written. */
  readonly texts?: FileTexts;
  /** Treats warnings as errors. */
  readonly strict?: boolean;
  /**
   * Controllers, or `controller/dependent`, of which no object runs anywhere, so that nothing has to be stated about them. A name that the
   * last generation did not have is an error.
   */
  readonly forget?: readonly string[];
  /** Called with what is being done, as it begins: for somebody who waits. */
  readonly onStep?: (step: string) => void;
}

/** What came of it. */
export interface GenerateResult {
  readonly diagnostics: readonly Diagnostic[];
  /**
   * What became of the files; absent when a diagnostic is an error, for then nothing is written. With `check` and no errors but missing
   * stubs, it says what is stale.
   */
  readonly report?: WriteReport;
  /** With `dryRun`: the files that would change. */
  readonly changes?: readonly FileChange[];
  /** What is good to know, and no problem. Default: nothing */
  readonly notes?: readonly string[];
}

/**
 * Generates the code of a project: reads its CRDs and workflow specs, checks them, and writes what differs.
 *
 * A project of which nothing has changed since the last run is only read, and none of the stages is loaded.
 */
export async function generate(options: GenerateOptions = {}): Promise<GenerateResult> {
  const root = resolve(options.project ?? ".");
  const { texts, check = false, dryRun = false, forget = [] } = options;
  // What would be if a file were another one is nothing to remember.
  const memory = texts === undefined ? await RunMemory.open(root, MANIFEST_PATH) : undefined;
  // Whoever names something to forget is told if there is no such thing.
  const unchanged = forget.length === 0 ? memory?.unchangedRun() : undefined;
  if (unchanged !== undefined) {
    await memory?.keep();
    return resultOf(unchanged, options);
  }

  const stored = await StoredStages.open(root);
  const { input, files, all, ...result } = await runStages(root, { stage: stored.stage, memory }, options);
  if (memory === undefined) return result;
  // Without a memory, a check writes nothing at all.
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

/** What came of the stages, and what it came from. */
interface StagesResult extends GenerateResult {
  readonly input: ProjectInput;
  readonly files: readonly OutputFile[];
  /** The diagnostics as they are when warnings are no errors. */
  readonly all: readonly Diagnostic[];
}

/** What earlier runs came to. */
interface Memories {
  readonly stage: Stage;
  readonly memory: RunMemory | undefined;
}

async function runStages(root: string, { stage, memory }: Memories, options: GenerateOptions): Promise<StagesResult> {
  const { check = false, dryRun = false, strict = false, forget = [], onStep = () => {} } = options;
  onStep("reading the CRDs and the spec");
  // One import: each would become a file of the published program, with others for what some of them share.
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

/** Returns how the user's code follows renamed dependents. Few specs have any. */
async function followMoves(options: MoveOptions): Promise<MovedCode> {
  if (options.workflows.every(({ moved }) => moved.length === 0)) return { changes: [], diagnostics: [] };
  const { moveCode } = await import("./move/move-code.js");
  return moveCode(options);
}

/** Returns where the spec of a controller states something. */
function placeIn({ workflows }: ProjectInput, controller: string, path: readonly string[]) {
  return workflows.find(({ name }) => name === controller)?.document.valueAt(path) ?? {};
}

/** Returns the texts that files have after a run. */
function textsOf(files: readonly OutputFile[], changes: readonly FileChange[]) {
  const written = changes.flatMap(({ path, after }) => (after === undefined ? [] : [{ path, content: after }]));
  return [...files, ...written];
}

/** Returns the user's code as it is after changes. */
function withChanges(code: readonly ProjectFile[], changes: readonly FileChange[]): readonly ProjectFile[] {
  const changed = new Map(changes.map(({ path, after }) => [path, after]));
  return [
    ...code.filter(({ file }) => !changed.has(file)),
    ...[...changed].flatMap(([file, text]) => (text === undefined || !file.startsWith("src/") ? [] : [{ file, text }])),
  ];
}

/** Returns the code of the user's that this run writes, and the next one finds. */
function newStubsIn(files: readonly OutputFile[]): ProjectFile[] {
  const missing = files.filter(
    ({ path, owner, isPresent }) => owner === "user" && !isPresent && path.startsWith("src/"),
  );
  return missing.map(({ path, content }) => ({ file: path, text: content }));
}

/** Returns what a whole run of a project would return of which nothing has changed. */
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

/** Returns the files that no folder of the project tells apart from others. */
function namedFilesOf({ crds, externalFiles }: ProjectInput): string[] {
  return [...new Set([...crds.map(({ file }) => file), ...[...externalFiles.values()].map(({ path }) => path)])].sort();
}

/** What the user's code is checked with. */
export interface UserCodeOptions {
  readonly code: readonly ProjectFile[];
  /** Code of the user's that is still to be written, as it will be. Default: none */
  readonly stubs?: readonly ProjectFile[];
  /** The texts of the specs, in which expressions are. */
  readonly specFiles: readonly ProjectFile[];
  readonly locate: LocateExpression;
  /** Keeps what the code tells. Default: nothing is kept */
  readonly stage?: Stage;
}

const NOTHING_FOUND: CheckedCode = { diagnostics: [], inputs: [] };

/** Checks what only the user's code tells, and finds what it reads of the metadata of primaries. */
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
  // The next run finds the new stubs among the other code, and has nothing to check then.
  // Code of a renamed dependent takes the place of its stub.
  const missing = stubs.filter(({ file }) => !present.some((each) => each.file === file));
  const code = [...present, ...missing].sort((one, other) => (one.file < other.file ? -1 : 1));
  if (code.length === 0 && !hasExpressions) return NOTHING_FOUND;
  const texts = [...specFiles, ...code].flatMap(({ file, text }) => [file, text]);
  const check = stage(
    "code",
    () => [JSON.stringify(model.resources.map(namesOf)), ...texts],
    async (): Promise<CheckedCode> => {
      // A stub that nobody has filled in does nothing.
      if (present.length === 0 && !hasExpressions) return NOTHING_FOUND;
      // The compiler takes a while to load.
      const { inspectCode } = await import("./code/check-code.js");
      const files = code.map(({ file, text }) => ({ path: file, text }));
      return inspectCode(model, files, locate);
    },
  );
  return check();
}

/** What the checks of code see of a kind: everything but its fields. */
function namesOf(resource: ResourceModel): object {
  const names = Object.keys(resource).filter((key) => !["schema", "definitions", "crd", "digest"].includes(key));
  return Object.fromEntries(names.map((key) => [key, resource[key as keyof ResourceModel]]));
}
