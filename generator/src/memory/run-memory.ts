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

/** The last run that wrote a project, or found it as it would have written it. */
interface RunRecord {
  /** The digest of all inputs. */
  readonly inputs: string;
  /** Inputs that a spec names, and no folder shows. */
  readonly named: readonly string[];
  /** What was wrong with the project, and is so as long as the inputs are the same. */
  readonly diagnostics: readonly Diagnostic[];
  /** What a run says besides. */
  readonly notes: readonly string[];
  /** The digests of the generated files, and of the manifest, by path. */
  readonly generated: { readonly [path: string]: string };
  readonly stubs: readonly string[];
  /** What is known of inputs and generated files, so that they need not be read. */
  readonly known: KnownFiles;
}

/** A run of which nothing is left to do: all files are as it would write them. */
export interface UnchangedRun {
  readonly diagnostics: readonly Diagnostic[];
  readonly notes: readonly string[];
  readonly generated: readonly string[];
  readonly stubs: readonly string[];
}

/** What came of a run. */
interface FinishedRun {
  /** Inputs that a spec names. */
  readonly named: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
  /** What it says besides. Default: nothing */
  readonly notes?: readonly string[];
  readonly files: readonly {
    readonly path: string;
    readonly owner: "generator" | "user";
    readonly content: string;
    readonly digest?: string;
  }[];
}

const RUN_FILE = "run.json";

/** What the last run of a project found out, and how its inputs are now. */
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

  /** Opens the memory of a project, before a run reads its first input; the manifest lists the files of the last one. */
  static async open(root: string, manifestPath: string): Promise<RunMemory> {
    const record = (await readMemoryFile(root, RUN_FILE)) as RunRecord | undefined;
    // A file that the spec named before may be gone with the spec that named it.
    const digests = new FileDigests(root, record?.known);
    const inputs = (await takeSnapshot(root, record?.named ?? [], digests)) ?? (await takeSnapshot(root, [], digests));
    return new RunMemory([root, manifestPath], record, [inputs, digests]);
  }

  /** Returns the digest of an input as it was when the memory was opened; undefined if it was none. */
  inputDigestOf(path: string): string | undefined {
    return this.#inputs?.get(path)?.digest;
  }

  /** What the files of the project hold. */
  get digests(): FileDigests {
    return this.#digests;
  }

  /** Returns the last run if it had the same inputs, and all its files are still as it left them. */
  unchangedRun(): UnchangedRun | undefined {
    const record = this.#record;
    if (record === undefined || this.#inputs === undefined) return undefined;
    if (digestOfSnapshot(this.#root, this.#inputs) !== record.inputs) return undefined;
    try {
      return this.#isIntact(record) ? unchangedRunOf(record, this.#manifestPath) : undefined;
    } catch {
      // A whole run says what is wrong.
      return undefined;
    }
  }

  #isIntact({ generated, stubs }: RunRecord): boolean {
    const folders = new PlainFolders(this.#root);
    // What a killed process has left is deleted by the next run.
    if ([".", dirname(this.#manifestPath)].some((folder) => hasTemporaryFiles(join(this.#root, folder)))) return false;
    const isAsWritten = ([path, digest]: [string, string]) => {
      const stats = folders.statsOf(path);
      return stats !== undefined && this.#digests.digestOf(path, stats) === digest;
    };
    return Object.entries(generated).every(isAsWritten) && stubs.every((path) => folders.hasFile(path));
  }

  /** Remembers a run, unless an input was changed while it ran. */
  async remember({ named, diagnostics, notes = [], files }: FinishedRun, options: MemoryFileOptions): Promise<void> {
    const inputs = await takeSnapshot(this.#root, named, this.#digests);
    if (inputs === undefined || this.#inputs === undefined || !this.#isSame(inputs, this.#inputs)) return;
    const own = files.filter(({ owner }) => owner === "generator");
    const manifest = this.#manifest;
    // What a run says may depend on what the one before has listed.
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

  /** Keeps what an unchanged run has learnt of files: what was just written when it was remembered is not read again from now on. */
  async keep(): Promise<void> {
    if (this.#record === undefined || this.#inputs === undefined || !this.#digests.hasLearnt) return;
    const known = this.#digests.knownOf([...this.#inputs.keys(), ...Object.keys(this.#record.generated)]);
    await writeMemoryFile(this.#root, [RUN_FILE, { ...this.#record, known }], { creates: false });
  }

  /** Tells whether the run has read what a snapshot after it says. */
  #isSame(after: InputSnapshot, before: InputSnapshot): boolean {
    const isUnchanged = [...after].every(([path, { stamp, changedAt, digest }]) => {
      const earlier = before.get(path);
      // The run itself has found that the spec names it.
      if (earlier === undefined) return changedAt < this.#openedAt - CLOCK_TICK_MS;
      return earlier.stamp === stamp && earlier.digest === digest;
    });
    return isUnchanged && [...before.keys()].every((path) => after.has(path));
  }
}

function unchangedRunOf({ generated, stubs, diagnostics, notes = [] }: RunRecord, manifestPath: string): UnchangedRun {
  return { diagnostics, notes, generated: Object.keys(generated).filter((path) => path !== manifestPath), stubs };
}

/** The times of files are less exact than the clock. */
const CLOCK_TICK_MS = 50;

function hasTemporaryFiles(folder: string): boolean {
  return readdirSync(folder).some((name) => name.endsWith(".gen-operator"));
}

/** The state of a file that `generate` reads. */
interface FileState {
  /** Changes whenever the file is written. */
  readonly stamp: string;
  readonly changedAt: number;
  readonly digest: string;
}

/** Files that say what the project is called and which types its code sees; npm writes the last one with every installation. */
const PACKAGE_FILES = ["package.json", "tsconfig.json", "node_modules/.package-lock.json"];

/** The files that `generate` reads, as they were at one moment. */
type InputSnapshot = ReadonlyMap<string, FileState>;

/**
 * Takes a snapshot of all files that `generate` reads; `named` are those that a spec names, and no folder shows. Undefined if there is
 * anything in the place of a file that is none: what comes of that is no matter of contents.
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
  // A whole run says which folder cannot be listed.
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

/** Returns a text that stands for what all files of a snapshot say, with the name that a project without a package has. */
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

/** What files held when they were read, by path: the state of the file that tells a later write, and the digest of its content. */
type KnownFiles = { readonly [path: string]: readonly [stamp: string, digest: string] };

/**
 * Tells what the files of a project hold, and reads only those that may have changed since an earlier run read them.
 *
 * A file is taken for unchanged only if its inode, its size and both its times are those of then. No program can set the time of change, and
 * replacing a file gives another inode. A file that was written shortly before it was read is not remembered: a second write within the same
 * tick of the file system would change neither its times nor, maybe, its size.
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

  /** Returns the digest of a file that was found in this state. */
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

  /** Whether a later run has to read fewer files than this one had to. */
  get hasLearnt(): boolean {
    return this.#hasLearnt;
  }

  /** Returns what is known of some files. */
  knownOf(paths: Iterable<string>): KnownFiles {
    const known = [...paths].flatMap((path) => {
      const file = this.#known.get(path);
      return file === undefined ? [] : [[path, file] as const];
    });
    return Object.fromEntries(known);
  }
}

/** Returns a text that changes whenever a file is written or replaced. */
export function stampOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return [dev, ino, size, mtimeMs, ctimeMs].join(" ");
}

/** Tells whether a write from now on shows in the times of a file. FAT counts in two seconds. */
function isSettled({ mtimeMs, ctimeMs }: Stats, now: number): boolean {
  return Math.max(mtimeMs, ctimeMs) < now - 2_500;
}

const STAGES_FILE = "stages.json";

/** How results are stored. */
interface StoreOptions extends MemoryFileOptions {
  /** Whether the run has come to its end; one that stopped at an error says nothing of what it did not come to. */
  readonly isWhole: boolean;
}

/** The results of the stages of the last run of a project. */
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

  /** Wraps the stages of this run. */
  get stage(): Stage {
    return this.#cache.stage;
  }

  /** Stores the results that this run has used. Those that no stage needs any more are dropped. */
  async store({ isWhole, ...options }: StoreOptions): Promise<void> {
    const { used } = this.#cache;
    const results = isWhole ? used : new Map([...this.#earlier, ...used]);
    const isSame = results.size === this.#earlier.size && [...results.keys()].every((key) => this.#earlier.has(key));
    if (!isSame) await writeMemoryFile(this.#root, [STAGES_FILE, Object.fromEntries(results)], options);
  }
}

const CACHE_FOLDER = "node_modules/.cache/gen-operator";

/** Reads what an earlier run of this generator has stored; undefined if there is nothing, or it is damaged or of another generator. */
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

/** How something is stored. */
interface MemoryFileOptions {
  /** Whether a project without `node_modules` gets the folder. */
  readonly creates: boolean;
}

/** Stores something for later runs, if that is possible. */
async function writeMemoryFile(
  root: string,
  [name, content]: readonly [name: string, content: unknown],
  { creates }: MemoryFileOptions,
): Promise<void> {
  // Without one of them it is no project of npm's, and the folder would be a surprise.
  if (!existsSync(join(root, "node_modules")) && !(creates && existsSync(join(root, "package.json")))) return;
  const path = join(root, CACHE_FOLDER, name);
  const temporary = `${path}.${process.pid}`;
  try {
    await mkdir(dirname(path), { recursive: true });
    const body = JSON.stringify(content);
    await writeFile(temporary, `${headOf(body)}\n${body}`);
    await rename(temporary, path);
  } catch {
    // Only the time of the next run depends on it.
    await rm(temporary, { force: true }).catch(() => undefined);
  }
}

function headOf(body: string): string {
  return digestOf(generatorIdentity(), body);
}

const require = createRequire(import.meta.url);

let identity: string | undefined;

/**
 * Returns a text that changes with the generator: its code, its data, the libraries that it loads, and Node.
 *
 * A version alone does not tell builds of a checkout apart, so times and sizes of files count, too.
 */
function generatorIdentity(): string {
  return (identity ??= digestOf(...partsOfGenerator()));
}

function partsOfGenerator(): string[] {
  const own = fileURLToPath(packageFile(""));
  const { dependencies = {}, devDependencies = {} } = packageAt(own);
  // What it is developed with is a part of the published program, which has no sources.
  const loaded = existsSync(join(own, "src")) ? { ...dependencies, ...devDependencies } : dependencies;
  return [
    process.version,
    ...stampsBelow(own),
    ...Object.keys(loaded).flatMap((name) => {
      const folder = locatePackage(name);
      if (folder === undefined) return [`${name} is missing`];
      // Templates are read as they are; what is compiled has a file that tells when.
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

/** What is not part of a package when it runs, or only starts the program: npm changes the state of that whenever it links a package. */
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
