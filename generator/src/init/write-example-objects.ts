import { resolve } from "node:path";
import { hasErrors } from "../diagnostic.js";
import { readProject } from "../input/read-project.js";
import { buildModel } from "../model/build/build-model.js";
import { renderExampleObjects } from "../output/project/example-objects.js";
import { writeFiles, type WriteReport } from "../output/files/write-files.js";

/** Writes an object of each primary into a new project; in another one it only tells which of them are there. */
export async function writeExampleObjects(
  project: string,
  { isNew }: { readonly isNew: boolean },
): Promise<Pick<WriteReport, "created" | "kept">> {
  const root = resolve(project);
  const input = await readProject(root);
  if (hasErrors(input.diagnostics)) return NOTHING;
  const { model } = await buildModel(input);
  if (model === undefined) return NOTHING;
  const { created, kept } = await writeFiles(root, renderExampleObjects(model), { check: false, dryRun: !isNew });
  return { created: isNew ? created : [], kept };
}

const NOTHING = { created: [], kept: [] };
