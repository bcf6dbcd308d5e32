import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { isDirectory } from "../input/project-files.js";

const run = promisify(execFile);

/** The state of a project that another one is compared with; disposing it removes what was checked out. */
export interface Baseline extends AsyncDisposable {
  readonly folder: string;
}

/** Returns a folder with the state that is named: a folder, or a commit of the repository of the project. */
export async function openBaseline(project: string, against: string): Promise<Baseline | { readonly problem: string }> {
  if (await isDirectory(against)) return { folder: resolve(against), [Symbol.asyncDispose]: async () => undefined };
  const temporary = await mkdtemp(join(tmpdir(), "gen-operator-diff-"));
  const dispose = () => rm(temporary, { recursive: true, force: true });
  // An index of its own, so that nothing of the repository changes.
  const env = { ...process.env, GIT_INDEX_FILE: join(temporary, "index") };
  const git = (...args: string[]) => run("git", ["-C", project, ...args], { env, encoding: "utf8" });
  try {
    const prefix = (await git("rev-parse", "--show-prefix")).stdout.trim();
    const commit = (
      await git("rev-parse", "--verify", "--quiet", "--end-of-options", `${against}^{commit}`)
    ).stdout.trim();
    await git("read-tree", `${commit}:${prefix}`);
    const folder = join(temporary, "project");
    await git("checkout-index", "--all", `--prefix=${folder}/`);
    return { folder, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    const { stderr = "", code } = error as { stderr?: string; code?: unknown };
    const said = stderr.trim().split("\n")[0];
    const reason =
      code === "ENOENT"
        ? "git is not installed"
        : said?.startsWith("fatal: not a git repository") === true
          ? "the project is in no git repository, and there is no such folder"
          : said;
    return { problem: reason === undefined || reason === "" ? "there is no such folder or commit" : reason };
  }
}
