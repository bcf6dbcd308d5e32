// The only file of the generator that writes to a terminal. Printed text includes names, messages, and server responses from untrusted sources, so
// control characters and invisible characters are escaped, except for the sequences of STYLES, which untrusted text may contain, too.
import { realpathSync } from "node:fs";
import { isAbsolute, relative, resolve, sep } from "node:path";
import { inspect } from "node:util";
import { printableJson, printableLine, printableText } from "@gen-operator/schema";
import {
  type Diagnostic,
  MORE_PROBLEMS,
  type SourcePosition,
  counted,
  describeOmitted,
  formatDiagnostic,
  formatPosition,
  hasErrors,
  limitDiagnostics,
  shellWord,
  shortenWords,
  slashed,
  withShortWords,
} from "../diagnostic.js";
import type { GenerateResult } from "../generate.js";
import type { InitReport } from "../init/init-project.js";
import { describeSystemError, isSystemError } from "../system-error.js";
import { STALE } from "../write/rules.js";
import type { WriteReport } from "../write/write-files.js";

/** Text styles, as named by node:util. */
const STYLES = ["red", "green", "yellow", "cyan", "dim", "bold"] as const;

const SEQUENCES = STYLES.flatMap((style) => inspect.colors[style] ?? []).map((code) => `\u001b[${code}m`);
const STYLED = new RegExp(`(${[...new Set(SEQUENCES)].map((text) => text.replace("[", "\\[")).join("|")})`);

/** Writes a line to standard output. Line feeds in the text are escaped. */
export function printLine(text: string): void {
  process.stdout.write(`${escapeBetweenStyles(text, printableLine)}\n`);
}

/** Writes text with its line feeds to standard output, for example a patch or a diagram. */
export function printLines(text: string): void {
  process.stdout.write(escapeBetweenStyles(text, printableText));
}

/** Writes a value to standard output as JSON. */
export function printJson(value: unknown): void {
  process.stdout.write(`${printableJson(JSON.stringify(value, undefined, 2))}\n`);
}

/** Writes lines to standard error. The caller indents continuation lines. */
export function printErrorLines(text: string): void {
  process.stderr.write(`${escapeBetweenStyles(text, printableText)}\n`);
}

/** Writes to the terminal without escaping. For the table of `dev`, which moves the cursor and escapes its own content. */
export function writeTable(text: string): void {
  process.stdout.write(text);
}

function escapeBetweenStyles(text: string, escape: (text: string) => string): string {
  // Parts with odd indexes are style sequences.
  return text
    .split(STYLED)
    .map((part, index) => (index % 2 === 1 ? part : escape(part)))
    .join("");
}

/** An output stream that may be a terminal. */
interface Output {
  readonly isTTY?: boolean;
}

/** Name of a text style. */
type Style = (typeof STYLES)[number];

/** Returns a function that styles text for a stream, or that returns it unchanged if colors are disabled. */
export function painterFor(stream: Output): (style: Style, text: string) => string {
  if (!showsColours(stream)) return (_, text) => text;
  return (style, text) => {
    const [start, end] = inspect.colors[style] ?? [0, 0];
    return `\u001b[${start}m${text}\u001b[${end}m`;
  };
}

/**
 * Returns whether to use colors: on a terminal unless `NO_COLOR` is set or `TERM` is `dumb`. `FORCE_COLOR` takes precedence; `0` and `false` disable
 * colors, any other value enables them. https://no-color.org and https://nodejs.org/api/cli.html#force_color1-2-3
 */
export function showsColours({ isTTY = false }: Output, env: NodeJS.ProcessEnv = process.env): boolean {
  const { FORCE_COLOR: forced, NO_COLOR: refused = "", TERM: terminal } = env;
  if (forced !== undefined) return forced !== "0" && forced !== "false";
  return isTTY && refused === "" && terminal !== "dumb";
}

/** A transient line on a terminal that shows the current step of a command. */
interface ProgressLine {
  /** Replaces the line with the given step. */
  report(step: string): void;
  /** Erases the line so that other output can follow. */
  clear(): void;
}

// Faster commands show no line, which would only flicker.
const QUIET_MS = 200;

/** Creates a progress line. It writes nothing if standard error is not a terminal, and nothing during the first `QUIET_MS`. */
export function createProgressLine(
  stream: Output & { write(text: string): unknown } = process.stderr,
  now: () => number = () => performance.now(),
): ProgressLine {
  const isShown = stream.isTTY === true && process.env["TERM"] !== "dumb";
  const startedAt = now();
  let isWritten = false;
  return {
    report(step) {
      if (!isShown || now() - startedAt < QUIET_MS) return;
      isWritten = true;
      stream.write(`\r\u001b[K${printableLine(step)} …`);
    },
    clear() {
      if (isWritten) stream.write("\r\u001b[K");
      isWritten = false;
    },
  };
}

/** Runs a slow operation with a progress line, and erases the line at the end. */
export async function withProgress<Result>(run: (onStep: (step: string) => void) => Promise<Result>): Promise<Result> {
  const line = createProgressLine();
  try {
    return await run(line.report);
  } finally {
    line.clear();
  }
}

// Interval in which a repeated signal counts as the same Ctrl+C: npm forwards a signal that the terminal also sends to the process.
const SAME_SIGNAL_MS = 500;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Resolves on the first termination signal. A further signal exits the process with code 1. */
export function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    let askedAt: number | undefined;
    const onSignal = () => {
      if (askedAt !== undefined && performance.now() - askedAt > SAME_SIGNAL_MS) process.exit(1);
      askedAt ??= performance.now();
      resolve();
    };
    for (const signal of SIGNALS) process.on(signal, onSignal);
  });
}

/** Output formats of diagnostics. */
export const FORMATS = ["text", "json", "github"] as const;

/** An output format. */
export type Format = (typeof FORMATS)[number];

/** The `--format` option of a command. */
export const FORMAT_OPTION = {
  choices: FORMATS,
  default: "text" as Format,
  requiresArg: true,
  describe: "The output format: text, one JSON document, or annotations of GitHub Actions",
} as const;

/** Outcome of a command, independent of the output format. */
export interface Outcome {
  readonly diagnostics: readonly Diagnostic[];
  /** Folder to which the files of diagnostics are relative. */
  readonly project: string;
  /** Default: 1 if a diagnostic is an error, otherwise 0 */
  readonly exitCode?: number;
  /** Additional fields of the JSON output. Default: none */
  readonly parts?: { readonly [part: string]: unknown };
  /** Additional annotations for GitHub; in JSON they are part of `parts`. Default: none */
  readonly annotated?: readonly Diagnostic[];
}

/** Prints the outcome of a command in a format, using `printText` for text. Returns the exit code. */
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

/** Converts the result of generate to an outcome. */
export function generateOutcome({ diagnostics, report }: GenerateResult, project: string): Outcome {
  const stale = report?.stale ?? [];
  return {
    ...{ diagnostics, project },
    exitCode: report === undefined || stale.length > 0 || hasErrors(diagnostics) ? 1 : 0,
    parts: report === undefined ? {} : { files: report },
    annotated: stale.map((path) => ({ ...STALE.violation, message: `${path} is not up to date` })),
  };
}

/** Makes the files of diagnostics, which are relative to the working directory, relative to a project. */
export function relativeTo(project: string, diagnostics: readonly Diagnostic[]): Diagnostic[] {
  const toProject = (position: SourcePosition) => ({
    ...position,
    file: isNoFile(position) ? position.file : slashed(relative(resolve(project), resolve(position.file))),
  });
  return diagnostics.map(({ position, ...others }) =>
    position === undefined ? others : { ...others, position: toProject(position) },
  );
}

// Standard input and cluster objects have no file path.
function isNoFile({ file }: SourcePosition): boolean {
  return file.startsWith("<");
}

/** Content of the JSON output. */
interface JsonResult {
  readonly diagnostics: readonly Diagnostic[];
  readonly exitCode: number;
  readonly [part: string]: unknown;
}

/** Formats a result as one JSON document. `omitted` counts the diagnostics beyond the limit. */
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

// GitHub shows at most this many annotations per severity and step, and silently drops the rest.
const MOST_ANNOTATED = 10;

/** Formats diagnostics as annotations. Those beyond the limit of GitHub are printed as plain log lines, and the last annotation counts them. */
export function formatAnnotations(diagnostics: readonly Diagnostic[], project: string): string[] {
  const { shown, omitted } = limitDiagnostics(diagnostics);
  return (["error", "warning"] as const).flatMap((severity) => {
    const all = [...shown, ...omitted.map(describeOmitted)].filter((each) => each.severity === severity);
    if (all.length <= MOST_ANNOTATED) return all.map((each) => formatAnnotation(each, project));
    const others = all.slice(MOST_ANNOTATED - 1);
    const message = `${others.length} more ${severity}s are in the log of this step`;
    return [
      ...all.slice(0, MOST_ANNOTATED - 1).map((each) => formatAnnotation(each, project)),
      formatAnnotation({ severity, ...MORE_PROBLEMS.violation, message }, project),
      // The prefix keeps a log line from being interpreted as a workflow command.
      ...others.flatMap((each) => formatDiagnostic(each).split("\n")).map((line) => `- ${line}`),
    ];
  });
}

/**
 * Formats a diagnostic as a workflow command of GitHub Actions, which annotates the line of the file.
 *
 * Files are relative to the checkout. Text is escaped, so that it cannot start another workflow command.
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

/** Returns the path of a file relative to the checkout; undefined if it is outside, where GitHub shows no annotation. */
function fileInCheckout(position: SourcePosition, project: string): string | undefined {
  if (isNoFile(position)) return undefined;
  const [checkout, folder] = [process.env["GITHUB_WORKSPACE"] ?? ".", project].map(realPathOf);
  const file = relative(checkout ?? "", resolve(folder ?? "", position.file));
  return isAbsolute(file) || file === ".." || file.startsWith(`..${sep}`) ? undefined : slashed(file);
}

// GITHUB_WORKSPACE may contain a symbolic link that the working directory resolves.
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

/** Prints diagnostics, followed by the number of errors and their consequence. Returns the exit code. */
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

/** Returns the shell command that generates the code of a project. */
export function generateCommandOf(project: string): string {
  return `npx gen-operator generate${project === "." ? "" : ` --project ${shellWord(project)}`}`;
}

/** Options of {@link printResult}. */
interface PrintOptions {
  /** The command that updates generated code. */
  readonly update: string;
  /** The report of `init`, which is already printed and is included in the summary. */
  readonly init?: InitReport;
}

/** Prints the result of generate, with one line per changed file. Returns the exit code. */
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
  // Print all lines at once, because each call is a blocking write.
  if (changes.length > 0) printLines(`${changes.map(printableLine).join("\n")}\n`);
  for (const path of report.unused)
    printErrorLines(
      `unused ${path}: no longer imported, and its types may no longer exist; delete it if you do not need it`,
    );
  // Kept files are relevant after init, but noise after every generate. Files that init created are not reported as kept.
  const kept = init === undefined ? report.kept : report.kept.filter((path) => !init.created.includes(path));
  if (init !== undefined) printKept(kept);
  printLine(summaryOf(init === undefined ? [report] : [init, { ...report, kept }]));
  return exitCode;
}

/** Prints the changes of a dry run as a unified diff, and their number. Returns the exit code. */
export async function printChanges({ diagnostics, report, changes = [] }: GenerateResult): Promise<number> {
  const exitCode = printDiagnostics(diagnostics, "nothing would be written");
  if (report === undefined) return exitCode;
  const { formatChanges } = await import("../write/write-files.js");
  printLines(paintPatch(await formatChanges(changes)));
  // Standard output contains only the diff.
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

/** Prints an error of a command or of its input. */
export function printProblem(message: string): void {
  printErrorLines(`gen-operator: ${shortenWords(message)}`);
}

/** Prints why a command failed: system errors and refusals as messages, all others as bugs with their stack. Returns the exit code. */
export function printFailure(error: unknown): number {
  const { message, stack } = error as Error;
  if (isSystemError(error)) printProblem(describeSystemError(error));
  else if (/^refused to /.test(message)) printProblem(message);
  else printErrorLines(`gen-operator failed because of a bug:\n${stack}`);
  return 1;
}

/** Prints the user files that were not overwritten. */
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
