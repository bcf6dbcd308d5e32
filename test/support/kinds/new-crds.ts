import { type NewCrdFile, readNewCrds } from "#generator/init/new-crds.js";
import { readInputs } from "#generator/read/read-inputs.js";
import * as assert from "../assert.js";

/** Reads files with CRDs for a project that is not there yet. */
export async function readNewCrdFiles(...paths: readonly string[]): Promise<readonly NewCrdFile[]> {
  const read = await readInputs(paths, { folder: ".", readStdin: () => Promise.resolve(new Uint8Array()) });
  const { files, diagnostics } = await readNewCrds("", read);
  assert.equal(diagnostics, []);
  return files;
}
