import { relative, resolve, sep } from "node:path";
import {
  describeOmitted,
  formatDiagnostic,
  limitDiagnostics,
  withShortWords,
  type Diagnostic,
} from "../../diagnostic.js";

/** How diagnostics are printed. */
export const FORMATS = ["text", "json", "github"] as const;

/** A format that programs read. */
export type MachineFormat = "json" | "github";

/** The option with which a command takes a format. */
export const FORMAT_OPTION = {
  choices: FORMATS,
  default: "text" as (typeof FORMATS)[number],
  requiresArg: true,
  describe: "Print problems for people, as one JSON document, or as annotations of GitHub Actions",
} as const;

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
  const checkout = process.env["GITHUB_WORKSPACE"] ?? ".";
  const properties = {
    ...(position === undefined
      ? {}
      : {
          file: relative(resolve(checkout), resolve(project, position.file)).split(sep).join("/"),
          line: position.line,
          col: position.column,
        }),
    title: rule,
  };
  const stated = Object.entries(properties).map(([name, value]) => `${name}=${escapeProperty(String(value))}`);
  return `::${severity} ${stated.join(",")}::${escapeData(hint === undefined ? message : `${message}\n${hint}`)}`;
}

// https://docs.github.com/actions/reference/workflow-commands-for-github-actions: %25, %0D and %0A, in properties also %3A and %2C.
function escapeData(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
