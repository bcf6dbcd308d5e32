import { rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { repositoryRoot } from "../repository.js";

/** Links the packages of the repository into a project, in place of npm install. This also removes the cache of the generator. */
export async function linkPackages(project: string): Promise<void> {
  const link = join(project, "node_modules");
  await rm(link, { recursive: true, force: true });
  await symlink(join(repositoryRoot, "node_modules"), link);
}
