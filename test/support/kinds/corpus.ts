import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ResourceModel } from "#generator/model/project-model.js";
import { repositoryRoot } from "../repository.js";
import { resourcesOfCrds } from "../runtime/resource-models.js";

// The CRDs of other projects are too large to include, and have licenses of their own. They are read from a folder if it exists.
const folder = process.env["CRD_CORPUS"] ?? join(repositoryRoot, "../shared/corpus");

/** Whether the corpus of CRDs is available. */
export const hasCorpus = existsSync(folder);

/** Returns the names of the projects in the corpus. */
export function listCorpusProjects(): string[] {
  return readdirSync(folder).sort();
}

/** Reads the CRD files of a project. */
export function readCorpusFiles(project: string): { name: string; text: string }[] {
  const names = readdirSync(join(folder, project)).filter((name) => name.endsWith(".yaml"));
  return names.sort().map((name) => ({ name, text: readFileSync(join(folder, project, name), "utf8") }));
}

/** Reads the kinds of a project. If a kind occurs several times, the first one is returned. */
export function readCorpusProject(project: string): ResourceModel[] {
  const byName = new Map<string, ResourceModel>();
  for (const { text } of readCorpusFiles(project))
    for (const resource of resourcesOfCrds(text)) {
      const key = `${resource.group}/${resource.version}/${resource.kind}`;
      if (!byName.has(key)) byName.set(key, resource);
    }
  return [...byName.values()];
}
