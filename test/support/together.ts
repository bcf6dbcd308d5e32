// Runs several test files in this process, one after the other, as uvu's own command does: while the files are imported, their suites are added to a
// queue with one slot per file; they run after all imports.
import type * as wrapper from "./suite.js";

const files = process.argv.slice(2);
const place = globalThis as { UVU_DEFER?: number; UVU_QUEUE?: unknown[]; UVU_INDEX?: number };
// uvu reads these variables when it is loaded.
place.UVU_DEFER = 1;
place.UVU_QUEUE = files.map(() => [null]);
const { beginFile, runDeclared } = (await import("./suite.js")) as typeof wrapper;
for (const [index, file] of files.entries()) {
  place.UVU_INDEX = index;
  beginFile(file);
  await import(file);
}
await runDeclared();
