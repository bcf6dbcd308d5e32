import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ResourceModel } from "#generator/model/project-model.js";
import { repositoryRoot } from "../repository.js";
import { resourcesOfCrds } from "../runtime/resource-models.js";

// Other projects' CRDs are too large to keep and not ours to copy: they are read where somebody has collected them.
const folder = process.env["CRD_CORPUS"] ?? join(repositoryRoot, "../shared/corpus");

/** Whether a collection of other projects' CRDs is at hand. */
export const hasCorpus = existsSync(folder);

/** Returns the names of the projects in the collection. */
export function listCorpusProjects(): string[] {
  return readdirSync(folder).sort();
}

/** Reads the files of one project. */
export function readCorpusFiles(project: string): { name: string; text: string }[] {
  const names = readdirSync(join(folder, project)).filter((name) => name.endsWith(".yaml"));
  return names.sort().map((name) => ({ name, text: readFileSync(join(folder, project, name), "utf8") }));
}

/** Reads the kinds of one project; a kind that is there in several editions is read once. */
export function readCorpusProject(project: string): ResourceModel[] {
  const byName = new Map<string, ResourceModel>();
  for (const { text } of readCorpusFiles(project))
    for (const resource of resourcesOfCrds(text)) {
      const key = `${resource.group}/${resource.version}/${resource.kind}`;
      if (!byName.has(key)) byName.set(key, resource);
    }
  return [...byName.values()];
}
