import { rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { repositoryRoot } from "../repository.js";

/** Gives a project the packages of the repository, as npm install would; what the generator has remembered there is forgotten. */
export async function linkPackages(project: string): Promise<void> {
  const link = join(project, "node_modules");
  await rm(link, { recursive: true, force: true });
  await symlink(join(repositoryRoot, "node_modules"), link);
}
