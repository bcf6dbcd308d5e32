import { join } from "node:path";
import { generate } from "#generator/generate.js";
import { planProject, writeProject, type InitOptions, type InitReport } from "#generator/init/init-project.js";
import * as assert from "../assert.js";
import { repositoryRoot } from "../repository.js";
import { createTemporaryFolder, type TemporaryFolder } from "../temporary-folder.js";
import { readNewCrdFiles } from "../kinds/new-crds.js";
import { linkPackages } from "./link-packages.js";

/** Creates a project as `init` does, without the generated files. */
export async function initProject(options: InitOptions): Promise<InitReport> {
  return writeProject(await planProject(options));
}

/** Creates the project `pages` for WebPages as `init` does, with the packages of the repository. */
export async function createPagesProject(): Promise<TemporaryFolder> {
  const folder = await createTemporaryFolder();
  const crd = join(repositoryRoot, "fixtures/samples/webpage/crds/webpages.example.com.yaml");
  await initProject({ directory: folder.path, crdFiles: await readNewCrdFiles(crd), name: "pages" });
  // Link the packages first, because the generator keeps its cache in node_modules.
  await linkPackages(folder.path);
  const { diagnostics } = await generate({ project: folder.path });
  assert.equal(diagnostics, []);
  return folder;
}
