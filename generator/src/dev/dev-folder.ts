import { execFile } from "node:child_process";
import { unwatchFile, watchFile } from "node:fs";
import { mkdir, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { isRunning } from "../system-error.js";
import { DevError } from "./project-packages.js";

const WATCH_MS = 500;

/**
 * The folder of a project for what a session needs on disk, `dist/dev`; it is gone after the session. A file in it names the process and
 * its host, so that no second session begins, not even in another container. Whoever cleans `dist` deletes it, too: then the session is told, and restores it.
 */
export class DevFolder implements AsyncDisposable {
  readonly path: string;
  readonly #project: string;
  readonly #pidFile: string;
  #isHeld = false;

  private constructor(project: string) {
    this.#project = project;
    this.path = join(project, "dist/dev");
    this.#pidFile = join(this.path, "pid");
  }

  /** Creates the folder, without what a session that was killed has left; throws a DevError if another session runs. */
  static async open(project: string): Promise<DevFolder> {
    const folder = new DevFolder(project);
    await folder.restore();
    return folder;
  }

  /** Creates the folder again if somebody deleted it; tells whether that was so. Throws a DevError if it is another session's by now. */
  async restore(): Promise<boolean> {
    const owner = await this.#readOwner();
    if (owner !== undefined && isOwn(owner)) {
      if (this.#isHeld) return false;
    } else if (owner !== undefined) await this.#refuseIfRunning(owner);
    await rm(this.path, { recursive: true, force: true });
    await mkdir(this.path, { recursive: true });
    await writeFile(this.#pidFile, `${process.pid} ${hostname()}\n`, { flag: "wx" });
    this.#isHeld = true;
    return true;
  }

  /** Calls `onDeleted` when somebody has deleted the folder. It asks for the file: what systems tell about folders that go differs. */
  watch(onDeleted: () => void): void {
    watchFile(this.#pidFile, { interval: WATCH_MS }, ({ nlink }) => {
      if (nlink === 0) onDeleted();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    unwatchFile(this.#pidFile);
    const owner = await this.#readOwner();
    if (owner === undefined || !isOwn(owner)) return;
    await rm(this.path, { recursive: true, force: true });
    // It stays if anything else is in it.
    await rmdir(dirname(this.path)).catch(() => undefined);
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
