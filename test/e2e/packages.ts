// The packages as somebody gets them who has nothing but the repository: copied without what building leaves behind, installed
// from the lock file, packed by npm.
import { cp, mkdir, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join, relative } from "node:path";
import { onceInRun } from "../support/once-in-run.js";
import { repositoryRoot } from "../support/repository.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";
import { runOrThrow } from "./command.js";

/** The packages, packed by one version of Node. */
export interface PackedPackages extends AsyncDisposable {
  /** Removed with everything in it at the end. */
  readonly folder: string;
  /** The clean checkout, which other test files share. */
  readonly checkout: string;
  /** The `node` that packed them and that the project's commands run on. */
  readonly node: string;
  /** The path of the archive of a package, by its name. */
  archiveOf(name: string): string;
}

/** The names of all packages, by the folder they come from. */
export const packageNames = {
  apiserver: "@gen-operator/apiserver",
  generator: "gen-operator",
  kinds: "@gen-operator/kinds",
  runtime: "@gen-operator/runtime",
  schema: "@gen-operator/schema",
  templates: "@gen-operator/templates",
} as const;

/** Installs a clean checkout and packs all packages, once in a run for each Node; `node` runs npm and the compiler. */
export async function packPackages(node: string): Promise<PackedPackages> {
  const packed = await onceInRun(`packed-${await versionOf(node)}`, (folder) => pack(folder, node));
  const own = await createTemporaryFolder();
  const dispose = async () => {
    await own[Symbol.asyncDispose]();
    await packed[Symbol.asyncDispose]();
  };
  try {
    const archives = join(own.path, "archives");
    // Lock files of projects name them by their path, which has to be below the folder of both.
    await cp(join(packed.path, "archives"), archives, { recursive: true });
    const files = await readdir(archives);
    const archiveOf = (name: string) => {
      const start = `${name.replace("@", "").replace("/", "-")}-`;
      const file = files.find((file) => file.startsWith(start) && /^\d/.test(file.slice(start.length)));
      if (file === undefined) throw new Error(`npm packed no ${name}, only ${files.join(", ")}`);
      return join(archives, file);
    };
    const checkout = join(packed.path, "checkout");
    return { folder: own.path, checkout, node, archiveOf, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

async function pack(folder: string, node: string): Promise<void> {
  const [checkout, archives] = [join(folder, "checkout"), join(folder, "archives")];
  await cp(repositoryRoot, checkout, { recursive: true, filter: isSource });
  await mkdir(archives);
  await runOrThrow(["npm", "ci", "--prefer-offline"], { cwd: checkout, node });
  await runOrThrow(["npm", "pack", "--workspaces", "--pack-destination", archives], { cwd: checkout, node });
}

/** The version of a `node`, as it is part of a file name. */
export async function versionOf(node: string): Promise<string> {
  return (await runOrThrow(["node", "--version"], { cwd: tmpdir(), node })).trim();
}

// Ignored files are left out by name: a checkout need not be one of git.
const BUILT = new Set([".git", "node_modules", "dist"]);

function isSource(path: string): boolean {
  return relative(repositoryRoot, path) === "" || !(BUILT.has(basename(path)) || /\.(tgz|log)$/.test(path));
}

/** Unpacks an archive and returns the paths of its files. */
export async function unpack(archive: string, folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  await runOrThrow(["tar", "-xzf", archive, "-C", folder, "--strip-components=1"], { cwd: folder });
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}
