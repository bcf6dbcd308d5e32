import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A new folder in the temporary folder of the system, which is removed when it is disposed. */
export interface TemporaryFolder extends AsyncDisposable {
  readonly path: string;
}

/** Creates an empty folder for a test. */
export async function createTemporaryFolder(): Promise<TemporaryFolder> {
  const path = await realpath(await mkdtemp(join(tmpdir(), "gen-operator-test-")));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
