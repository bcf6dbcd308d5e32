import { Session } from "node:inspector/promises";
import { calledFunctions } from "#test/support/called-functions.js";

/** The names of the functions of our packages that were called, by the file. */
export type CalledFunctions = ReturnType<typeof calledFunctions>;

/** The files of our packages that ran, and how many named functions of each were called. */
export type CoveredFiles = ReadonlyMap<string, number>;

/** Follows which functions are called (V8's precise coverage). What ran before `take` is called the first time, or since the last call, counts. */
export async function followCalls(): Promise<{
  take(): Promise<CalledFunctions>;
  [Symbol.asyncDispose](): Promise<void>;
}> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  return {
    async take() {
      const { result } = await session.post("Profiler.takePreciseCoverage");
      return calledFunctions(result);
    },
    async [Symbol.asyncDispose]() {
      await session.post("Profiler.stopPreciseCoverage");
      session.disconnect();
    },
  };
}

/** Counts the named functions that were called, without those that are called in any case, as by a timer. */
export function coveredFiles(called: CalledFunctions, inAnyCase: CalledFunctions = new Map()): CoveredFiles {
  const counts = [...called].map(([file, names]) => {
    const others = inAnyCase.get(file) ?? [];
    return [file, names.filter((name) => name !== "" && !others.includes(name)).length] as const;
  });
  return new Map(counts.filter(([, count]) => count > 0).sort(([one], [other]) => (one < other ? -1 : 1)));
}
