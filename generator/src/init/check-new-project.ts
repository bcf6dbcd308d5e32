import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { buildModel } from "../check/build-model.js";
import { type Diagnostic, hasErrors, sortDiagnostics } from "../diagnostic.js";
import type { OutputFile } from "../emit/output-file.js";
import { readProject } from "../read/read-project.js";

/** Returns the errors that a project would have with these files. Files that already exist are not replaced. */
export async function checkNewProject(project: string, files: readonly OutputFile[]): Promise<readonly Diagnostic[]> {
  const root = resolve(project);
  const added = files.filter(({ path }) => !existsSync(join(root, path)));
  const input = await readProject(root, { texts: new Map(added.map(({ path, content }) => [path, content])) });
  const found = hasErrors(input.diagnostics) ? input.diagnostics : (await buildModel(input)).diagnostics;
  return sortDiagnostics(found.filter(({ severity }) => severity === "error"));
}
