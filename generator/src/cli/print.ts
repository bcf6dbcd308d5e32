// The only file of the generator that writes to a terminal. What commands print has names, messages and answers of servers in it, which other
// people wrote, so every control and invisible character is escaped, but for the styles that commands paint with.
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

/** How a text stands out. */
const STYLES = ["red", "green", "yellow", "cyan", "dim", "bold"] as const;

const SEQUENCES = STYLES.flatMap((style) => inspect.colors[style] ?? []).map((code) => `\u001b[${code}m`);
const STYLED = new RegExp(`(${[...new Set(SEQUENCES)].map((text) => text.replace("[", "\\[")).join("|")})`);

/** Writes a line to standard output; a line feed in it is escaped. */
export function printLine(text: string): void {
  process.stdout.write(`${escapeBetweenStyles(text, printableLine)}\n`);
}

/** Writes lines to standard output as they are: a text, a patch, a diagram. */
export function printLines(text: string): void {
  process.stdout.write(escapeBetweenStyles(text, printableText));
}

/** Writes a value to standard output as JSON. */
export function printJson(value: unknown): void {
  process.stdout.write(`${printableJson(JSON.stringify(value, undefined, 2))}\n`);
}

/** Writes lines to standard error. Lines of a message that belong together are indented by those who format it. */
export function printErrorLines(text: string): void {
  process.stderr.write(`${escapeBetweenStyles(text, printableText)}\n`);
}

/** Writes to the terminal of `dev`, whose table moves the cursor and escapes what it shows. */
export function writeTable(text: string): void {
  process.stdout.write(text);
}

function escapeBetweenStyles(text: string, escape: (text: string) => string): string {
  // Every second part is a style.
  return text
    .split(STYLED)
    .map((part, index) => (index % 2 === 1 ? part : escape(part)))
    .join("");
}

/** A stream that may be a terminal. */
interface Output {
  readonly isTTY?: boolean;
}

/** How a text stands out. */
type Style = (typeof STYLES)[number];

/** Returns a function that paints texts for a stream, or leaves them as they are where colours are not wanted. */
export function painterFor(stream: Output): (style: Style, text: string) => string {
  if (!showsColours(stream)) return (_, text) => text;
  return (style, text) => {
    const [start, end] = inspect.colors[style] ?? [0, 0];
    return `\u001b[${start}m${text}\u001b[${end}m`;
  };
}

/**
 * Tells whether a stream gets colours: if it is a terminal, unless `NO_COLOR` is set; in any case if `FORCE_COLOR` is set, but for `0` and `false`.
 *
 * https://no-color.org and https://nodejs.org/api/cli.html#force_color1-2-3
 */
export function showsColours({ isTTY = false }: Output, env: NodeJS.ProcessEnv = process.env): boolean {
  const { FORCE_COLOR: forced, NO_COLOR: refused = "", TERM: terminal } = env;
  if (forced !== undefined) return forced !== "0" && forced !== "false";
  return isTTY && refused === "" && terminal !== "dumb";
}

/** A line on a terminal that says what a command is doing. */
interface ProgressLine {
  /** Shows a step in place of the one before. */
  report(step: string): void;
  /** Removes the line, so that something else can be printed. */
  clear(): void;
}

// Whatever is faster needs no line that flickers.
const QUIET_MS = 200;

/** Creates a line of progress; it writes nothing where standard error is no terminal, and nothing about what is done in a moment. */
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

/** Runs what may take long with a line of progress, which is gone when this returns. */
export async function withProgress<Result>(run: (onStep: (step: string) => void) => Promise<Result>): Promise<Result> {
  const line = createProgressLine();
  try {
    return await run(line.report);
  } finally {
    line.clear();
  }
}

// npm passes on a Ctrl+C that the terminal has sent already.
const SAME_SIGNAL_MS = 500;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Resolves when somebody asks for the end of the process. Whoever asks again does not want to wait. */
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
    annotated: stale.map((path) => ({ ...STALE.violation, message: `${path} is not up to date` })),
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
interface JsonResult {
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
      formatAnnotation({ severity, ...MORE_PROBLEMS.violation, message }, project),
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
interface PrintOptions {
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
    printErrorLines(
      `unused ${path}: nothing imports it any more, and its types may be gone; delete it if you do not need it`,
    );
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
  const { formatChanges } = await import("../write/write-files.js");
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
