import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Diagnostic } from "../diagnostic.js";
import { PlainFolders } from "../output/files/plain-folders.js";
import { digestOf } from "../parts/digest.js";
import { FileDigests, type KnownFiles } from "./file-digests.js";
import { digestOfSnapshot, takeSnapshot, type InputSnapshot } from "./input-snapshot.js";
import { readMemoryFile, writeMemoryFile, type MemoryFileOptions } from "./memory-file.js";

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
export interface FinishedRun {
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

const FILE = "run.json";

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
    const record = (await readMemoryFile(root, FILE)) as RunRecord | undefined;
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
    await writeMemoryFile(this.#root, [FILE, record], options);
  }

  /** Keeps what an unchanged run has learnt of files: what was just written when it was remembered is not read again from now on. */
  async keep(): Promise<void> {
    if (this.#record === undefined || this.#inputs === undefined || !this.#digests.hasLearnt) return;
    const known = this.#digests.knownOf([...this.#inputs.keys(), ...Object.keys(this.#record.generated)]);
    await writeMemoryFile(this.#root, [FILE, { ...this.#record, known }], { creates: false });
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
