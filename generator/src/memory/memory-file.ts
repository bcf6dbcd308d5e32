import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { digestOf } from "../parts/digest.js";
import { generatorIdentity } from "./generator-identity.js";

const FOLDER = "node_modules/.cache/gen-operator";

/** Reads what an earlier run of this generator has stored; undefined if there is nothing, or it is damaged or of another generator. */
export async function readMemoryFile(root: string, name: string): Promise<unknown> {
  try {
    const text = await readFile(join(root, FOLDER, name), "utf8");
    const end = text.indexOf("\n");
    const body = text.slice(end + 1);
    return text.slice(0, end) === headOf(body) ? (JSON.parse(body) as unknown) : undefined;
  } catch {
    return undefined;
  }
}

/** How something is stored. */
export interface MemoryFileOptions {
  /** Whether a project without `node_modules` gets the folder. */
  readonly creates: boolean;
}

/** Stores something for later runs, if that is possible. */
export async function writeMemoryFile(
  root: string,
  [name, content]: readonly [name: string, content: unknown],
  { creates }: MemoryFileOptions,
): Promise<void> {
  // Without one of them it is no project of npm's, and the folder would be a surprise.
  if (!existsSync(join(root, "node_modules")) && !(creates && existsSync(join(root, "package.json")))) return;
  const path = join(root, FOLDER, name);
  const temporary = `${path}.${process.pid}`;
  try {
    await mkdir(dirname(path), { recursive: true });
    const body = JSON.stringify(content);
    await writeFile(temporary, `${headOf(body)}\n${body}`);
    await rename(temporary, path);
  } catch {
    // Only the time of the next run depends on it.
    await rm(temporary, { force: true }).catch(() => undefined);
  }
}

function headOf(body: string): string {
  return digestOf(generatorIdentity(), body);
}
