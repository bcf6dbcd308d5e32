import { Session } from "node:inspector/promises";
import { calledFunctions } from "#test/support/called-functions.js";

/** The names of the called functions of our packages, by file. */
export type CalledFunctions = ReturnType<typeof calledFunctions>;

/** The files of our packages that ran, with the number of named functions that were called in each. */
export type CoveredFiles = ReadonlyMap<string, number>;

/** Records which functions are called, by V8's precise coverage. `take` returns those since the start or since its last call. */
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

/** Counts the named functions that were called, except those in `inAnyCase`, which also run without the journey, for example by timers. */
export function coveredFiles(called: CalledFunctions, inAnyCase: CalledFunctions = new Map()): CoveredFiles {
  const counts = [...called].map(([file, names]) => {
    const others = inAnyCase.get(file) ?? [];
    return [file, names.filter((name) => name !== "" && !others.includes(name)).length] as const;
  });
  return new Map(counts.filter(([, count]) => count > 0).sort(([one], [other]) => (one < other ? -1 : 1)));
}
