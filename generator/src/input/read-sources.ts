import { readdir } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { isDirectory, readProjectFile, type ProjectFile } from "./project-files.js";

/** Lists the code that the user has written: everything below `src`, or another folder, that is not generated. */
export async function listSourceFiles(project: string, folder = "src"): Promise<string[]> {
  const root = join(project, folder);
  if (!(await isDirectory(root))) return [];
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && /\.m?ts$/.test(entry.name) && !/\.d\.m?ts$/.test(entry.name))
    .map((entry) => relative(project, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .filter((file) => !file.startsWith("src/generated/"))
    .sort();
}

/** Reads the code that the user has written. */
export async function readSources(project: string, folder = "src"): Promise<ProjectFile[]> {
  const files = await listSourceFiles(project, folder);
  const read = await Promise.all(files.map((file) => readProjectFile(project, file)));
  // What cannot be read as text has no say; the compiler will not like it either.
  return read.flatMap((file) => ("rule" in file ? [] : [file]));
}
