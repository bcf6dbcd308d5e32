// Shares folders that are expensive to create between test files. The first process of a run creates a folder, and the runner removes it at the end.
import { mkdir, rename, writeFile } from "node:fs/promises";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createTemporaryFolder, type TemporaryFolder } from "./temporary-folder.js";

/** The environment variable with the folder of the run. */
export const RUN_FOLDER = "TEST_RUN_FOLDER";

/**
 * Returns the folder with a name, which `fill` has filled. Other processes that request the same name wait for it, and also receive its error.
 *
 * The folder must not be modified. A test file that is run directly, without the runner, has a folder of its own, which is removed when it is
 * disposed.
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

/** Creates the folder. Returns true in exactly one process. */
async function isFirst(path: string): Promise<boolean> {
  try {
    await mkdir(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return false;
  }
}
