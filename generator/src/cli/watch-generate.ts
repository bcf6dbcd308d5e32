import { resolve } from "node:path";
import { isSpecFile, watchProject } from "../dev/watch-project.js";
import { formatDiagnostic } from "../diagnostic.js";
import { type GenerateResult, generate } from "../generate.js";
import { printErrorLines, printFailure, printResult, untilSignal } from "./print.js";

/** Generates the project, and again after every change of a CRD, a spec, or user code. Returns the exit code on Ctrl+C. */
export async function watchGenerate({ project, strict }: { project: string; strict: boolean }): Promise<number> {
  const stop = untilSignal();
  let printed = "";
  const run = async () => {
    try {
      const result = await generate({ project, strict });
      // Most changes of user code do not change the result, so print only differences.
      const text = textOf(result);
      if (text !== printed || hasChanges(result)) printResult(result, { update: "gen-operator generate" });
      printed = text;
    } catch (error) {
      printed = "";
      printFailure(error);
    }
  };
  let running = Promise.resolve();
  await using watch = watchProject(resolve(project), (paths) => {
    if ([...paths].some((path) => isSpecFile(path) || isUserCode(path))) running = running.then(run);
  });
  await watch.ready;
  running = running.then(run);
  await running;
  printErrorLines("watching for changes; press Ctrl+C to stop");
  await stop;
  await running;
  return 0;
}

function textOf({ diagnostics }: GenerateResult): string {
  return diagnostics.map(formatDiagnostic).join("\n");
}

function hasChanges({ report }: GenerateResult): boolean {
  return report !== undefined && [report.created, report.updated, report.deleted].some((paths) => paths.length > 0);
}

function isUserCode(path: string): boolean {
  return /^src\/(?!generated\/).*\.[mc]?ts$/.test(path);
}
