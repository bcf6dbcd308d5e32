import { type NewCrdFile, readNewCrds } from "#generator/init/new-crds.js";
import { readInputs } from "#generator/read/read-inputs.js";
import * as assert from "../assert.js";

/** Reads CRD files for a new project. */
export async function readNewCrdFiles(...paths: readonly string[]): Promise<readonly NewCrdFile[]> {
  const read = await readInputs(paths, { folder: ".", readStdin: () => Promise.resolve(new Uint8Array()) });
  const { files, diagnostics } = await readNewCrds("", read);
  assert.equal(diagnostics, []);
  return files;
}
