import { join } from "node:path";
import { entriesBelow, isDirectory, readProjectFile, type ProjectFile } from "./project-files.js";

/** Lists the code that the user has written: everything below `src`, or another folder, that is not generated. */
export async function listSourceFiles(project: string, folder = "src"): Promise<string[]> {
  if (!(await isDirectory(join(project, folder)))) return [];
  return entriesBelow(project, folder, "src/generated")
    .flatMap(([path, entry]) => (entry.isFile() && /\.m?ts$/.test(path) && !/\.d\.m?ts$/.test(path) ? [path] : []))
    .sort();
}

/** Reads the code that the user has written. */
export async function readSources(project: string, folder = "src"): Promise<ProjectFile[]> {
  const files = await listSourceFiles(project, folder);
  const read = await Promise.all(files.map((file) => readProjectFile(project, file)));
  // What cannot be read as text has no say; the compiler will not like it either.
  return read.flatMap((file) => ("rule" in file ? [] : [file]));
}
