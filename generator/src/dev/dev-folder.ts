import { unwatchFile, watchFile } from "node:fs";
import { mkdir, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isRunning } from "../system-error.js";
import { DevError } from "./project-packages.js";

const WATCH_MS = 500;

/**
 * The folder of a project for what a session needs on disk, `dist/dev`; it is gone after the session. A file in it names the process, so
 * that no second session begins. Whoever cleans `dist` deletes it, too: then the session is told, and restores it.
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
    const owner = await this.#readPid();
    if (owner === process.pid && this.#isHeld) return false;
    if (owner !== undefined && owner !== process.pid && isRunning(owner))
      throw new DevError(
        `gen-operator dev runs ${this.#project} already, as process ${owner}; end that first (if process ${owner} is another program, delete ${this.path})`,
      );
    await rm(this.path, { recursive: true, force: true });
    await mkdir(this.path, { recursive: true });
    await writeFile(this.#pidFile, `${process.pid}\n`, { flag: "wx" });
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
    if ((await this.#readPid()) !== process.pid) return;
    await rm(this.path, { recursive: true, force: true });
    // It stays if anything else is in it.
    await rmdir(dirname(this.path)).catch(() => undefined);
  }

  async #readPid(): Promise<number | undefined> {
    const text = await readFile(this.#pidFile, "utf8").catch(() => "");
    return /^[1-9]\d*\n$/.test(text) ? Number(text) : undefined;
  }
}
