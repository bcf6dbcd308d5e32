import { lstatSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { isDirectory, listCrdFiles, listSpecFiles } from "../input/project-files.js";
import { listSourceFiles } from "../input/read-sources.js";
import { CRDS_KUSTOMIZATION } from "../output/deploy/crds-kustomization.js";
import { digestOf } from "../parts/digest.js";
import { stampOf, type FileDigests } from "./file-digests.js";

/** The state of a file that `generate` reads. */
interface FileState {
  /** Changes whenever the file is written. */
  readonly stamp: string;
  readonly changedAt: number;
  readonly digest: string;
}

/** Files that say what the project is called and which types its code sees; npm writes the last one with every installation. */
const PACKAGE_FILES = ["package.json", "tsconfig.json", "node_modules/.package-lock.json"];

/** The files that `generate` reads, as they were at one moment. */
export type InputSnapshot = ReadonlyMap<string, FileState>;

/**
 * Takes a snapshot of all files that `generate` reads; `named` are those that a spec names, and no folder shows. Undefined if there is
 * anything in the place of a file that is none: what comes of that is no matter of contents.
 */
export async function takeSnapshot(
  root: string,
  named: readonly string[],
  digests: FileDigests,
): Promise<InputSnapshot | undefined> {
  if (!(await isDirectory(root))) return undefined;
  const lists = await Promise.all([listSpecFiles(root), listCrdFiles(root), listSourceFiles(root)]).catch(
    () => undefined,
  );
  // A whole run says which folder cannot be listed.
  if (lists === undefined) return undefined;
  const optional = [...PACKAGE_FILES, CRDS_KUSTOMIZATION].filter((path) => exists(join(root, path)));
  const paths = new Set([...lists.flat(), ...named, ...optional]);
  const states = new Map<string, FileState>();
  for (const path of paths) {
    const state = stateOf(root, path, digests);
    if (state === undefined) return undefined;
    states.set(path, state);
  }
  return states;
}

/** Returns a text that stands for what all files of a snapshot say, with the name that a project without a package has. */
export function digestOfSnapshot(root: string, snapshot: InputSnapshot): string {
  const files = [...snapshot].map(([path, { digest }]) => `${path} ${digest}`).sort();
  return digestOf(basename(resolve(root)), ...files);
}

function stateOf(root: string, path: string, digests: FileDigests): FileState | undefined {
  try {
    const stats = statSync(join(root, path));
    if (!stats.isFile()) return undefined;
    return { stamp: stampOf(stats), changedAt: stats.ctimeMs, digest: digests.digestOf(path, stats) };
  } catch {
    return undefined;
  }
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
