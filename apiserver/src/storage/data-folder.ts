/**
 * What a server keeps on disk: a LevelDB, whose write-ahead log takes a batch of changes as a whole or not at all.
 *
 * The changes that arrive while one batch is being written make up the next one, so clients that write at the same time share its cost. A
 * folder has one server: LevelDB holds a lock on it, which goes with the process. When a batch cannot be written nothing is written any more.
 */
import { chmod, mkdir, readFile, readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { crc32 } from "node:zlib";
import type { ClassicLevel } from "classic-level";
import { setImmediate } from "../clock.js";
import type { Change, Journal, Store, StoredState, StoredWrite } from "./store.js";

type Operation = { type: "put"; key: string; value: string } | { type: "del"; key: string };

/** The folder of one server. */
export class DataFolder implements Journal {
  readonly #level: ClassicLevel;
  readonly #path: string;
  readonly #secrets: Map<string, string>;
  readonly #listeners: ((revision: number) => void)[] = [];
  readonly #failureListeners: ((error: Error) => void)[] = [];
  #restored: StoredState | undefined;
  #state: FolderState;
  #queue: Operation[] = [];
  /** Of the batch that is being written, and of the one after it. */
  #writing: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #failure: Error | undefined;

  private constructor(
    level: ClassicLevel,
    path: string,
    content: { state: FolderState; secrets: Map<string, string>; restored: StoredState | undefined },
  ) {
    this.#level = level;
    this.#path = path;
    this.#state = content.state;
    this.#secrets = content.secrets;
    this.#restored = content.restored;
  }

  /**
   * Opens a folder, and makes it if there is none.
   *
   * @throws an error that says what to do, when another server has it, it cannot be written, or what it holds is damaged.
   */
  static async open(path: string): Promise<DataFolder> {
    try {
      await makeFolder(path);
    } catch (error) {
      throw new Error(`the data folder ${path} cannot be made: ${(error as Error).message}`, { cause: error });
    }
    await closeToOthers(path);
    const level = await openLevel(path);
    try {
      const folder = new DataFolder(level, path, await readFolder(level, path));
      // Shows at once whether it can be written.
      await folder.#write([folder.#stateOperation()]);
      return folder;
    } catch (error) {
      await level.close();
      throw error;
    }
  }

  /** Why nothing can be written any more; undefined as long as it can. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  get pending(): Promise<void> | undefined {
    return this.#next ?? this.#writing ?? (this.#failure && Promise.reject(this.#failure));
  }

  /** Gives a store what an earlier server has left, and keeps from now on what is written to it; returns the revision so far, 0 in a new folder. */
  restore(store: Store): number {
    const restored = this.#restored;
    this.#restored = undefined;
    if (restored !== undefined) store.restore(restored);
    store.attach(this);
    return restored?.revision ?? 0;
  }

  /** Returns a text that was kept beside the objects, such as a key. */
  get(name: string): string | undefined {
    return this.#secrets.get(name);
  }

  /** Keeps a text beside the objects. */
  set(name: string, text: string): void {
    this.#secrets.set(name, text);
    this.#enqueue([{ type: "put", key: SECRET + name, value: sealed(text) }]);
  }

  append({ revision, write, forgotten, compacted }: Change): void {
    let { versions, sum } = this.#state;
    const operations: Operation[] = [];
    if (write !== undefined) {
      operations.push({ type: "put", key: versionKey(revision), value: sealed(versionText(write)) });
      versions++;
      sum += revision;
    }
    for (const old of forgotten) {
      operations.push({ type: "del", key: versionKey(old) });
      versions--;
      sum -= old;
    }
    if (compacted !== undefined)
      operations.push({ type: "put", key: COMPACTED + compacted.resource, value: sealed(String(compacted.revision)) });
    this.#state = { format: 1, revision, versions, sum };
    this.#enqueue(operations);
  }

  onDurable(listener: (revision: number) => void): void {
    this.#listeners.push(listener);
  }

  /** Calls `listener` when nothing can be written any more. */
  onFailure(listener: (error: Error) => void): void {
    this.#failureListeners.push(listener);
  }

  /** Writes what is left, and lets go of the folder. */
  async close(): Promise<void> {
    await this.pending?.catch(() => undefined);
    await this.#level.close();
  }

  #enqueue(operations: readonly Operation[]): void {
    if (this.#failure !== undefined) return;
    this.#queue.push(...operations);
    if (this.#next !== undefined) return;
    // What one turn writes belongs together, and often more arrives in it.
    const before = this.#writing ?? new Promise<void>((resolve) => setImmediate(resolve));
    this.#next = before.then(() => this.#writeNext());
    // Whoever waits for it learns of a failure; it need not be anybody.
    this.#next.catch(() => undefined);
  }

  async #writeNext(): Promise<void> {
    const { revision } = this.#state;
    const operations = [...this.#queue, this.#stateOperation()];
    this.#queue = [];
    this.#writing = this.#next;
    this.#next = undefined;
    const own = this.#writing;
    try {
      await this.#write(operations);
    } catch (error) {
      this.#failure = error as Error;
      this.#writing = undefined;
      for (const listener of this.#failureListeners) listener(this.#failure);
      throw error;
    }
    if (this.#writing === own) this.#writing = undefined;
    for (const listener of this.#listeners) listener(revision);
  }

  #stateOperation(): Operation {
    return { type: "put", key: STATE_KEY, value: sealed(JSON.stringify(this.#state)) };
  }

  async #write(operations: Operation[]): Promise<void> {
    try {
      await this.#level.batch(operations, { sync: true });
    } catch (error) {
      throw new Error(
        `the data folder ${this.#path} cannot be written: ${problemOf(error)}. Nothing is served any more: make room, then start the server again`,
        { cause: error },
      );
    }
  }
}

/**
 * Makes a folder and those above it. Node's recursive mkdir never settles where a folder exists and the system says of what is to be made in it
 * that there is no such file, as in /proc.
 */
async function makeFolder(path: string): Promise<void> {
  try {
    // Tokens and keys are in it.
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" && (await stat(path)).isDirectory()) return;
    if (code !== "ENOENT" || (await exists(dirname(path)))) throw error;
    await makeFolder(dirname(path));
    await makeFolder(path);
  }
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/**
 * Takes the permissions of other users from a folder that existed before: the database has private keys and tokens in files that follow the
 * umask, and a folder that only its owner may enter protects all of them. A folder with other files is not changed but rejected.
 */
async function closeToOthers(path: string): Promise<void> {
  // Windows has no such permissions.
  if (process.platform === "win32" || ((await stat(path)).mode & 0o077) === 0) return;
  const names = await readdir(path);
  const way = "use a folder of its own, or run chmod 700 on it";
  if (names.length > 0 && !names.includes("CURRENT"))
    throw new Error(
      `the data folder ${path} is open to other users and has other files; private keys are stored in it: ${way}`,
    );
  try {
    await chmod(path, 0o700);
  } catch (error) {
    throw new Error(
      `the data folder ${path} is open to other users, and its mode cannot be changed: ${(error as Error).message}; ${way}`,
      { cause: error },
    );
  }
}

/** What a folder holds. */
interface FolderContent {
  readonly state: FolderState;
  readonly secrets: Map<string, string>;
  /** The objects and their history; undefined in a new folder. */
  readonly restored: StoredState | undefined;
}

/**
 * Reads a folder as a whole.
 *
 * @throws an error that names what is damaged: nothing is left out silently.
 */
async function readFolder(level: ClassicLevel, path: string): Promise<FolderContent> {
  const [compacted, secrets] = [new Map<string, number>(), new Map<string, string>()];
  const writes: StoredWrite[] = [];
  let state: FolderState | undefined;
  for await (const [key, value] of entriesOf(level, path)) {
    const text = unsealed(value);
    if (text === undefined) throw damaged(path, `${key} is not what was written`);
    if (key === STATE_KEY) state = JSON.parse(text) as FolderState;
    else if (key.startsWith(SECRET)) secrets.set(key.slice(SECRET.length), text);
    else if (key.startsWith(COMPACTED)) compacted.set(key.slice(COMPACTED.length), Number(text));
    else writes.push({ revision: Number(key.slice(VERSION.length)), ...readVersion(text) });
  }
  if (state === undefined) {
    if (writes.length > 0) throw damaged(path, "it says nothing of its state");
    return { state: { format: 1, revision: 0, versions: 0, sum: 0 }, secrets, restored: undefined };
  }
  checkState(path, state, writes);
  return {
    state,
    secrets,
    restored: state.revision === 0 ? undefined : { revision: state.revision, compacted, writes },
  };
}

function checkState(path: string, { format, versions, sum }: FolderState, writes: readonly StoredWrite[]): void {
  if (format !== 1) throw new Error(`the data folder ${path} was written by a newer version of this package`);
  const found = writes.reduce((total, { revision }) => total + revision, 0);
  if (writes.length === versions && found === sum) return;
  throw damaged(path, `it has ${writes.length} of ${versions} versions of objects`);
}

async function* entriesOf(level: ClassicLevel, path: string): AsyncGenerator<[string, string]> {
  try {
    yield* level.iterator();
  } catch (error) {
    throw damaged(path, problemOf(error));
  }
}

const DAMAGE_KEY = "damage";

/**
 * Opens the LevelDB of a folder.
 *
 * LevelDB leaves out what it cannot read of its log and starts from nothing without its file CURRENT; here both are failures, also the next time.
 */
async function openLevel(path: string): Promise<ClassicLevel> {
  const { ClassicLevel } = await loadLibrary();
  const files = await readdir(path);
  if (!files.includes("CURRENT") && files.some((file) => /\.(ldb|log)$/.test(file)))
    throw damaged(path, "the file CURRENT is missing");
  const level = new ClassicLevel(path, { keyEncoding: "utf8", valueEncoding: "utf8" });
  try {
    await level.open();
  } catch (error) {
    throw openFailure(path, error);
  }
  const damage = (await level.get(DAMAGE_KEY)) ?? (await lostBytes(path));
  if (damage === undefined) return level;
  await level.put(DAMAGE_KEY, damage, { sync: true });
  await level.close();
  throw damaged(path, damage);
}

// What LevelDB leaves out it tells in its own log, which is new with every start.
async function lostBytes(path: string): Promise<string | undefined> {
  const text = await readFile(join(path, "LOG"), "utf8").catch(() => "");
  return /^.* ([^ ]+: dropping \d+ bytes; .*)$/m.exec(text)?.[1];
}

/** Returns what a failure of LevelDB says of its cause. */
function problemOf(error: unknown): string {
  const { cause, message } = error as Error;
  return cause instanceof Error ? cause.message : message;
}

/** Returns the failure of a folder that is damaged. */
function damaged(path: string, what: string): Error {
  return new Error(
    `the data folder ${path} is damaged: ${what}. Restore a copy of it, or delete it to start from nothing`,
  );
}

// Who keeps nothing does without it.
async function loadLibrary(): Promise<typeof import("classic-level")> {
  try {
    return await import("classic-level");
  } catch (error) {
    throw new Error("a data folder needs the package classic-level: npm install classic-level", { cause: error });
  }
}

function openFailure(path: string, error: unknown): Error {
  const problem = problemOf(error);
  const code = (error as { cause?: { code?: string } }).cause?.code;
  if (code === "LEVEL_LOCKED") {
    return new Error(`the data folder ${path} is in use by another server: stop it, or choose another folder`, {
      cause: error,
    });
  }
  if (code === "LEVEL_CORRUPTION") return damaged(path, problem);
  return new Error(`the data folder ${path} cannot be opened: ${problem}`, { cause: error });
}

// How the data folder is filled: one record for each version of an object under its revision, and what is needed to read them.

/** The state of all records as of the latest write; a folder whose records do not agree with it has lost some. */
interface FolderState {
  readonly format: 1;
  readonly revision: number;
  /** How many versions there are, and the sum of their revisions. */
  readonly versions: number;
  readonly sum: number;
}

/** One version of an object; a deletion has no text. */
interface VersionRecord {
  readonly resource: string;
  readonly key: string;
  readonly json: string | undefined;
}

/** The key of the FolderState. */
const STATE_KEY = "state";
/** Before the name of a resource: up to which revision its history is gone. */
const COMPACTED = "compacted/";
/** Before the name of a text that is kept beside the objects. */
const SECRET = "secret/";
/** Before the revision of a version. */
const VERSION = "version/";

const REVISION_DIGITS = 16;
const CHECKSUM_DIGITS = 8;

/** Returns the key of the version of a revision; keys are in the order of the revisions. */
function versionKey(revision: number): string {
  return VERSION + String(revision).padStart(REVISION_DIGITS, "0");
}

/** Writes a version; `json` is the object as text. */
function versionText({ resource, key, json }: VersionRecord): string {
  return `${JSON.stringify([resource, key])}\n${json ?? ""}`;
}

/** Reads a version. */
function readVersion(text: string): VersionRecord {
  const end = text.indexOf("\n");
  const [resource, key] = JSON.parse(text.slice(0, end)) as [string, string];
  const json = text.slice(end + 1);
  return { resource, key, json: json === "" ? undefined : json };
}

/** Puts a checksum before a text. */
function sealed(text: string): string {
  return checksumOf(text) + text;
}

/** Returns the text behind its checksum; undefined if it is not the one that was written. */
function unsealed(value: string): string | undefined {
  const text = value.slice(CHECKSUM_DIGITS);
  return value.slice(0, CHECKSUM_DIGITS) === checksumOf(text) ? text : undefined;
}

function checksumOf(text: string): string {
  return crc32(text).toString(16).padStart(CHECKSUM_DIGITS, "0");
}
