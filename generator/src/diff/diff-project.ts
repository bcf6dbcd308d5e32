import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { hasErrors, sortDiagnostics, type Diagnostic } from "../diagnostic.js";
import { findBrokenLines, type BrokenLine } from "./broken-lines.js";
import { locateChange, type Change } from "./change.js";
import { compareCrds } from "./compare-crds.js";
import { compareStubs } from "./compare-stubs.js";
import { compareWorkflows } from "./compare-workflows.js";
import { openBaseline } from "./read-baseline.js";
import { readProject, type ProjectInput, type ReadOptions } from "../input/read-project.js";
import { readSources } from "../input/read-sources.js";
import { rememberDependents } from "../model/project-memory.js";
import type { ProjectModel } from "../model/project-model.js";
import { moveCode } from "../move/move-code.js";
import { buildModel } from "../model/build/build-model.js";
import { emitProject } from "../output/emit-project.js";
import type { OutputFile } from "../output/files/output-file.js";

/** What `diffProject` compares. */
export interface DiffOptions {
  readonly project: string;
  /** A folder with another state of the project, or a commit of its repository. */
  readonly against: string;
  /** Called with what is being done, as it begins: for somebody who waits. */
  readonly onStep?: (step: string) => void;
}

/** What differs. */
export interface ProjectDiff {
  readonly changes: readonly Change[];
  /** Absent if the packages of the project are not installed. */
  readonly brokenLines?: readonly BrokenLine[];
  /** Stubs that nothing calls any more; they are the user's to delete. */
  readonly staleStubs: readonly string[];
  /** Stubs that `generate` will write. */
  readonly newStubs: readonly string[];
}

/** What came of it: a difference, mistakes of either state, or why there is nothing to compare with. */
export type DiffResult =
  | { readonly kind: "compared"; readonly diff: ProjectDiff }
  | { readonly kind: "rejected"; readonly state: "before" | "now"; readonly diagnostics: readonly Diagnostic[] }
  | { readonly kind: "unreadable"; readonly problem: string };

/** Compares a project with an earlier state: its CRDs, its specs, its stubs, and what of the user's code stops compiling. Writes nothing. */
export async function diffProject({ project, against, onStep = () => {} }: DiffOptions): Promise<DiffResult> {
  const root = resolve(project);
  onStep(`reading the project as of ${against}`);
  const opened = await openBaseline(root, against);
  if ("problem" in opened) return { kind: "unreadable", problem: opened.problem };
  await using baseline = opened;
  const now = await readState(root);
  if ("diagnostics" in now) return { kind: "rejected", state: "now", ...now };
  const before = await readState(baseline.folder, { checksDefinitions: false });
  if ("diagnostics" in before) return { kind: "rejected", state: "before", ...before };
  const stubsOf = ({ files }: State) => files.flatMap(({ path, owner }) => (owner === "user" ? [path] : []));
  const [former, current] = [stubsOf(before), stubsOf(now)];
  const exists = await Promise.all(
    [...former, ...current].map(async (path) => [path, await isThere(root, path)] as const),
  );
  const present = new Set(exists.flatMap(([path, isPresent]) => (isPresent ? [path] : [])));
  onStep("compiling your code with the new types");
  const moved = await followMoves(root, before, now);
  const brokenLines = findBrokenLines(root, { before: before.files, after: now.files, changes: moved });
  const isMoved = (path: string) => moved.some((each) => each.path === path);
  const found = [
    ...compareCrds(before.input.crds, now.input.crds),
    ...compareWorkflows(before.controllers, now.controllers),
    ...(await compareStubs({ before: baseline.folder, now: root, controllers: now.controllers })),
  ];
  const located = { input: now.input, before: before.controllers };
  const diff = {
    changes: found.map((change) => locateChange(change, located)),
    ...(brokenLines === undefined ? {} : { brokenLines }),
    staleStubs: former.filter((path) => !current.includes(path) && present.has(path) && !isMoved(path)),
    newStubs: current.filter((path) => !present.has(path) && !isMoved(path)),
  };
  return { kind: "compared", diff };
}

interface State {
  readonly input: ProjectInput;
  readonly model: ProjectModel;
  readonly controllers: Parameters<typeof compareWorkflows>[0];
  readonly files: readonly OutputFile[];
}

// Nobody can correct an earlier state any more, so it may have CRDs that no API server takes.
async function readState(
  root: string,
  options: Pick<ReadOptions, "checksDefinitions"> = {},
): Promise<State | { readonly diagnostics: readonly Diagnostic[] }> {
  const input = await readProject(root, options);
  if (hasErrors(input.diagnostics)) return { diagnostics: sortDiagnostics(input.diagnostics) };
  const { model, diagnostics } = await buildModel(input);
  if (model === undefined) return { diagnostics: sortDiagnostics([...input.diagnostics, ...diagnostics]) };
  return {
    input,
    model,
    controllers: model.controllers,
    files: await emitProject(model, { hasReconciler: (path) => existsSync(resolve(root, path)) }),
  };
}

// What generate will change in the user's code.
async function followMoves(root: string, before: State, { input, model, files }: State) {
  const memory = { dependents: rememberDependents(before.model), stubs: [] };
  const readCode = async () => [...(await readSources(root)), ...(await readSources(root, "test"))];
  return (await moveCode({ root, model, memory, workflows: input.workflows, files, readCode })).changes;
}

async function isThere(root: string, path: string): Promise<boolean> {
  try {
    return (await stat(resolve(root, path))).isFile();
  } catch {
    return false;
  }
}
