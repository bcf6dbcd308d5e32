import type { OutputFile } from "./output-file.js";
import { readPlainFile, readPresentFile } from "./present-file.js";
import type { WriteReport } from "./write-files.js";

/** A file before and after a run; absent where there is none. */
export interface FileChange {
  readonly path: string;
  readonly before?: string;
  readonly after?: string;
}

/** Reads what would become of the files that a report names as created, updated or deleted. */
export async function readChanges(
  root: string,
  files: readonly Pick<OutputFile, "path" | "content">[],
  report: WriteReport,
): Promise<FileChange[]> {
  const after = new Map(files.map((file) => [file.path, file]));
  const changes = await Promise.all([
    ...report.created.map((path) => ({ path, after: after.get(path)?.content ?? "" })),
    ...report.updated.map(async (path) => ({
      path,
      before: (await readPresentFile(root, path)) ?? "",
      after: after.get(path)?.content ?? "",
    })),
    ...report.deleted.map(async (path) => ({ path, before: (await readPlainFile(root, path)) ?? "" })),
  ]);
  return changes.sort((left, right) => (left.path < right.path ? -1 : 1));
}

/** Formats changes as a unified diff, which `git apply` and `patch -p1` take. */
export async function formatChanges(changes: readonly FileChange[]): Promise<string> {
  const { createTwoFilesPatch, FILE_HEADERS_ONLY } = await import("diff");
  return changes
    .map(({ path, before, after }) => {
      const names = [before === undefined ? "/dev/null" : `a/${path}`, after === undefined ? "/dev/null" : `b/${path}`];
      const [oldName = "", newName = ""] = names;
      return createTwoFilesPatch(oldName, newName, before ?? "", after ?? "", undefined, undefined, {
        context: 3,
        headerOptions: FILE_HEADERS_ONLY,
      });
    })
    .join("");
}
