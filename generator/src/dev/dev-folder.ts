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
const MARK_TEXT = "gen-operator dev created this folder, and deletes it with all its content when the session ends.\n";

/**
 * The folder for the files of a session, `dist/dev` in the project. It is deleted at the end of the session.
 *
 * A pid file with the process and its host prevents a second session, even from another container. If the folder is deleted, for example by a build,
 * `onDeleted` is called and the session restores it.
 *
 * Only a folder with the marker file of `dev` is deleted, and only if neither `dist` nor `dist/dev` is a symbolic link. Files that the session writes
 * while another program deletes the folder can remain without the marker; the session then keeps using the folder as long as it contains only its own
 * files.
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

  /** Path for the kubeconfig of the embedded API server. */
  get kubeconfig(): string {
    return join(this.path, KUBECONFIG);
  }

  /**
   * Creates the folder and deletes the files of a killed session. Throws a DevError if another session is running, or if `dev` did not create the
   * folder.
   */
  static async open(project: string): Promise<DevFolder> {
    const folder = new DevFolder(project);
    await folder.restore();
    return folder;
  }

  /**
   * Recreates the folder if it was deleted, and returns whether it was. Throws a DevError if it now belongs to another session, or has files that
   * `dev` did not create.
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

  /** Calls `onDeleted` after the folder is deleted. Polls the files, because notifications about deleted folders differ between platforms. */
  watch(onDeleted: () => void): void {
    this.#onDeleted = onDeleted;
    this.#watchFiles();
  }

  /** Restarts the watch: `watchFile` does not notice a file that is deleted, recreated, and deleted again between two polls. */
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

  /** Deletes the files of an earlier session. An empty folder needs no marker: a session may have been killed before writing it. */
  async #clear(): Promise<void> {
    const names = await readdir(this.path).catch((error: NodeJS.ErrnoException): string[] => {
      if (error.code === "ENOENT") return [];
      throw error;
    });
    if (names.length === 0) return;
    if (!names.includes(MARK) && !(this.#isHeld && (await this.#hasOnlyOwnFiles())))
      throw new DevError(
        `${this.path} was not created by gen-operator dev: file ${MARK} not found. dev needs this folder for its own files; move the folder, or delete it if you do not need it`,
      );
    await this.#delete();
  }

  /** Deletes the folder. The marker is deleted last, so that the next session can continue an interrupted deletion. */
  async #delete(): Promise<void> {
    const names = await readdir(this.path).catch((): string[] => []);
    for (const name of names)
      if (name !== MARK) await rm(join(this.path, name), { recursive: true, force: true, maxRetries: 5 });
    await rm(this.path, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Returns whether the folder contains only files that a session writes: compiled code of `src`, and its own files. */
  async #hasOnlyOwnFiles(): Promise<boolean> {
    const entries = await readdir(this.path, { recursive: true, withFileTypes: true }).catch((): Dirent[] => []);
    for (const entry of entries) {
      if (entry.isDirectory()) continue;
      const path = slashed(relative(this.path, join(entry.parentPath, entry.name)));
      if (!entry.isFile() || !(OWN_FILES.has(path) || (await this.#isCompiled(path)))) return false;
    }
    return true;
  }

  /** Returns whether a file is the compiled copy, or the source map, of a project file. */
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
      throw new DevError(`${link} is a symbolic link; gen-operator dev requires a folder. Remove the link`);
  }

  /** Returns the part of the path that is a symbolic link; undefined if there is none. */
  async #findLink(): Promise<string | undefined> {
    for (const path of [this.#parent, this.path]) if ((await statOf(path))?.isSymbolicLink() === true) return path;
    return undefined;
  }

  async #refuseIfRunning({ pid, host }: Owner): Promise<void> {
    // The state of a process on another host is unknown.
    if (host !== hostname())
      throw new DevError(
        `another gen-operator dev (process ${pid} on host ${host}) is running ${this.#project}. Stop it with Ctrl+C. If it has exited, delete ${this.path}`,
      );
    if (await isSession(pid))
      throw new DevError(
        `another gen-operator dev (process ${pid}) is running ${this.#project}. Stop it with Ctrl+C. If ${pid} is another program, delete ${this.path}`,
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

/** The process that holds the folder. */
interface Owner {
  readonly pid: number;
  readonly host: string;
}

function isOwn({ pid, host }: Owner): boolean {
  return pid === process.pid && host === hostname();
}

/** Returns whether a process may be a session. The pid of a killed session may have been reused by another program. */
async function isSession(pid: number): Promise<boolean> {
  return isRunning(pid) && ((await wordsOf(pid))?.includes("dev") ?? true);
}

/** Returns the command line of a process; undefined if it cannot be read. */
async function wordsOf(pid: number): Promise<string[] | undefined> {
  try {
    return (await readFile(`/proc/${pid}/cmdline`, "utf8")).split("\0");
  } catch {
    const listed = promisify(execFile)("ps", ["-p", `${pid}`, "-o", "command="]);
    return listed.then(({ stdout }) => stdout.trim().split(/\s+/)).catch(() => undefined);
  }
}
