import { sep } from "node:path";
import { printableLine } from "@gen-operator/schema";
import { distance } from "fastest-levenshtein";

/** Severity of a diagnostic. Only an error prevents the generator from writing. */
export type Severity = "error" | "warning";

/** Documentation of a rule, printed by `gen-operator explain`. */
export interface RulePage {
  readonly meaning: string;
  readonly remedy: string;
  /** Folder in fixtures/rejected/ of the repository with a project that violates the rule. */
  readonly example?: string;
}

/** A part of a spec that has an `accept` field. */
export type Acceptor = "controller" | "dependent" | "eventSource" | "extraRule";

/** The definition of a rule. */
export interface RuleDefinition<S extends Severity | "varies"> {
  /** Id in kebab-case, as in messages, for example `unknown-dependent`. */
  readonly id: string;
  /** `varies` if the check sets it for each diagnostic. */
  readonly severity: S;
  /** Parts of a spec that can accept the warning with a reason. Default: none */
  readonly acceptedBy?: readonly Acceptor[];
  readonly page: RulePage;
}

/** A rule of the generator, independent of the project that it checks. */
export interface Rule<S extends Severity | "varies" = Severity | "varies"> extends RuleDefinition<S> {
  readonly acceptedBy: readonly Acceptor[];
  /** Fields to spread into each diagnostic of the rule. If the severity varies, the check adds `severity`. */
  readonly violation: S extends Severity ? { readonly severity: S; readonly rule: string } : { readonly rule: string };
}

/**
 * Defines a rule. The definition is a constant in the `rules.ts` of the folder that checks it, and is registered in `explain/rule-registry.ts`.
 *
 * A `rules.ts` imports only this file, so that `explain` and shell completion load no checks.
 */
export function defineRule<const S extends Severity | "varies">(definition: RuleDefinition<S>): Rule<S> {
  const { id, severity, acceptedBy = [] } = definition;
  const violation = severity === "varies" ? { rule: id } : { severity, rule: id };
  return { ...definition, acceptedBy, violation: violation as Rule<S>["violation"] };
}

/** A position in a file of the project. Lines and columns start at 1. */
export interface SourcePosition {
  /** Path relative to the project, with forward slashes. */
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** An error in the user's input, or a warning about it. */
export interface Diagnostic {
  readonly severity: "error" | "warning";
  /** Id of the violated rule, in kebab-case. */
  readonly rule: string;
  readonly message: string;
  readonly position?: SourcePosition;
  /** Path in the document, for example `spec.dependents.web.dependsOn[0]`. */
  readonly path?: string;
  /** The part that can accept the diagnostic, for example a dependent (`controller/dependent`) or a CRD (`crd example.com/WebPage`). */
  readonly about?: string;
  /** How to fix the problem, for example `did you mean "database"?` */
  readonly hint?: string;
}

/** Returns `about` of a warning about a CRD. A controller that names the kind can accept the warning. */
export function subjectOfCrd({ group, kind }: { readonly group: string; readonly kind: string }): string {
  return `crd ${group}/${kind}`;
}

/** Returns whether there is an error, in which case nothing may be written. */
export function hasErrors(diagnostics: readonly Diagnostic[]): boolean {
  return diagnostics.some(isError);
}

/** Sorts diagnostics by file, line, and column. Diagnostics without a position come first. */
export function sortDiagnostics(diagnostics: readonly Diagnostic[]): Diagnostic[] {
  return [...diagnostics].sort(({ position: left }, { position: right }) => {
    if (left === undefined || right === undefined) return Number(left !== undefined) - Number(right !== undefined);
    if (left.file !== right.file) return left.file < right.file ? -1 : 1;
    return left.line - right.line || left.column - right.column;
  });
}

/** Maximum number of problems collected per file: every line of a large file may have one. */
export const MOST_FOUND = 1000;

/** Maximum number of problems shown per file. */
const MOST_SHOWN = 50;

/** Numbers of diagnostics of a file that are not shown. */
export interface Omitted {
  /** Absent for diagnostics without a position. */
  readonly file?: string;
  readonly errors: number;
  readonly warnings: number;
}

/** The diagnostics to show, and the numbers of the omitted ones. */
export interface LimitedDiagnostics {
  readonly shown: readonly Diagnostic[];
  readonly omitted: readonly Omitted[];
}

/** Limits diagnostics to the first 50 of each file, errors before warnings, and counts the others. The order is preserved. */
export function limitDiagnostics(diagnostics: readonly Diagnostic[]): LimitedDiagnostics {
  const byFile = new Map<string | undefined, Diagnostic[]>();
  for (const diagnostic of diagnostics) {
    const file = diagnostic.position?.file;
    const known = byFile.get(file);
    if (known === undefined) byFile.set(file, [diagnostic]);
    else known.push(diagnostic);
  }
  const omitted: Omitted[] = [];
  const shown = [...byFile].flatMap(([file, all]) => {
    if (all.length <= MOST_SHOWN) return all;
    const ordered = [...all.filter(isError), ...all.filter((each) => !isError(each))];
    const first = new Set(ordered.slice(0, MOST_SHOWN));
    const others = ordered.slice(MOST_SHOWN);
    const errors = others.filter(isError).length;
    omitted.push({ ...(file === undefined ? {} : { file }), errors, warnings: others.length - errors });
    return all.filter((each) => first.has(each));
  });
  return { shown, omitted };
}

/** Rule of the diagnostic that counts the omitted ones. */
export const MORE_PROBLEMS = defineRule({
  id: "more-problems",
  severity: "varies",
  page: {
    meaning: "A file has more problems than the output lists.",
    remedy: "Correct the problems above, and run the command again.",
  },
});

/** Returns a diagnostic that counts the omitted ones. */
export function describeOmitted({ file, errors, warnings }: Omitted): Diagnostic {
  const counts = [counted(errors, "error"), counted(warnings, "warning")].filter((text) => !text.startsWith("0 "));
  return {
    severity: errors > 0 ? "error" : "warning",
    ...MORE_PROBLEMS.violation,
    message: `${file === undefined ? "the project" : file} has ${counts.join(" and ")} more`,
    hint: "correct the problems above, and run the command again",
  };
}

/** Formats a number with a noun, for example `1 error` or `2 errors`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function isError({ severity }: Diagnostic): boolean {
  return severity === "error";
}

/**
 * Formats a diagnostic: `workflow.yaml:12:19: error unknown-dependent: "web" depends on …`, followed by indented lines with the path and the hint.
 *
 * Control characters are escaped, because names and paths come from untrusted files.
 */
export function formatDiagnostic(diagnostic: Diagnostic): string {
  const { severity, rule, message, position, path, hint } = withShortWords(diagnostic);
  const place = position === undefined ? "" : `${position.file}:${position.line}:${position.column}: `;
  const [first = "", ...rest] = message.split("\n");
  const lines = [
    `${place}${severity} ${rule}: ${first}`,
    ...rest.map((line) => `  ${line}`),
    ...(path === undefined ? [] : [`  at ${path}`]),
    ...(hint === undefined ? [] : hint.split("\n").map((line) => `  ${line}`)),
  ];
  return lines.map(printableLine).join("\n");
}

/** Shortens long words in a diagnostic: compilers and libraries quote names without a limit. */
export function withShortWords(diagnostic: Diagnostic): Diagnostic {
  const { message, hint } = diagnostic;
  return {
    ...diagnostic,
    message: shortenWords(message),
    ...(hint === undefined ? {} : { hint: shortenWords(hint) }),
  };
}

// Longer than the longest path in a real CRD.
const LONG_WORD = /\S{301,}/g;

/** Truncates the long words of a text. */
export function shortenWords(text: string): string {
  return text.length <= 300 ? text : text.replace(LONG_WORD, shorten);
}

/** Formats a position for a message. */
export function formatPosition({ file, line, column }: SourcePosition): string {
  return `${file}:${line}:${column}`;
}

/** Returns the position directly after the beginning `text` of a file. */
export function positionAfter(file: string, text: string): SourcePosition {
  const lines = text.split("\n");
  return { file, line: lines.length, column: (lines.at(-1) ?? "").length + 1 };
}

/** Converts a path to forward slashes. */
export function slashed(path: string): string {
  return path.split(sep).join("/");
}

/** Quotes a string of unknown origin for a message: on one line, shortened, and with invisible characters escaped. */
export function quote(text: string): string {
  return printableLine(JSON.stringify(shorten(text)));
}

/** Quotes a word for a shell if necessary, for example `'my project'`. */
export function shellWord(text: string): string {
  // On Windows, a backslash separates folders; elsewhere it is an escape character of the shell.
  return /^[\w@%+=:,./-]+$/.test(slashed(text)) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Truncates a string that is too long for a message. */
export function shorten(text: string): string {
  // Fast path: a string never has more characters than code units.
  if (text.length <= LONGEST) return text;
  const characters = [...text.slice(0, 2 * LONGEST + 2)];
  return characters.length > LONGEST ? `${characters.slice(0, LONGEST).join("")}…` : text;
}

/** Maximum number of characters of a string of unknown origin in a message. */
const LONGEST = 100;

/** Returns a hint with the candidate that is nearest to a misspelled name; undefined if none is near enough. */
export function didYouMean(name: string, candidates: Iterable<string>): { hint: string } | undefined {
  const nearest = nearestOf(name, candidates);
  return nearest === undefined ? undefined : { hint: `did you mean ${quote(nearest)}?` };
}

function nearestOf(name: string, candidates: Iterable<string>): string | undefined {
  const wanted = name.slice(0, 200).toLowerCase();
  let nearest: string | undefined;
  // Allow about one typo per three letters; beyond that, it is another word.
  let least = Math.max(2, Math.floor(wanted.length / 3)) + 0.5;
  for (const candidate of candidates) {
    // Typos are counted without case, and a difference in case alone adds less than one typo.
    const slips = distance(wanted, candidate.toLowerCase()) + (candidate === name ? 0 : 0.1);
    if (slips >= least || slips >= Math.max(wanted.length, candidate.length)) continue;
    least = slips;
    nearest = candidate;
  }
  return nearest;
}
