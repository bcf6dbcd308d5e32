import { execFile } from "node:child_process";
import { type Dirent, type Stats, unwatchFile, watchFile } from "node:fs";
import { lstat, mkdir, readFile, readdir, rm, rmdir, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { slashed } from "../diagnostic.js";
import { isRunning } from "../system-error.js";
import { DevError } from "./project-packages.js";

const WATCH_MS = 500;

const MARK = ".gen-operator-dev";
const PID_FILE = "pid";
const KUBECONFIG = "kubeconfig";
const MARK_TEXT = "gen-operator dev made this folder, and deletes it with everything in it when the session ends.\n";

/**
 * The folder of a project for what a session needs on disk, `dist/dev`; it is deleted after the session. A file in it names the process and
 * its host, so that no second session starts, not even in another container. If a build deletes `dist`, `onDeleted` is called and the session restores the folder.
 *
 * Only a folder that has the mark of `dev` is deleted, and only where neither `dist` nor `dist/dev` is a symbolic link. A session writes
 * while somebody deletes, so its folder may lose the mark and keep files: the session goes on with it as long as it has no others.
 */
export class DevFolder implements AsyncDisposable {
  readonly path: string;
  readonly #project: string;
  readonly #parent: string;
  readonly #pidFile: string;
  readonly #markFile: string;
  #onDeleted: (() => void) | undefined;
  #isHeld = false;
  #madeParent = false;

  private constructor(project: string) {
    this.#project = project;
    this.#parent = join(project, "dist");
    this.path = join(this.#parent, "dev");
    this.#pidFile = join(this.path, PID_FILE);
    this.#markFile = join(this.path, MARK);
  }

  /** Where the kubeconfig of the session's own API server is written. */
  get kubeconfig(): string {
    return join(this.path, KUBECONFIG);
  }

  /** Creates the folder and deletes leftovers of a killed session; throws a DevError if another session runs, or if the folder is not dev's. */
  static async open(project: string): Promise<DevFolder> {
    const folder = new DevFolder(project);
    await folder.restore();
    return folder;
  }

  /**
   * Creates the folder again if it was deleted; returns whether it was. Throws a DevError if it belongs to another session by now, or has
   * files that `dev` did not make.
   */
  async restore(): Promise<boolean> {
    await this.#refuseLinks();
    const owner = await this.#readOwner();
    if (owner !== undefined && isOwn(owner)) {
      if (this.#isHeld && (await exists(this.#markFile))) return false;
    } else if (owner !== undefined) await this.#refuseIfRunning(owner);
    await this.#clear();
    const made = await mkdir(this.path, { recursive: true });
    if (made === this.#parent) this.#madeParent = true;
    await writeFile(this.#markFile, MARK_TEXT);
    await writeFile(this.#pidFile, `${process.pid} ${hostname()}\n`, { flag: "wx" });
    this.#isHeld = true;
    this.#watchFiles();
    return true;
  }

  /** Calls `onDeleted` when somebody has deleted the folder. It asks for the files: what systems tell about folders that go differs. */
  watch(onDeleted: () => void): void {
    this.#onDeleted = onDeleted;
    this.#watchFiles();
  }

  /** Begins anew: a file that goes, comes back and goes between two looks has not changed for `watchFile`. */
  #watchFiles(): void {
    const onDeleted = this.#onDeleted;
    if (onDeleted === undefined) return;
    for (const file of [this.#pidFile, this.#markFile]) {
      unwatchFile(file);
      watchFile(file, { interval: WATCH_MS }, ({ nlink }) => {
        if (nlink === 0) onDeleted();
      });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const file of [this.#pidFile, this.#markFile]) unwatchFile(file);
    if ((await this.#findLink()) !== undefined) return;
    const owner = await this.#readOwner();
    if (owner !== undefined && !isOwn(owner)) return;
    const isMarked = owner !== undefined && (await exists(this.#markFile));
    if (!isMarked && !(await this.#hasOnlyOwnFiles())) return;
    await this.#delete();
    // Fails if the folder has other files.
    if (this.#madeParent) await rmdir(this.#parent).catch(() => undefined);
  }

  /** Deletes what an earlier session left. An empty folder needs no mark: a session may be killed before it writes one. */
  async #clear(): Promise<void> {
    const names = await readdir(this.path).catch((error: NodeJS.ErrnoException): string[] => {
      if (error.code === "ENOENT") return [];
      throw error;
    });
    if (names.length === 0) return;
    if (!names.includes(MARK) && !(this.#isHeld && (await this.#hasOnlyOwnFiles())))
      throw new DevError(
        `${this.path} was not made by gen-operator dev: file ${MARK} is missing. dev keeps its own files there; move the folder, or delete it if you do not need it`,
      );
    await this.#delete();
  }

  /** Deletes the folder; the mark goes last, so that the next session can go on where this one is killed. */
  async #delete(): Promise<void> {
    const names = await readdir(this.path).catch((): string[] => []);
    for (const name of names)
      if (name !== MARK) await rm(join(this.path, name), { recursive: true, force: true, maxRetries: 5 });
    await rm(this.path, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Tells whether each file is one that a session writes: what it compiled of `src`, and its own files. */
  async #hasOnlyOwnFiles(): Promise<boolean> {
    const entries = await readdir(this.path, { recursive: true, withFileTypes: true }).catch((): Dirent[] => []);
    for (const entry of entries) {
      if (entry.isDirectory()) continue;
      const path = slashed(relative(this.path, join(entry.parentPath, entry.name)));
      if (!entry.isFile() || !(OWN_FILES.has(path) || (await this.#isCompiled(path)))) return false;
    }
    return true;
  }

  /** Tells whether a file is the copy of one of the project's. */
  async #isCompiled(path: string): Promise<boolean> {
    if (!path.startsWith("src/")) return false;
    const copied = path.replace(/\.map$/, "");
    for (const source of new Set([copied, copied.replace(/\.([cm]?)js$/, ".$1ts")]))
      if (await exists(join(this.#project, source))) return true;
    return false;
  }

  async #refuseLinks(): Promise<void> {
    const link = await this.#findLink();
    if (link !== undefined)
      throw new DevError(`${link} is a symbolic link; gen-operator dev needs a folder there. Remove the link`);
  }

  /** Returns the part of the path below the project that leads elsewhere; undefined if there is none. */
  async #findLink(): Promise<string | undefined> {
    for (const path of [this.#parent, this.path]) if ((await statOf(path))?.isSymbolicLink() === true) return path;
    return undefined;
  }

  async #refuseIfRunning({ pid, host }: Owner): Promise<void> {
    // Of a process on another host nothing can be known.
    if (host !== hostname())
      throw new DevError(
        `another gen-operator dev (process ${pid} on host ${host}) runs ${this.#project}. Stop it with Ctrl+C. If it has ended, delete ${this.path}`,
      );
    if (await isSession(pid))
      throw new DevError(
        `another gen-operator dev (process ${pid}) runs ${this.#project}. Stop it with Ctrl+C. If ${pid} is another program, delete ${this.path}`,
      );
  }

  async #readOwner(): Promise<Owner | undefined> {
    const text = await readFile(this.#pidFile, "utf8").catch(() => "");
    const [, pid, host = hostname()] = /^([1-9]\d*)(?: (\S+))?\n$/.exec(text) ?? [];
    return pid === undefined ? undefined : { pid: Number(pid), host };
  }
}

async function exists(path: string): Promise<boolean> {
  return (await statOf(path)) !== undefined;
}

function statOf(path: string): Promise<Stats | undefined> {
  return lstat(path).catch(() => undefined);
}

const OWN_FILES: ReadonlySet<string> = new Set([MARK, PID_FILE, KUBECONFIG]);

/** Who holds a folder. */
interface Owner {
  readonly pid: number;
  readonly host: string;
}

function isOwn({ pid, host }: Owner): boolean {
  return pid === process.pid && host === hostname();
}

/** Tells whether a process may be a session: the system gives the number of one that was killed to another program. */
async function isSession(pid: number): Promise<boolean> {
  return isRunning(pid) && ((await wordsOf(pid))?.includes("dev") ?? true);
}

/** Returns the words of the command of a process; `undefined` if the system does not tell them. */
async function wordsOf(pid: number): Promise<string[] | undefined> {
  try {
    return (await readFile(`/proc/${pid}/cmdline`, "utf8")).split("\0");
  } catch {
    const listed = promisify(execFile)("ps", ["-p", `${pid}`, "-o", "command="]);
    return listed.then(({ stdout }) => stdout.trim().split(/\s+/)).catch(() => undefined);
  }
}
