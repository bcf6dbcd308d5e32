import { realpathSync } from "node:fs";
import { isAbsolute, relative, resolve, sep } from "node:path";
import {
  describeOmitted,
  formatDiagnostic,
  formatPosition,
  hasErrors,
  limitDiagnostics,
  slashed,
  withShortWords,
  type Diagnostic,
  type SourcePosition,
} from "../../diagnostic.js";
import type { GenerateResult } from "../../generate.js";
import { printLine, printLines } from "./output.js";

/** How diagnostics are printed. */
export const FORMATS = ["text", "json", "github"] as const;

/** A format. */
export type Format = (typeof FORMATS)[number];

/** The option with which a command takes a format. */
export const FORMAT_OPTION = {
  choices: FORMATS,
  default: "text" as Format,
  requiresArg: true,
  describe: "Print problems for people, as one JSON document, or as annotations of GitHub Actions",
} as const;

/** What a command came to. */
export interface Outcome {
  readonly diagnostics: readonly Diagnostic[];
  /** The folder to which files of diagnostics are relative. */
  readonly project: string;
  /** Default: 1 if a diagnostic is an error, and 0 otherwise. */
  readonly exitCode?: number;
  /** What JSON has besides. Default: nothing */
  readonly parts?: { readonly [part: string]: unknown };
  /** What is annotated besides. Default: nothing; JSON has it among its parts. */
  readonly annotated?: readonly Diagnostic[];
}

/** Prints what a command came to in the format that it was asked for, for people by `printText`; returns the exit code. */
export async function printOutcome(
  format: Format,
  outcome: Outcome,
  printText: () => number | Promise<number>,
): Promise<number> {
  if (format === "text") return printText();
  const { diagnostics, project, parts = {}, annotated = [] } = outcome;
  const { exitCode = hasErrors(diagnostics) ? 1 : 0 } = outcome;
  if (format === "json") printLines(`${formatJson({ diagnostics, ...parts, exitCode })}\n`);
  else for (const line of formatAnnotations([...diagnostics, ...annotated], project)) printLine(line);
  return exitCode;
}

/** Returns what came of generating as an outcome. */
export function generateOutcome({ diagnostics, report }: GenerateResult, project: string): Outcome {
  const stale = report?.stale ?? [];
  return {
    ...{ diagnostics, project },
    exitCode: report === undefined || stale.length > 0 || hasErrors(diagnostics) ? 1 : 0,
    parts: report === undefined ? {} : { files: report },
    annotated: stale.map((path) => ({ severity: "error", rule: "stale", message: `${path} is not up to date` })),
  };
}

/** Returns diagnostics of files that were named on the command line with their files relative to a project. */
export function relativeTo(project: string, diagnostics: readonly Diagnostic[]): Diagnostic[] {
  const toProject = (position: SourcePosition) => ({
    ...position,
    file: isNoFile(position) ? position.file : slashed(relative(resolve(project), resolve(position.file))),
  });
  return diagnostics.map(({ position, ...others }) =>
    position === undefined ? others : { ...others, position: toProject(position) },
  );
}

// The standard input, and what comes from a cluster.
function isNoFile({ file }: SourcePosition): boolean {
  return file.startsWith("<");
}

/** What a command has to say in JSON. */
export interface JsonResult {
  readonly diagnostics: readonly Diagnostic[];
  readonly exitCode: number;
  readonly [part: string]: unknown;
}

/** Formats a result as one JSON document. Files of diagnostics are relative to the project; `omitted` counts those beyond the limit. */
export function formatJson({ diagnostics, exitCode, ...others }: JsonResult): string {
  const { shown, omitted } = limitDiagnostics(diagnostics);
  const problems = shown.map(withShortWords).map(({ severity, rule, message, position, path, hint }) => ({
    ...{ severity, rule, message },
    ...position,
    ...(path === undefined ? {} : { path }),
    ...(hint === undefined ? {} : { hint }),
  }));
  return JSON.stringify(
    { diagnostics: problems, ...(omitted.length > 0 ? { omitted } : {}), ...others, exitCode },
    undefined,
    2,
  );
}

// GitHub shows so many annotations of a severity for each step, and drops the others without a word.
const MOST_ANNOTATED = 10;

/** Formats diagnostics as annotations. Beyond what GitHub shows, an annotation counts the others, which stand in the log as plain lines. */
export function formatAnnotations(diagnostics: readonly Diagnostic[], project: string): string[] {
  const { shown, omitted } = limitDiagnostics(diagnostics);
  return (["error", "warning"] as const).flatMap((severity) => {
    const all = [...shown, ...omitted.map(describeOmitted)].filter((each) => each.severity === severity);
    if (all.length <= MOST_ANNOTATED) return all.map((each) => formatAnnotation(each, project));
    const others = all.slice(MOST_ANNOTATED - 1);
    const message = `${others.length} more ${severity}s are in the log of this step`;
    return [
      ...all.slice(0, MOST_ANNOTATED - 1).map((each) => formatAnnotation(each, project)),
      formatAnnotation({ severity, rule: "more-problems", message }, project),
      // No line of the log may begin as a command does.
      ...others.flatMap((each) => formatDiagnostic(each).split("\n")).map((line) => `- ${line}`),
    ];
  });
}

/**
 * Formats a diagnostic as a workflow command of GitHub Actions, which shows it beside the line of the file.
 *
 * Files are named relative to the checkout, and no text of a file can start a command of its own.
 */
export function formatAnnotation(diagnostic: Diagnostic, project: string): string {
  const { severity, rule, message, position, hint } = withShortWords(diagnostic);
  const file = position === undefined ? undefined : fileInCheckout(position, project);
  const place = position === undefined || file === undefined ? {} : { file, line: position.line, col: position.column };
  const stated = Object.entries({ ...place, title: rule }).map(
    ([name, value]) => `${name}=${escapeProperty(String(value))}`,
  );
  const where = position === undefined || file !== undefined ? "" : `${formatPosition(position)}: `;
  return `::${severity} ${stated.join(",")}::${escapeData([where + message, hint ?? []].flat().join("\n"))}`;
}

/** GitHub shows nothing beside a file that is not in the checkout. */
function fileInCheckout(position: SourcePosition, project: string): string | undefined {
  if (isNoFile(position)) return undefined;
  const [checkout, folder] = [process.env["GITHUB_WORKSPACE"] ?? ".", project].map(realPathOf);
  const file = relative(checkout ?? "", resolve(folder ?? "", position.file));
  return isAbsolute(file) || file === ".." || file.startsWith(`..${sep}`) ? undefined : slashed(file);
}

// The checkout may be named by way of a link, and the working directory not.
function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

// https://docs.github.com/actions/reference/workflow-commands-for-github-actions: %25, %0D and %0A, in properties also %3A and %2C.
function escapeData(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
