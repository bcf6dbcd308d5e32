// Builds programs from source for a benchmark, and caches them in the user's cache folder until the source changes.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { userCache } from "#test/support/machine/user-cache.js";

/** A command of a build. */
export interface BuildStep {
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: { readonly [name: string]: string };
}

/** A build: the source is copied, and the steps run in the copy. */
export interface Build {
  readonly name: string;
  readonly source: string;
  readonly steps: readonly BuildStep[];
  /** The cache folder. Default: a folder in the user's cache */
  readonly cache?: string;
}

/** Build outputs within a source folder. They are neither copied nor hashed. */
const PRODUCTS = new Set(["target", "node_modules", ".venv", "__pycache__", "dist", "webpage-operator"]);
const MAX_OUTPUT = 64 * 1024 * 1024;

/** Returns the cache folder of a build, outside of the checkout. */
export function buildCache(name: string, environment = process.env): string {
  return join(userCache(environment), "peers", name);
}

/** Runs a build unless it is cached for the same source and steps. Returns the folder in which the steps ran. */
export async function buildOnce({ name, source, steps, cache = buildCache(name) }: Build): Promise<string> {
  const folder = join(cache, "source");
  const stampFile = join(cache, "built");
  const stamp = await stampOf(source, steps);
  if ((await readFile(stampFile, "utf8").catch(() => "")) === stamp) return folder;
  await rm(stampFile, { force: true });
  await rm(folder, { recursive: true, force: true });
  await mkdir(cache, { recursive: true });
  await cp(source, folder, { recursive: true, filter: (path) => !isProduct(relative(source, path)) });
  for (const step of steps) await run(step, folder);
  await writeFile(stampFile, stamp);
  return folder;
}

async function run({ program, args, env }: BuildStep, cwd: string): Promise<void> {
  try {
    await promisify(execFile)(program, [...args], { cwd, env: { ...process.env, ...env }, maxBuffer: MAX_OUTPUT });
  } catch (error) {
    const { code, stdout = "", stderr = "" } = error as { code?: unknown; stdout?: string; stderr?: string };
    if (code === "ENOENT") throw new Error(`${program} is not installed`);
    throw new Error(`${program} ${args.join(" ")} failed in ${cwd}:\n${`${stdout}${stderr}`.slice(-2_000)}`);
  }
}

/** Returns a hash of the source and the build steps. */
export async function stampOf(source: string, steps: readonly BuildStep[]): Promise<string> {
  const hash = createHash("sha256").update(JSON.stringify(steps));
  for (const file of await filesBelow(source)) {
    const text = await readFile(join(source, file));
    hash.update(`\n${file} ${text.length}\n`).update(text);
  }
  return hash.digest("hex");
}

async function filesBelow(source: string): Promise<string[]> {
  const entries = await readdir(source, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(source, join(entry.parentPath, entry.name)))
    .filter((path) => !isProduct(path))
    .sort();
}

function isProduct(path: string): boolean {
  return path.split("/").some((part) => PRODUCTS.has(part));
}
