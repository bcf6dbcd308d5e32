import { formatDiagnostic, hasErrors, type Diagnostic } from "../diagnostic.js";
import type { GenerateResult } from "../generate.js";
import type { WriteReport } from "../output/write-files.js";

/** Prints diagnostics and how many there are; returns the exit code. */
export function printDiagnostics(diagnostics: readonly Diagnostic[]): number {
  for (const diagnostic of diagnostics) console.error(formatDiagnostic(diagnostic));
  if (!hasErrors(diagnostics)) return 0;
  const errors = diagnostics.filter(({ severity }) => severity === "error").length;
  console.error(`${counted(errors, "error")}; nothing was written`);
  return 1;
}

/** Prints what came of generating, one line for each file that changed; returns the exit code. */
export function printResult(
  { diagnostics, report, caches = [] }: GenerateResult,
  { folder }: { readonly folder: string },
): number {
  const exitCode = printDiagnostics(diagnostics);
  if (report === undefined) return exitCode;
  for (const path of report.stale) console.error(`stale ${path}`);
  if (report.stale.length > 0) {
    console.error(
      `${counted(report.stale.length, "file")} not up to date in ${folder}; run the command without --check`,
    );
    return 1;
  }
  for (const change of ["created", "updated", "deleted"] as const)
    for (const path of report[change]) console.log(`${change} ${path}`);
  for (const path of report.unused) console.error(`unused ${path}: nothing needs it any more; it is yours to delete`);
  for (const line of caches) console.log(line);
  console.log(summaryOf(report));
  return exitCode;
}

/** Prints why a command could not be carried out; returns the exit code. */
export function printFailure(error: unknown): number {
  const { code, message, stack } = error as NodeJS.ErrnoException;
  const isExpected = code !== undefined || /^refused to /.test(message);
  console.error(isExpected ? `gen-operator: ${message}` : `gen-operator failed, which is a bug in it:\n${stack}`);
  return 1;
}

function summaryOf({ created, updated, deleted, unchanged }: WriteReport): string {
  const counts = { created, updated, deleted, unchanged };
  return Object.entries(counts)
    .filter(([, paths]) => paths.length > 0)
    .map(([change, paths]) => `${paths.length} ${change}`)
    .join(", ");
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
