import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, resolve, sep } from "node:path";
import { promisify } from "node:util";
import type ts from "typescript";
import { buildModel } from "../check/build-model.js";
import { isImmutableKind } from "../check/dependents.js";
import { type Diagnostic, hasErrors, slashed, sortDiagnostics } from "../diagnostic.js";
import { emitProject } from "../emit/emit-project.js";
import { dependentNamesOf, kebabCase } from "../emit/names.js";
import type { OutputFile } from "../emit/output-file.js";
import { type ControllerModel, type ProjectModel, isKubernetes, isReadOnly } from "../model/project-model.js";
import { loadLibrary } from "../model/typescript.js";
import { moveCode } from "../move/move-code.js";
import { isDirectory, readSources } from "../read/project-files.js";
import { type ProjectInput, type ReadOptions, readProject } from "../read/read-project.js";
import { rememberDependents } from "../write/manifest.js";
import type { FileChange } from "../write/write-files.js";
import { type Change, collectInto, locateChange } from "./change.js";
import { compareCrds } from "./compare-crds.js";
import { compareWorkflows } from "./compare-workflows.js";

/** Options of {@link diffProject}. */
export interface DiffOptions {
  readonly project: string;
  /** A folder with another state of the project, or a git revision of its repository. */
  readonly against: string;
  /** Called with a description of each step as it starts, for progress output. */
  readonly onStep?: (step: string) => void;
}

/** The differences between two states. */
export interface ProjectDiff {
  readonly changes: readonly Change[];
  /** Absent if the packages of the project are not installed. */
  readonly brokenLines?: readonly BrokenLine[];
  /** Stubs that nothing calls any more. They are user code, so the generator does not delete them. */
  readonly staleStubs: readonly string[];
  /** Stubs that `generate` will write. */
  readonly newStubs: readonly string[];
}

/** Result of {@link diffProject}: the differences, the errors of one of the states, or why the earlier state cannot be read. */
export type DiffResult =
  | { readonly kind: "compared"; readonly diff: ProjectDiff }
  | { readonly kind: "rejected"; readonly state: "before" | "now"; readonly diagnostics: readonly Diagnostic[] }
  | { readonly kind: "unreadable"; readonly problem: string };

/** Compares a project with an earlier state: CRDs, specs, stubs, and user code that stops compiling. Writes nothing. */
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

// An earlier state cannot be corrected, so its CRDs need not be accepted by an API server.
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

// Returns the changes of user code that generate will make for moved dependents.
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

const run = promisify(execFile);

/** The earlier state of a project. Disposing it removes temporary files. */
interface Baseline extends AsyncDisposable {
  readonly folder: string;
}

/** Returns the state in a folder, or checks out the state of a git revision into a temporary folder. */
async function openBaseline(project: string, against: string): Promise<Baseline | { readonly problem: string }> {
  if (await isDirectory(against)) return { folder: resolve(against), [Symbol.asyncDispose]: async () => undefined };
  const temporary = await mkdtemp(join(tmpdir(), "gen-operator-diff-"));
  const dispose = () => rm(temporary, { recursive: true, force: true });
  // A separate index leaves the repository untouched.
  const env = { ...process.env, GIT_INDEX_FILE: join(temporary, "index") };
  const git = (...args: string[]) => run("git", ["-C", project, ...args], { env, encoding: "utf8" });
  try {
    const prefix = (await git("rev-parse", "--show-prefix")).stdout.trim();
    const commit = (
      await git("rev-parse", "--verify", "--quiet", "--end-of-options", `${against}^{commit}`)
    ).stdout.trim();
    await git("read-tree", `${commit}:${prefix}`);
    const folder = join(temporary, "project");
    await git("checkout-index", "--all", `--prefix=${folder}/`);
    return { folder, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    const { stderr = "", code } = error as { stderr?: string; code?: unknown };
    const said = stderr.trim().split("\n")[0];
    const reason =
      code === "ENOENT"
        ? "git is not installed"
        : said?.startsWith("fatal: not a git repository") === true
          ? "not a folder, and the project is not in a git repository"
          : said;
    return { problem: reason === undefined || reason === "" ? "folder or commit not found" : reason };
  }
}

/** Fields that are immutable after creation, by group and kind. */
const IMMUTABLE: ReadonlyMap<string, string> = new Map([
  ["/PersistentVolumeClaim", "spec, other than resources.requests and volumeAttributesClassName"],
  ["/Pod", "spec, other than images, tolerations that are added and activeDeadlineSeconds"],
  ["/Secret", "type"],
  ["/Service", "spec.clusterIP and spec.clusterIPs"],
  ["apps/DaemonSet", "spec.selector"],
  ["apps/Deployment", "spec.selector"],
  ["apps/ReplicaSet", "spec.selector"],
  [
    "apps/StatefulSet",
    "spec, other than replicas, ordinals, template, updateStrategy, revisionHistoryLimit, persistentVolumeClaimRetentionPolicy and minReadySeconds",
  ],
  ["batch/Job", "spec.selector, spec.template and spec.completionMode"],
  ["discovery.k8s.io/EndpointSlice", "addressType"],
  ["networking.k8s.io/IngressClass", "spec.controller"],
  ["node.k8s.io/RuntimeClass", "handler"],
  ["rbac.authorization.k8s.io/ClusterRoleBinding", "roleRef"],
  ["rbac.authorization.k8s.io/RoleBinding", "roleRef"],
  ["scheduling.k8s.io/PriorityClass", "value and preemptionPolicy"],
  ["storage.k8s.io/StorageClass", "provisioner, parameters, reclaimPolicy and volumeBindingMode"],
]);

/** The folders of two states, and the controllers of the current one. */
interface TwoStates {
  readonly before: string;
  readonly now: string;
  readonly controllers: readonly ControllerModel[];
}

/** Reports dependents whose stub has changed and whose kind has immutable fields. Whether such a field changes is only known at run time. */
export async function compareStubs({ before, now, controllers }: TwoStates): Promise<Change[]> {
  const changes: Change[] = [];
  for (const controller of controllers) {
    const add = collectInto(changes, `controller ${controller.name}`);
    for (const dependent of controller.dependents) {
      if (!isKubernetes(dependent) || isReadOnly(dependent)) continue;
      if (dependent.mode === "createOnly" || dependent.mode === "once") continue;
      const { group, kind } = dependent.resource;
      const fields = IMMUTABLE.get(`${group}/${kind}`);
      if (fields === undefined) continue;
      const path = `src/${kebabCase(controller.name)}/dependents/${dependentNamesOf(dependent).file}.ts`;
      const [former, current] = await Promise.all([before, now].map((root) => textOfStub(join(root, path))));
      if (former === undefined || current === undefined || former === current) continue;
      const isRecreated = dependent.onImmutable === "recreate";
      const fate = isRecreated
        ? `an existing ${kind} is deleted and created again if ${fields} would change`
        : `the API server rejects changes of ${fields} of an existing ${kind}: change the name of the object, or set onImmutable: recreate`;
      // Nearly every update of these kinds is rejected.
      const isBreaking = !isRecreated && isImmutableKind(dependent.resource);
      add(isBreaking ? "breaking" : "compatible", dependent.name, `${path} differs; ${fate}`);
    }
  }
  return changes;
}

async function textOfStub(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(() => undefined);
}

/** A line of user code that compiles with the former generated code, but not with the current one. */
interface BrokenLine {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** Message with its error code, for example `TS2339: Property …`. */
  readonly message: string;
}

/** Two states of the generated code of a project. */
interface GeneratedCode {
  readonly before: readonly OutputFile[];
  readonly after: readonly OutputFile[];
  /** Changes of user code that generate will make. */
  readonly changes: readonly FileChange[];
}

/** Returns the lines of user code that stop compiling; undefined if the project cannot be compiled because its packages are not installed. */
function findBrokenLines(root: string, { before, after, changes }: GeneratedCode): BrokenLine[] | undefined {
  const compiler = loadLibrary("typescript");
  const configFile = compiler.findConfigFile(root, compiler.sys.fileExists);
  if (configFile === undefined || !configFile.startsWith(root)) return undefined;
  const config = compiler.parseJsonConfigFileContent(
    compiler.readConfigFile(configFile, compiler.sys.readFile).config,
    compiler.sys,
    root,
  );
  const now = compile(compiler, { root, config, files: after, changes });
  const known = new Set(compile(compiler, { root, config, files: before, changes: [] }).map(lineKeyOf));
  if (now.some(({ message }) => /^TS(2307|2792): .*'@gen-operator\/runtime/.test(message))) return undefined;
  return now.filter((problem) => !known.has(lineKeyOf(problem)));
}

function lineKeyOf({ file, line, column, message }: BrokenLine): string {
  return `${file}:${line}:${column}:${message}`;
}

interface Compilation {
  readonly root: string;
  readonly config: ts.ParsedCommandLine;
  readonly files: readonly OutputFile[];
  readonly changes: readonly FileChange[];
}

// Emitted files replace the generated code on disk, and stubs that do not exist yet.
function compile(compiler: typeof ts, { root, config, files, changes }: Compilation): BrokenLine[] {
  const generated = resolve(root, "src/generated") + sep;
  const texts = new Map<string, string>();
  for (const { path, content, owner } of files) {
    const file = resolve(root, path);
    if (/\.[cm]?tsx?$/.test(file) && (owner === "generator" || !compiler.sys.fileExists(file)))
      texts.set(file, content);
  }
  for (const { path, after } of changes) if (after !== undefined) texts.set(resolve(root, path), after);
  const deleted = new Set(changes.flatMap(({ path, after }) => (after === undefined ? [resolve(root, path)] : [])));
  const options: ts.CompilerOptions = { ...config.options, noEmit: true, incremental: false, composite: false };
  const host = compiler.createCompilerHost(options);
  const { readFile, fileExists, getSourceFile } = host;
  const isHidden = (file: string) => resolve(file).startsWith(generated) || deleted.has(resolve(file));
  host.fileExists = (file) => texts.has(resolve(file)) || (!isHidden(file) && fileExists(file));
  host.readFile = (file) => texts.get(resolve(file)) ?? (isHidden(file) ? undefined : readFile(file));
  // Folders of generated code may not exist yet.
  host.directoryExists = (folder) => resolve(folder).startsWith(resolve(root)) || compiler.sys.directoryExists(folder);
  host.getSourceFile = (file, version, ...rest) => {
    const text = texts.get(resolve(file));
    return text === undefined ? getSourceFile(file, version, ...rest) : compiler.createSourceFile(file, text, version);
  };
  const roots = [...new Set([...config.fileNames.filter((file) => !isHidden(file)), ...texts.keys()])];
  const program = compiler.createProgram(roots, options, host);
  return compiler.getPreEmitDiagnostics(program).flatMap(({ file, start, code, messageText }) => {
    if (file === undefined || start === undefined || isHidden(file.fileName)) return [];
    const name = slashed(relative(root, resolve(file.fileName)));
    if (name.startsWith("../") || name.includes("node_modules/")) return [];
    const { line, character } = file.getLineAndCharacterOfPosition(start);
    const message = `TS${code}: ${compiler.flattenDiagnosticMessageText(messageText, " ")}`;
    return [{ file: name, line: line + 1, column: character + 1, message }];
  });
}
