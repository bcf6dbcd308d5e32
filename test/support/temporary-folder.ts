import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder of its own below the system's temporary one, removed when it is disposed of. */
export interface TemporaryFolder extends AsyncDisposable {
  readonly path: string;
}

/** Creates an empty folder for a test. */
export async function createTemporaryFolder(): Promise<TemporaryFolder> {
  const path = await realpath(await mkdtemp(join(tmpdir(), "gen-operator-test-")));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
