/**
 * Persistence in a LevelDB, whose write-ahead log makes each batch of changes atomic.
 *
 * Changes that arrive while a batch is written form the next batch, so concurrent writes share the cost of a sync. LevelDB locks the folder until the
 * process ends, so it belongs to one server. After a failed write, nothing is written any more.
 */
import { chmod, mkdir, readFile, readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { crc32 } from "node:zlib";
import type { ClassicLevel } from "classic-level";
import { setImmediate } from "../clock.js";
import type { Change, Journal, Store, StoredState, StoredWrite } from "./store.js";

type Operation = { type: "put"; key: string; value: string } | { type: "del"; key: string };

export class DataFolder implements Journal {
  readonly #level: ClassicLevel;
  readonly #path: string;
  readonly #secrets: Map<string, string>;
  readonly #listeners: ((revision: number) => void)[] = [];
  readonly #failureListeners: ((error: Error) => void)[] = [];
  #restored: StoredState | undefined;
  #state: FolderState;
  #queue: Operation[] = [];
  /** Completion of the batch that is being written, and of the next one. */
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
   * Opens a folder; creates it if it does not exist.
   *
   * @throws an Error with instructions if another server has locked the folder, it is not writable, or its contents are damaged.
   */
  static async open(path: string): Promise<DataFolder> {
    try {
      await makeFolder(path);
    } catch (error) {
      throw new Error(`cannot create data folder ${path}: ${(error as Error).message}`, { cause: error });
    }
    await closeToOthers(path);
    const level = await openLevel(path);
    try {
      const folder = new DataFolder(level, path, await readFolder(level, path));
      // Fails early if the folder is not writable.
      await folder.#write([folder.#stateOperation()]);
      return folder;
    } catch (error) {
      await level.close();
      throw error;
    }
  }

  /** The error of the failed write; undefined if there was none. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  get pending(): Promise<void> | undefined {
    return this.#next ?? this.#writing ?? (this.#failure && Promise.reject(this.#failure));
  }

  /** Restores the stored objects into a store, and records its writes from now on; returns the restored revision, 0 for a new folder. */
  restore(store: Store): number {
    const restored = this.#restored;
    this.#restored = undefined;
    if (restored !== undefined) store.restore(restored);
    store.attach(this);
    return restored?.revision ?? 0;
  }

  /** Returns a secret that was stored beside the objects, such as a private key. */
  get(name: string): string | undefined {
    return this.#secrets.get(name);
  }

  /** Stores a secret beside the objects. */
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

  /** Calls `listener` when a write has failed and persistence stops. */
  onFailure(listener: (error: Error) => void): void {
    this.#failureListeners.push(listener);
  }

  /** Writes pending changes and closes the database. */
  async close(): Promise<void> {
    await this.pending?.catch(() => undefined);
    await this.#level.close();
  }

  #enqueue(operations: readonly Operation[]): void {
    if (this.#failure !== undefined) return;
    this.#queue.push(...operations);
    if (this.#next !== undefined) return;
    // Writes of the same turn of the event loop must be in one batch, and others often arrive in it.
    const before = this.#writing ?? new Promise<void>((resolve) => setImmediate(resolve));
    this.#next = before.then(() => this.#writeNext());
    // Callers that await it handle the rejection; avoid an unhandled rejection if there are none.
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
        `cannot write to data folder ${this.#path}: ${problemOf(error)}. All requests fail from now on; free disk space, then restart the API server`,
        { cause: error },
      );
    }
  }
}

/** Creates a folder and its parents. Node's recursive mkdir never settles if a folder exists but reports ENOENT for new entries, as in /proc. */
async function makeFolder(path: string): Promise<void> {
  try {
    // The folder contains tokens and private keys.
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
 * Restricts the permissions of an existing folder to its owner: the files of the database contain private keys and tokens and follow the umask. A
 * folder with other files is rejected instead.
 */
async function closeToOthers(path: string): Promise<void> {
  // Windows has no POSIX permissions.
  if (process.platform === "win32" || ((await stat(path)).mode & 0o077) === 0) return;
  const names = await readdir(path);
  const way = "use an empty folder, or run chmod 700 on this one";
  if (names.length > 0 && !names.includes("CURRENT"))
    throw new Error(
      `data folder ${path} contains other files and is accessible to other users, who could read the private keys that are stored in it; ${way}`,
    );
  try {
    await chmod(path, 0o700);
  } catch (error) {
    throw new Error(
      `data folder ${path} is accessible to other users, and its mode cannot be changed: ${(error as Error).message}; ${way}`,
      { cause: error },
    );
  }
}

/** The contents of a data folder. */
interface FolderContent {
  readonly state: FolderState;
  readonly secrets: Map<string, string>;
  /** The objects and their history; undefined for a new folder. */
  readonly restored: StoredState | undefined;
}

/**
 * Reads the whole database.
 *
 * @throws an Error that names the damage; damaged records are never skipped silently.
 */
async function readFolder(level: ClassicLevel, path: string): Promise<FolderContent> {
  const [compacted, secrets] = [new Map<string, number>(), new Map<string, string>()];
  const writes: StoredWrite[] = [];
  let state: FolderState | undefined;
  for await (const [key, value] of entriesOf(level, path)) {
    const text = unsealed(value);
    if (text === undefined) throw damaged(path, `the checksum of record ${key} does not match`);
    if (key === STATE_KEY) state = JSON.parse(text) as FolderState;
    else if (key.startsWith(SECRET)) secrets.set(key.slice(SECRET.length), text);
    else if (key.startsWith(COMPACTED)) compacted.set(key.slice(COMPACTED.length), Number(text));
    else writes.push({ revision: Number(key.slice(VERSION.length)), ...readVersion(text) });
  }
  if (state === undefined) {
    if (writes.length > 0) throw damaged(path, "its state record is missing");
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
  if (format !== 1)
    throw new Error(
      `data folder ${path} was written by a newer version of @gen-operator/apiserver; upgrade the package, or use another folder`,
    );
  const found = writes.reduce((total, { revision }) => total + revision, 0);
  if (writes.length === versions && found === sum) return;
  throw damaged(path, `found ${writes.length} of ${versions} object versions`);
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
 * LevelDB skips unreadable records of its log, and creates a new database if the file CURRENT is missing; both are errors here, also on the next
 * start.
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

// LevelDB reports skipped records only in its own log, which is new on each start.
async function lostBytes(path: string): Promise<string | undefined> {
  const text = await readFile(join(path, "LOG"), "utf8").catch(() => "");
  return /^.* ([^ ]+: dropping \d+ bytes; .*)$/m.exec(text)?.[1];
}

/** Returns the message of the cause of a LevelDB error. */
function problemOf(error: unknown): string {
  const { cause, message } = error as Error;
  return cause instanceof Error ? cause.message : message;
}

/** Builds the error for a damaged folder. */
function damaged(path: string, what: string): Error {
  return new Error(
    `data folder ${path} is damaged: ${what}; restore it from a backup, or delete it to start with an empty cluster`,
  );
}

// Optional dependency, only needed with a data folder.
async function loadLibrary(): Promise<typeof import("classic-level")> {
  try {
    return await import("classic-level");
  } catch (error) {
    throw new Error("a data folder requires the package classic-level; run npm install classic-level", {
      cause: error,
    });
  }
}

function openFailure(path: string, error: unknown): Error {
  const problem = problemOf(error);
  const code = (error as { cause?: { code?: string } }).cause?.code;
  if (code === "LEVEL_LOCKED") {
    return new Error(`data folder ${path} is in use by another API server; stop that server, or use another folder`, {
      cause: error,
    });
  }
  if (code === "LEVEL_CORRUPTION") return damaged(path, problem);
  return new Error(`cannot open data folder ${path}: ${problem}`, { cause: error });
}

// Record format: one record for each version of an object, keyed by revision, plus metadata.

/** Summary of all records after the latest write; if the records do not match it, some were lost. */
interface FolderState {
  readonly format: 1;
  readonly revision: number;
  /** Number of version records, and the sum of their revisions. */
  readonly versions: number;
  readonly sum: number;
}

/** One version of an object; a deletion has no JSON. */
interface VersionRecord {
  readonly resource: string;
  readonly key: string;
  readonly json: string | undefined;
}

const STATE_KEY = "state";
/** Prefix of the compacted revision of a resource. */
const COMPACTED = "compacted/";
/** Prefix of a secret. */
const SECRET = "secret/";
/** Prefix of a version record. */
const VERSION = "version/";

const REVISION_DIGITS = 16;
const CHECKSUM_DIGITS = 8;

/** Returns the key of a version record, padded so that keys sort by revision. */
function versionKey(revision: number): string {
  return VERSION + String(revision).padStart(REVISION_DIGITS, "0");
}

/** Encodes a version record. */
function versionText({ resource, key, json }: VersionRecord): string {
  return `${JSON.stringify([resource, key])}\n${json ?? ""}`;
}

/** Decodes a version record. */
function readVersion(text: string): VersionRecord {
  const end = text.indexOf("\n");
  const [resource, key] = JSON.parse(text.slice(0, end)) as [string, string];
  const json = text.slice(end + 1);
  return { resource, key, json: json === "" ? undefined : json };
}

/** Prepends a checksum. */
function sealed(text: string): string {
  return checksumOf(text) + text;
}

/** Verifies and removes the checksum; returns undefined if it does not match. */
function unsealed(value: string): string | undefined {
  const text = value.slice(CHECKSUM_DIGITS);
  return value.slice(0, CHECKSUM_DIGITS) === checksumOf(text) ? text : undefined;
}

function checksumOf(text: string): string {
  return crc32(text).toString(16).padStart(CHECKSUM_DIGITS, "0");
}
