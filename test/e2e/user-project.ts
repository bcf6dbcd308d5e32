import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { onceInRun } from "../support/once-in-run.js";
import { repositoryRoot } from "../support/repository.js";
import { runCommand, runOrThrow, type CommandResult } from "./command.js";
import { packageNames, versionOf, type PackedPackages } from "./packages.js";

/** A project of a user who has installed the packages. */
export interface UserProject {
  readonly folder: string;
  /** What `init` printed. */
  readonly output: string;
  run(...command: string[]): Promise<CommandResult>;
  /** Runs a command that has to succeed, and returns what it prints. */
  runOrThrow(...command: string[]): Promise<string>;
  read(path: string): Promise<string>;
  write(path: string, text: string): Promise<void>;
  /** Changes a file that has to contain what is replaced. */
  replace(path: string, from: string, to: string): Promise<void>;
}

interface PackageJson {
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  overrides?: Record<string, string>;
}

/** Installs the packages into a folder of their own, once in a run for each Node: `npx gen-operator` works there. */
export async function installTools(packages: PackedPackages): Promise<string> {
  const { node, archiveOf } = packages;
  const { path } = await onceInRun(`tools-${await versionOf(node)}`, async (folder) => {
    await writeFile(join(folder, "package.json"), '{ "private": true }\n');
    const archives = Object.values(packageNames).map((name) => archiveOf(name));
    await runOrThrow(["npm", "install", "--prefer-offline", ...archives], { cwd: folder, node });
  });
  return path;
}

/** What a project is made from. */
export interface UserProjectOptions {
  readonly name: string;
  /** Relative to the repository. */
  readonly crd: string;
  /** The folder in which `npx gen-operator` works. */
  readonly tools: string;
}

/** Creates a project by the commands that `init` and its README name; dependencies resolve to the packed packages. */
export async function createUserProject(packages: PackedPackages, options: UserProjectOptions): Promise<UserProject> {
  const { name, crd, tools } = options;
  const { node } = packages;
  // Not below the tools: what the project fails to depend on must not be found there.
  const folder = join(packages.folder, "projects", name);
  const init = ["npx", "gen-operator", "init", folder, "--crd", join(repositoryRoot, crd)];
  const output = await runOrThrow(init, { cwd: tools, node });
  const dependencies = await resolveToArchives(folder, packages);
  await linkInstalled(folder, dependencies);
  await runOrThrow(["npm", "install", "--prefer-offline"], { cwd: folder, node });
  if (!installed.has(dependencies)) installed.set(dependencies, folder);
  const read = (path: string) => readFile(join(folder, path), "utf8");
  const write = (path: string, text: string) => writeFile(join(folder, path), text);
  return {
    folder,
    output,
    run: (...command) => runCommand(command, { cwd: folder, node }),
    runOrThrow: (...command) => runOrThrow(command, { cwd: folder, node }),
    read,
    write,
    async replace(path, from, to) {
      const text = await read(path);
      if (!text.includes(from)) throw new Error(`${path} does not contain ${JSON.stringify(from)}:\n${text}`);
      await write(
        path,
        text.replace(from, () => to),
      );
    },
  };
}

const LIST = ".package-lock.json";

/** The projects with installed packages, by what they depend on. */
const installed = new Map<string, string>();

/** Links the packages of a project that depends on the same: npm checks them, and has nothing to unpack. It replaces files of packages, and writes to none. */
async function linkInstalled(folder: string, dependencies: string): Promise<void> {
  const other = installed.get(dependencies);
  if (other === undefined || process.platform !== "linux") return;
  const [from, to] = [other, folder].map((each) => join(each, "node_modules")) as [string, string];
  await mkdir(to, { recursive: true });
  // The generator keeps the memory of a project beside them, and npm writes to its list.
  const names = (await readdir(from)).filter((name) => ![".cache", LIST].includes(name));
  await runOrThrow(["cp", "--archive", "--link", ...names, to], { cwd: from });
  await copyFile(join(from, LIST), join(to, LIST));
}

/** Lets the dependencies that a project declares, and theirs, resolve to the archives as they would to a registry; returns all of them. */
async function resolveToArchives(folder: string, packages: PackedPackages): Promise<string> {
  const file = join(folder, "package.json");
  const project = JSON.parse(await readFile(file, "utf8")) as PackageJson;
  const overrides: Record<string, string> = { ...project.overrides };
  for (const name of Object.values(packageNames)) {
    const archive = `file:${packages.archiveOf(name)}`;
    const section = [project.dependencies, project.devDependencies].find((section) => section?.[name] !== undefined);
    if (section !== undefined) section[name] = archive;
    overrides[name] = section === undefined ? archive : `$${name}`;
  }
  await writeFile(file, `${JSON.stringify({ ...project, overrides }, undefined, 2)}\n`);
  return JSON.stringify([project.dependencies, project.devDependencies, overrides]);
}
