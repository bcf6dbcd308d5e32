// Runs several test files in this process, one after the other, in the way in which uvu's own program does: a queue with a place for each file
// takes the suites that the file declares while it is loaded, and they run when all are there.
import type * as wrapper from "./suite.js";

const files = process.argv.slice(2);
const place = globalThis as { UVU_DEFER?: number; UVU_QUEUE?: unknown[]; UVU_INDEX?: number };
// uvu looks at them when it is loaded.
place.UVU_DEFER = 1;
place.UVU_QUEUE = files.map(() => [null]);
const { beginFile, runDeclared } = (await import("./suite.js")) as typeof wrapper;
for (const [index, file] of files.entries()) {
  place.UVU_INDEX = index;
  beginFile(file);
  await import(file);
}
await runDeclared();
