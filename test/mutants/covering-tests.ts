// Which test files call which functions of our packages, as V8 counts the calls of a process and of those that it starts.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { calledFunctions, type ScriptCoverage } from "../support/called-functions.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";

/** Called functions, as `calledName` names them. */
export type CalledFunctions = ReadonlySet<string>;

/** Returns the name of a function in `CalledFunctions`; that of a file itself has no `functionName`. */
export function calledName(compiledFile: string, functionName: string): string {
  return `${compiledFile} ${functionName}`;
}

/** Runs `task` with the coverage of all processes that it starts, and returns the functions of our packages that were called in `root`. */
export async function collectCalls(root: string, task: () => Promise<unknown>): Promise<CalledFunctions> {
  await using folder = await createTemporaryFolder();
  const before = process.env["NODE_V8_COVERAGE"];
  process.env["NODE_V8_COVERAGE"] = folder.path;
  try {
    await task();
  } finally {
    if (before === undefined) delete process.env["NODE_V8_COVERAGE"];
    else process.env["NODE_V8_COVERAGE"] = before;
  }
  const calls = new Set<string>();
  for (const report of readdirSync(folder.path)) {
    const { result } = JSON.parse(readFileSync(join(folder.path, report), "utf8")) as { result: ScriptCoverage[] };
    for (const [file, names] of calledFunctions(result, root))
      // V8 names an accessor "get name".
      for (const name of names) calls.add(calledName(file, name.replace(/^(?:get|set) /, "")));
  }
  return calls;
}
