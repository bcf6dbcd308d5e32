import { readNewCrds } from "#generator/init/read-new-crds.js";
import { readInputs } from "#generator/input/source/read-inputs.js";
import type { NewCrdFile } from "#generator/output/project/new-crds.js";
import * as assert from "../assert.js";

/** Reads files with CRDs for a project that is not there yet. */
export async function readNewCrdFiles(...paths: readonly string[]): Promise<readonly NewCrdFile[]> {
  const read = await readInputs(paths, { folder: ".", readStdin: () => Promise.resolve(new Uint8Array()) });
  const { files, diagnostics } = await readNewCrds("", read);
  assert.equal(diagnostics, []);
  return files;
}
