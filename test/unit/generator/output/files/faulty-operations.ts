import { diskOperations, type FileOperations } from "#generator/write/write-files.js";

/** Fails the operation of this number, counted from 1, and, if it is a crash, everything after it. */
export interface Fault {
  readonly at: number;
  readonly isCrash: boolean;
  /** Called in place of the failing operation, after a write has written half of its text. */
  fail(): Error;
}

/** File operations on disk of which one fails, and how many there have been. */
export function faultyOperations({ at, isCrash, fail }: Fault): { operations: FileOperations; count(): number } {
  let count = 0;
  const step = async (operation: () => Promise<void>, half: () => Promise<void>): Promise<void> => {
    count += 1;
    if (isCrash && count > at) throw fail();
    if (count !== at) return operation();
    await half();
    throw fail();
  };
  const nothing = async () => undefined;
  const operations: FileOperations = {
    createFolder: (path) => step(() => diskOperations.createFolder(path), nothing),
    write: (path, content, mode) =>
      step(
        () => diskOperations.write(path, content, mode),
        () => diskOperations.write(path, content.slice(0, content.length / 2)),
      ),
    replace: (from, to) => step(() => diskOperations.replace(from, to), nothing),
    link: (from, to) => step(() => diskOperations.link(from, to), nothing),
    delete: (path) => step(() => diskOperations.delete(path), nothing),
    deleteFolder: (path) => step(() => diskOperations.deleteFolder(path), nothing),
  };
  return { operations, count: () => count };
}
