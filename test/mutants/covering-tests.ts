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

/** Runs `task` with the environment that records the coverage of a process, and returns the functions of our packages that it called in `root`. */
export async function collectCalls(
  root: string,
  task: (env: NodeJS.ProcessEnv) => Promise<unknown>,
): Promise<CalledFunctions> {
  await using folder = await createTemporaryFolder();
  await task({ NODE_V8_COVERAGE: folder.path });
  const calls = new Set<string>();
  for (const report of readdirSync(folder.path)) {
    const { result } = JSON.parse(readFileSync(join(folder.path, report), "utf8")) as { result: ScriptCoverage[] };
    for (const [file, names] of calledFunctions(result, root))
      // V8 names an accessor "get name".
      for (const name of names) calls.add(calledName(file, name.replace(/^(?:get|set) /, "")));
  }
  return calls;
}
