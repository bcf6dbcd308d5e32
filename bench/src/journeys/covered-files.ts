import { Session } from "node:inspector/promises";
import { calledFunctions, type ScriptCoverage } from "#test/support/called-functions.js";

/** The files of our packages that ran, and how many named functions of each were called. */
export type CoveredFiles = ReadonlyMap<string, number>;

/** Follows which functions are called (V8's precise coverage). What ran before `take` is called the first time, or since the last call, counts. */
export async function followCalls(): Promise<{
  take(): Promise<CoveredFiles>;
  [Symbol.asyncDispose](): Promise<void>;
}> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  return {
    async take() {
      const { result } = await session.post("Profiler.takePreciseCoverage");
      return coveredFiles(result);
    },
    async [Symbol.asyncDispose]() {
      await session.post("Profiler.stopPreciseCoverage");
      session.disconnect();
    },
  };
}

/** Counts the named functions of our packages that were called. */
export function coveredFiles(scripts: readonly ScriptCoverage[]): CoveredFiles {
  const counts = [...calledFunctions(scripts)].map(
    ([file, names]) => [file, names.filter((name) => name !== "").length] as const,
  );
  return new Map(counts.filter(([, count]) => count > 0).sort(([one], [other]) => (one < other ? -1 : 1)));
}
