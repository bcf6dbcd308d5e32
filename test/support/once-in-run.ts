// What several test files need and what takes long to make: the first process of a run makes it, in a folder that the runner removes at the end.
import { mkdir, rename, writeFile } from "node:fs/promises";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createTemporaryFolder, type TemporaryFolder } from "./temporary-folder.js";

/** The environment variable with the folder of the run. */
export const RUN_FOLDER = "TEST_RUN_FOLDER";

/**
 * Returns a folder of a name that `fill` has filled; other processes that ask for the same name wait for it, and share its error.
 *
 * Nothing in it may be changed. A test file that runs without the runner has a folder of its own, which goes when it is disposed of.
 */
export async function onceInRun(name: string, fill: (folder: string) => Promise<void>): Promise<TemporaryFolder> {
  const run = process.env[RUN_FOLDER];
  if (run === undefined) {
    const own = await createTemporaryFolder();
    try {
      await fill(own.path);
      return own;
    } catch (error) {
      await own[Symbol.asyncDispose]();
      throw error;
    }
  }
  const path = join(run, name);
  const outcome = `${path}.outcome`;
  if (await isFirst(path)) {
    const problem = await fill(path).then(
      () => "",
      (error: unknown) => String(error),
    );
    await writeFile(`${outcome}.part`, problem);
    await rename(`${outcome}.part`, outcome);
  } else while (!existsSync(outcome)) await sleep(200);
  const problem = readFileSync(outcome, "utf8");
  if (problem !== "") throw new Error(problem);
  return { path, [Symbol.asyncDispose]: () => Promise.resolve() };
}

/** Exactly one process creates the folder. */
async function isFirst(path: string): Promise<boolean> {
  try {
    await mkdir(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return false;
  }
}
