import { type Stats, existsSync, lstatSync, readFileSync, readdirSync, realpathSync, statSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Diagnostic } from "../diagnostic.js";
import { CRDS_KUSTOMIZATION } from "../emit/output-file.js";
import { packageFile } from "../package-file.js";
import { PlainFolders, isDirectory, listCrdFiles, listSourceFiles, listSpecFiles } from "../read/project-files.js";
import { type Stage, StageCache, type StageResults, digestOf } from "../stage.js";

/** The record of the last run that wrote a project, or found it up to date. */
interface RunRecord {
  /** Digest of all inputs. */
  readonly inputs: string;
  /** Inputs that a spec references by name, and that are not found by listing folders. */
  readonly named: readonly string[];
  /** Diagnostics of the run, which stay valid while the inputs are unchanged. */
  readonly diagnostics: readonly Diagnostic[];
  /** Notes of the run. */
  readonly notes: readonly string[];
  /** Digests of the generated files and the manifest, by path. */
  readonly generated: { readonly [path: string]: string };
  readonly stubs: readonly string[];
  /** Known digests of inputs and generated files, which need not be read again. */
  readonly known: KnownFiles;
}

/** A run whose inputs and outputs are unchanged. */
export interface UnchangedRun {
  readonly diagnostics: readonly Diagnostic[];
  readonly notes: readonly string[];
  readonly generated: readonly string[];
  readonly stubs: readonly string[];
}

/** The result of a run to record. */
interface FinishedRun {
  /** Inputs that a spec references by name. */
  readonly named: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
  /** Notes of the run. Default: none */
  readonly notes?: readonly string[];
  readonly files: readonly {
    readonly path: string;
    readonly owner: "generator" | "user";
    readonly content: string;
    readonly digest?: string;
  }[];
}

const RUN_FILE = "run.json";

/** The record of the last run of a project, compared with the current state of its inputs. */
export class RunMemory {
  readonly #root: string;
  readonly #record: RunRecord | undefined;
  readonly #inputs: InputSnapshot | undefined;
  readonly #digests: FileDigests;
  readonly #openedAt = Date.now();
  readonly #manifestPath: string;
  readonly #manifest: string | undefined;

  private constructor(
    [root, manifestPath]: readonly [root: string, manifestPath: string],
    record: RunRecord | undefined,
    [inputs, digests]: readonly [inputs: InputSnapshot | undefined, digests: FileDigests],
  ) {
    this.#root = root;
    this.#manifestPath = manifestPath;
    this.#manifest = new PlainFolders(root).digestOf(manifestPath);
    this.#record = record;
    this.#inputs = inputs;
    this.#digests = digests;
  }

  /** Reads the record of a project and takes a snapshot of its inputs, before the run reads any of them. The manifest lists the generated files. */
  static async open(root: string, manifestPath: string): Promise<RunMemory> {
    const record = (await readMemoryFile(root, RUN_FILE)) as RunRecord | undefined;
    // A referenced file may have been deleted together with the reference.
    const digests = new FileDigests(root, record?.known);
    const inputs = (await takeSnapshot(root, record?.named ?? [], digests)) ?? (await takeSnapshot(root, [], digests));
    return new RunMemory([root, manifestPath], record, [inputs, digests]);
  }

  /** Returns the digest of an input when the record was opened; undefined if it was not an input. */
  inputDigestOf(path: string): string | undefined {
    return this.#inputs?.get(path)?.digest;
  }

  /** Digests of the files of the project. */
  get digests(): FileDigests {
    return this.#digests;
  }

  /** Returns the last run if its inputs and outputs are unchanged. */
  unchangedRun(): UnchangedRun | undefined {
    const record = this.#record;
    if (record === undefined || this.#inputs === undefined) return undefined;
    if (digestOfSnapshot(this.#root, this.#inputs) !== record.inputs) return undefined;
    try {
      return this.#isIntact(record) ? unchangedRunOf(record, this.#manifestPath) : undefined;
    } catch {
      // A full run reports the problem.
      return undefined;
    }
  }

  #isIntact({ generated, stubs }: RunRecord): boolean {
    const folders = new PlainFolders(this.#root);
    // A full run deletes temporary files that a killed process has left.
    if ([".", dirname(this.#manifestPath)].some((folder) => hasTemporaryFiles(join(this.#root, folder)))) return false;
    const isAsWritten = ([path, digest]: [string, string]) => {
      const stats = folders.statsOf(path);
      return stats !== undefined && this.#digests.digestOf(path, stats) === digest;
    };
    return Object.entries(generated).every(isAsWritten) && stubs.every((path) => folders.hasFile(path));
  }

  /** Records a run, unless an input has changed while it ran. */
  async remember({ named, diagnostics, notes = [], files }: FinishedRun, options: MemoryFileOptions): Promise<void> {
    const inputs = await takeSnapshot(this.#root, named, this.#digests);
    if (inputs === undefined || this.#inputs === undefined || !this.#isSame(inputs, this.#inputs)) return;
    const own = files.filter(({ owner }) => owner === "generator");
    const manifest = this.#manifest;
    // The diagnostics of a run may depend on the manifest that it started with.
    if (manifest === undefined || new PlainFolders(this.#root).digestOf(this.#manifestPath) !== manifest) return;
    const generated = Object.fromEntries([
      ...own.map((file) => [file.path, file.digest ?? digestOf(file.content)] as const),
      [this.#manifestPath, manifest],
    ]);
    const record: RunRecord = {
      ...{ inputs: digestOfSnapshot(this.#root, inputs), named, diagnostics, notes, generated },
      stubs: files.flatMap(({ path, owner }) => (owner === "user" ? [path] : [])),
      known: this.#digests.knownOf([...inputs.keys(), ...Object.keys(generated)]),
    };
    await writeMemoryFile(this.#root, [RUN_FILE, record], options);
  }

  /** Stores digests learned by an unchanged run: files written shortly before they were recorded need not be read again. */
  async keep(): Promise<void> {
    if (this.#record === undefined || this.#inputs === undefined || !this.#digests.hasLearnt) return;
    const known = this.#digests.knownOf([...this.#inputs.keys(), ...Object.keys(this.#record.generated)]);
    await writeMemoryFile(this.#root, [RUN_FILE, { ...this.#record, known }], { creates: false });
  }

  /** Returns whether the inputs in a later snapshot are those that the run has read. */
  #isSame(after: InputSnapshot, before: InputSnapshot): boolean {
    const isUnchanged = [...after].every(([path, { stamp, changedAt, digest }]) => {
      const earlier = before.get(path);
      // The run itself found that the spec references this file.
      if (earlier === undefined) return changedAt < this.#openedAt - CLOCK_TICK_MS;
      return earlier.stamp === stamp && earlier.digest === digest;
    });
    return isUnchanged && [...before.keys()].every((path) => after.has(path));
  }
}

function unchangedRunOf({ generated, stubs, diagnostics, notes = [] }: RunRecord, manifestPath: string): UnchangedRun {
  return { diagnostics, notes, generated: Object.keys(generated).filter((path) => path !== manifestPath), stubs };
}

/** File timestamps are less precise than the clock. */
const CLOCK_TICK_MS = 50;

function hasTemporaryFiles(folder: string): boolean {
  return readdirSync(folder).some((name) => name.endsWith(".gen-operator"));
}

/** The state of an input file. */
interface FileState {
  /** Changes with every write of the file. */
  readonly stamp: string;
  readonly changedAt: number;
  readonly digest: string;
}

/** Files that determine the name of the project and the types that its code imports. npm updates the last one with every installation. */
const PACKAGE_FILES = ["package.json", "tsconfig.json", "node_modules/.package-lock.json"];

/** The states of all input files at one moment. */
type InputSnapshot = ReadonlyMap<string, FileState>;

/**
 * Takes a snapshot of all files that `generate` reads. `named` are files that a spec references by name. Undefined if an input is not a regular file,
 * in which case the result does not only depend on contents.
 */
async function takeSnapshot(
  root: string,
  named: readonly string[],
  digests: FileDigests,
): Promise<InputSnapshot | undefined> {
  if (!(await isDirectory(root))) return undefined;
  const lists = await Promise.all([listSpecFiles(root), listCrdFiles(root), listSourceFiles(root)]).catch(
    () => undefined,
  );
  // A full run reports which folder cannot be listed.
  if (lists === undefined) return undefined;
  const optional = [...PACKAGE_FILES, CRDS_KUSTOMIZATION].filter((path) => exists(join(root, path)));
  const paths = new Set([...lists.flat(), ...named, ...optional]);
  const states = new Map<string, FileState>();
  for (const path of paths) {
    const state = stateOf(root, path, digests);
    if (state === undefined) return undefined;
    states.set(path, state);
  }
  return states;
}

/** Returns a digest of the contents of a snapshot, and of the folder name, which is the project's name if it has no package.json. */
function digestOfSnapshot(root: string, snapshot: InputSnapshot): string {
  const files = [...snapshot].map(([path, { digest }]) => `${path} ${digest}`).sort();
  return digestOf(basename(resolve(root)), ...files);
}

function stateOf(root: string, path: string, digests: FileDigests): FileState | undefined {
  try {
    const stats = statSync(join(root, path));
    if (!stats.isFile()) return undefined;
    return { stamp: stampOf(stats), changedAt: stats.ctimeMs, digest: digests.digestOf(path, stats) };
  } catch {
    return undefined;
  }
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** Digests of files when they were last read, by path, with a stamp that changes with later writes. */
type KnownFiles = { readonly [path: string]: readonly [stamp: string, digest: string] };

/**
 * Computes digests of project files, and only reads files that may have changed since an earlier run.
 *
 * A file counts as unchanged if its inode, size, mtime, and ctime are unchanged: programs cannot set the ctime, and replacing a file changes the
 * inode. The digest of a file that was written shortly before it was read is not stored, because a second write within the same tick of the file
 * system could leave its times and size unchanged.
 */
export class FileDigests {
  readonly #root: string;
  readonly #now: () => number;
  readonly #known: Map<string, readonly [stamp: string, digest: string]>;
  #hasLearnt = false;

  constructor(root: string, known: KnownFiles = {}, now: () => number = Date.now) {
    this.#root = root;
    this.#known = new Map(Object.entries(known));
    this.#now = now;
  }

  /** Returns the digest of a file with the given state. */
  digestOf(path: string, stats: Stats): string {
    const stamp = stampOf(stats);
    const [knownStamp, knownDigest] = this.#known.get(path) ?? [];
    if (knownStamp === stamp && knownDigest !== undefined) return knownDigest;
    const digest = digestOf(readFileSync(join(this.#root, path)));
    if (isSettled(stats, this.#now())) {
      this.#known.set(path, [stamp, digest]);
      this.#hasLearnt = true;
    }
    return digest;
  }

  /** True if digests were computed that a later run can reuse. */
  get hasLearnt(): boolean {
    return this.#hasLearnt;
  }

  /** Returns the stored digests of the given files. */
  knownOf(paths: Iterable<string>): KnownFiles {
    const known = [...paths].flatMap((path) => {
      const file = this.#known.get(path);
      return file === undefined ? [] : [[path, file] as const];
    });
    return Object.fromEntries(known);
  }
}

/** Returns a string that changes whenever a file is written or replaced. */
export function stampOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return [dev, ino, size, mtimeMs, ctimeMs].join(" ");
}

/** Returns whether a later write is guaranteed to change the times of the file. FAT has a resolution of two seconds. */
function isSettled({ mtimeMs, ctimeMs }: Stats, now: number): boolean {
  return Math.max(mtimeMs, ctimeMs) < now - 2_500;
}

const STAGES_FILE = "stages.json";

/** Options of {@link StoredStages.store}. */
interface StoreOptions extends MemoryFileOptions {
  /** True if the run completed. A run that stopped at an error has not used the results of later stages. */
  readonly isWhole: boolean;
}

/** The stage results of the last run of a project. */
export class StoredStages {
  readonly #root: string;
  readonly #earlier: StageResults;
  readonly #cache: StageCache;

  private constructor(root: string, earlier: StageResults) {
    this.#root = root;
    this.#earlier = earlier;
    this.#cache = new StageCache(earlier);
  }

  static async open(root: string): Promise<StoredStages> {
    const stored = (await readMemoryFile(root, STAGES_FILE)) as { readonly [key: string]: unknown } | undefined;
    return new StoredStages(root, new Map(Object.entries(stored ?? {})));
  }

  /** Wraps the stages of the current run. */
  get stage(): Stage {
    return this.#cache.stage;
  }

  /** Stores the results that this run has used, and drops unused ones after a complete run. */
  async store({ isWhole, ...options }: StoreOptions): Promise<void> {
    const { used } = this.#cache;
    const results = isWhole ? used : new Map([...this.#earlier, ...used]);
    const isSame = results.size === this.#earlier.size && [...results.keys()].every((key) => this.#earlier.has(key));
    if (!isSame) await writeMemoryFile(this.#root, [STAGES_FILE, Object.fromEntries(results)], options);
  }
}

const CACHE_FOLDER = "node_modules/.cache/gen-operator";

/** Reads a cache file of an earlier run; undefined if it is missing, damaged, or written by another version of the generator. */
async function readMemoryFile(root: string, name: string): Promise<unknown> {
  try {
    const text = await readFile(join(root, CACHE_FOLDER, name), "utf8");
    const end = text.indexOf("\n");
    const body = text.slice(end + 1);
    return text.slice(0, end) === headOf(body) ? (JSON.parse(body) as unknown) : undefined;
  } catch {
    return undefined;
  }
}

/** Options for writing a cache file. */
interface MemoryFileOptions {
  /** True to create `node_modules` in a project without one. */
  readonly creates: boolean;
}

/** Writes a cache file for later runs. Failures are ignored. */
async function writeMemoryFile(
  root: string,
  [name, content]: readonly [name: string, content: unknown],
  { creates }: MemoryFileOptions,
): Promise<void> {
  // Without node_modules or package.json, it is not an npm project, and the folder would be unexpected.
  if (!existsSync(join(root, "node_modules")) && !(creates && existsSync(join(root, "package.json")))) return;
  const path = join(root, CACHE_FOLDER, name);
  const temporary = `${path}.${process.pid}`;
  try {
    await mkdir(dirname(path), { recursive: true });
    const body = JSON.stringify(content);
    await writeFile(temporary, `${headOf(body)}\n${body}`);
    await rename(temporary, path);
  } catch {
    // A missing cache only makes the next run slower.
    await rm(temporary, { force: true }).catch(() => undefined);
  }
}

function headOf(body: string): string {
  return digestOf(generatorIdentity(), body);
}

const require = createRequire(import.meta.url);

let identity: string | undefined;

/**
 * Returns a digest that changes with the generator: its code, its data, the libraries that it loads, and Node.js.
 *
 * Builds of a checkout have the same version, so sizes and times of files are included.
 */
function generatorIdentity(): string {
  return (identity ??= digestOf(...partsOfGenerator()));
}

function partsOfGenerator(): string[] {
  const own = fileURLToPath(packageFile(""));
  const { dependencies = {}, devDependencies = {} } = packageAt(own);
  // Development dependencies are bundled into the published package, which contains no sources.
  const loaded = existsSync(join(own, "src")) ? { ...dependencies, ...devDependencies } : dependencies;
  return [
    process.version,
    ...stampsBelow(own),
    ...Object.keys(loaded).flatMap((name) => {
      const folder = locatePackage(name);
      if (folder === undefined) return [`${name} is missing`];
      // Templates are read directly; the compiled packages have a build info file that changes with each build.
      if (name === "@gen-operator/templates") return stampsBelow(folder);
      const stamps = [stampOfPath(join(folder, "package.json")), stampOfPath(join(folder, "dist/.tsbuildinfo"))];
      return [name, packageAt(folder).version ?? "", ...stamps];
    }),
  ];
}

interface Manifest {
  readonly version?: string;
  readonly dependencies?: object;
  readonly devDependencies?: object;
}

function packageAt(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
}

function locatePackage(name: string): string | undefined {
  const found = (require.resolve.paths(name) ?? [])
    .map((folder) => join(folder, name))
    .find((folder) => existsSync(join(folder, "package.json")));
  return found === undefined ? undefined : realpathSync.native(found);
}

/** Parts of a package that are not loaded at run time, or only start the program: npm changes the times of `bin` when it links a package. */
const NOT_RUN: ReadonlySet<string> = new Set(["node_modules", "src", "docs", "bin"]);

function stampsBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (NOT_RUN.has(entry.name) || /\.(?:map|d\.ts)$/.test(entry.name)) return [];
    return entry.isDirectory() ? stampsBelow(path) : [stampOfPath(path)];
  });
}

function stampOfPath(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? "" : `${path} ${stats.size} ${stats.mtimeMs} ${stats.ctimeMs}`;
}
