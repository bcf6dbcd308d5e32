/**
 * What a server keeps on disk: a LevelDB, whose write-ahead log takes a batch of changes as a whole or not at all.
 *
 * The changes that arrive while one batch is being written make up the next one, so clients that write at the same time share its cost. A
 * folder has one server: LevelDB holds a lock on it, which goes with the process. When a batch cannot be written nothing is written any more.
 */
import { setImmediate } from "../real-time.js";
import { chmod, mkdir, readdir, stat } from "node:fs/promises";
import type { ClassicLevel } from "classic-level";
import type { Change, Journal } from "../storage/journal.js";
import type { Store, StoredState } from "../storage/store.js";
import { COMPACTED, sealed, SECRET, STATE_KEY, versionKey, versionText, type FolderState } from "./records.js";
import { openLevel, problemOf } from "./open-level.js";
import { readFolder } from "./read-folder.js";

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
      // Tokens and keys are in it.
      await mkdir(path, { recursive: true, mode: 0o700 });
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
