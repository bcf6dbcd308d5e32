import { printableLine } from "@gen-operator/schema";
import {
  counted,
  describeOmitted,
  formatDiagnostic,
  hasErrors,
  limitDiagnostics,
  shortenWords,
  type Diagnostic,
  shellWord,
} from "../../diagnostic.js";
import type { GenerateResult } from "../../generate.js";
import type { InitReport } from "../../output/project/init-project.js";
import type { WriteReport } from "../../output/files/write-files.js";
import { describeSystemError, isSystemError } from "../../system-error.js";
import { painterFor } from "./terminal.js";
import { printErrorLines, printLine, printLines } from "./output.js";

/** Prints diagnostics, how many there are and what comes of an error; returns the exit code. */
export function printDiagnostics(diagnostics: readonly Diagnostic[], consequence = "nothing was written"): number {
  const { shown, omitted } = limitDiagnostics(diagnostics);
  for (const diagnostic of [...shown, ...omitted.map(describeOmitted)]) printErrorLines(paintDiagnostic(diagnostic));
  if (!hasErrors(diagnostics)) return 0;
  const errors = diagnostics.filter(({ severity }) => severity === "error").length;
  printErrorLines(`${counted(errors, "error")}; ${consequence}`);
  return 1;
}

function paintDiagnostic(diagnostic: Diagnostic): string {
  const { severity, rule } = diagnostic;
  const style = severity === "error" ? "red" : "yellow";
  const paint = painterFor(process.stderr);
  return formatDiagnostic(diagnostic).replace(`${severity} ${rule}: `, (label) => paint(style, label));
}

/** Returns the command that generates the code of a project, as a user types it. */
export function generateCommandOf(project: string): string {
  return `npx gen-operator generate${project === "." ? "" : ` --project ${shellWord(project)}`}`;
}

/** What a result is printed with. */
export interface PrintOptions {
  /** The command that brings generated code up to date. */
  readonly update: string;
  /** What `init` wrote before, and has printed. The summary counts it too. */
  readonly init?: InitReport;
}

/** Prints what came of generating, one line for each file that changed; returns the exit code. */
export function printResult({ diagnostics, report, notes = [] }: GenerateResult, options: PrintOptions): number {
  const { update, init } = options;
  const exitCode = printDiagnostics(diagnostics, init === undefined ? undefined : "no code was generated");
  if (report === undefined) return exitCode;
  for (const path of report.stale) printErrorLines(`stale ${path}`);
  if (report.stale.length > 0) {
    printErrorLines(`generated code is not up to date: ${counted(report.stale.length, "file")}; run: ${update}`);
    return 1;
  }
  if (exitCode !== 0) return exitCode;
  const changes = (["created", "updated", "deleted"] as const).flatMap((change) =>
    report[change].map((path) => `${change} ${path}`),
  );
  for (const note of notes) printErrorLines(`note: ${note}`);
  // Each call waits for whoever reads.
  if (changes.length > 0) printLines(`${changes.map(printableLine).join("\n")}\n`);
  for (const path of report.unused)
    printErrorLines(`unused ${path}: nothing imports it any more; delete it if you do not need it`);
  // Kept files matter after init; after every generate they would be noise.
  // What an example brought was not there before.
  const kept = init === undefined ? report.kept : report.kept.filter((path) => !init.created.includes(path));
  if (init !== undefined) printKept(kept);
  printLine(summaryOf(init === undefined ? [report] : [init, { ...report, kept }]));
  return exitCode;
}

/** Prints what a run would change as a unified diff, and how many files that is; returns the exit code. */
export async function printChanges({ diagnostics, report, changes = [] }: GenerateResult): Promise<number> {
  const exitCode = printDiagnostics(diagnostics, "nothing would be written");
  if (report === undefined) return exitCode;
  const { formatChanges } = await import("../../output/files/file-changes.js");
  printLines(paintPatch(await formatChanges(changes)));
  // Standard output is the diff alone.
  printErrorLines(changes.length === 0 ? "nothing would change" : `would be: ${summaryOf([{ ...report, kept: [] }])}`);
  return exitCode;
}

function paintPatch(patch: string): string {
  const paint = painterFor(process.stdout);
  const paintLine = (line: string) => {
    if (/^(?:---|\+\+\+) /.test(line)) return paint("bold", line);
    if (line.startsWith("@@")) return paint("cyan", line);
    if (/^[+-]/.test(line)) return paint(line.startsWith("+") ? "green" : "red", line);
    return line;
  };
  return patch.split("\n").map(paintLine).join("\n");
}

/** Prints what is wrong with a command, or with what it was given. */
export function printProblem(message: string): void {
  printErrorLines(`gen-operator: ${shortenWords(message)}`);
}

/** Prints why a command could not be carried out; returns the exit code. */
export function printFailure(error: unknown): number {
  const { message, stack } = error as Error;
  if (isSystemError(error)) printProblem(describeSystemError(error));
  else if (/^refused to /.test(message)) printProblem(message);
  else printErrorLines(`gen-operator failed, which is a bug in it:\n${stack}`);
  return 1;
}

/** Prints the files of the user that stay as they are. */
export function printKept(paths: readonly string[]): void {
  for (const path of paths) printLine(`kept    ${path}`);
}

function summaryOf(reports: readonly Partial<WriteReport>[]): string {
  return (["created", "updated", "deleted", "unchanged", "kept"] as const)
    .map((change) => ({ change, count: reports.flatMap((report) => report[change] ?? []).length }))
    .filter(({ count }) => count > 0)
    .map(({ change, count }) => `${count} ${change}`)
    .join(", ");
}
