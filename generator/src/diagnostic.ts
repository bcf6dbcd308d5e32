import { sep } from "node:path";
import { printableLine } from "@gen-operator/schema";
import { distance } from "fastest-levenshtein";

/** How serious a broken rule is: only an error keeps the generator from writing. */
export type Severity = "error" | "warning";

/** What a user reads about a rule in `gen-operator explain`. */
export interface RulePage {
  readonly meaning: string;
  readonly remedy: string;
  /** The folder in fixtures/rejected/ of the repository with a project that triggers the rule. */
  readonly example?: string;
}

/** A part of a spec that has an `accept` field. */
export type Acceptor = "controller" | "dependent" | "eventSource" | "extraRule";

/** The definition of a rule. */
export interface RuleDefinition<S extends Severity | "varies"> {
  /** In kebab-case, as messages name it: `unknown-dependent`. */
  readonly id: string;
  /** `varies` if the check decides in each case. */
  readonly severity: S;
  /** The parts of a spec that can accept the warning with a reason. Default: none. */
  readonly acceptedBy?: readonly Acceptor[];
  readonly page: RulePage;
}

/** A rule of the generator: everything that does not depend on the project it is checked in. */
export interface Rule<S extends Severity | "varies" = Severity | "varies"> extends RuleDefinition<S> {
  readonly acceptedBy: readonly Acceptor[];
  /** Spread into each diagnostic of the rule. A rule whose severity varies leaves `severity` to the check. */
  readonly violation: S extends Severity ? { readonly severity: S; readonly rule: string } : { readonly rule: string };
}

/**
 * Defines a rule. Its definition is a constant in the `rules.ts` of the folder that checks it, and is listed in `explain/rule-registry.ts`.
 *
 * A `rules.ts` imports nothing but this file, so that `explain` and shell completion load no check.
 */
export function defineRule<const S extends Severity | "varies">(definition: RuleDefinition<S>): Rule<S> {
  const { id, severity, acceptedBy = [] } = definition;
  const violation = severity === "varies" ? { rule: id } : { severity, rule: id };
  return { ...definition, acceptedBy, violation: violation as Rule<S>["violation"] };
}

/** A place in a file of the project; line and column count from 1. */
export interface SourcePosition {
  /** Relative to the project, with forward slashes. */
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** A mistake of the user's, or something that looks like one. */
export interface Diagnostic {
  readonly severity: "error" | "warning";
  /** The rule that was broken, in kebab-case. */
  readonly rule: string;
  readonly message: string;
  readonly position?: SourcePosition;
  /** Where it is inside a document: `spec.dependents.web.dependsOn[0]`. */
  readonly path?: string;
  /** What it is about, such as a dependent (`controller/dependent`) or a CRD (`crd example.com/WebPage`): it may be accepted there. */
  readonly about?: string;
  /** What to do about it: `did you mean "database"?` */
  readonly hint?: string;
}

/** Returns `about` of a warning about a CRD: a controller that names the kind can accept it. */
export function subjectOfCrd({ group, kind }: { readonly group: string; readonly kind: string }): string {
  return `crd ${group}/${kind}`;
}

/** Tells whether something is wrong that nothing may be written for. */
export function hasErrors(diagnostics: readonly Diagnostic[]): boolean {
  return diagnostics.some(isError);
}

/** Returns diagnostics in the order in which they are read: by file, line and column; those without a place come first. */
export function sortDiagnostics(diagnostics: readonly Diagnostic[]): Diagnostic[] {
  return [...diagnostics].sort(({ position: left }, { position: right }) => {
    if (left === undefined || right === undefined) return Number(left !== undefined) - Number(right !== undefined);
    if (left.file !== right.file) return left.file < right.file ? -1 : 1;
    return left.line - right.line || left.column - right.column;
  });
}

/** How many problems of one file are found; there may be one in every line of a large file. */
export const MOST_FOUND = 1000;

/** How many problems of one file are shown. */
const MOST_SHOWN = 50;

/** How many diagnostics of a file are not shown. */
export interface Omitted {
  /** Absent for those without a place. */
  readonly file?: string;
  readonly errors: number;
  readonly warnings: number;
}

/** The diagnostics to show, and how many there are besides. */
export interface LimitedDiagnostics {
  readonly shown: readonly Diagnostic[];
  readonly omitted: readonly Omitted[];
}

/** Returns the diagnostics to show, in their order: of each file the first 50, errors before warnings. The others are counted. */
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

/** The rule of a diagnostic that only counts others. */
export const MORE_PROBLEMS = defineRule({
  id: "more-problems",
  severity: "varies",
  page: {
    meaning: "A file has more problems than are printed.",
    remedy: "Correct the problems above, and run the command again.",
  },
});

/** Describes diagnostics that are not shown by one more. */
export function describeOmitted({ file, errors, warnings }: Omitted): Diagnostic {
  const counts = [counted(errors, "error"), counted(warnings, "warning")].filter((text) => !text.startsWith("0 "));
  return {
    severity: errors > 0 ? "error" : "warning",
    ...MORE_PROBLEMS.violation,
    message: `${file === undefined ? "the project" : file} has ${counts.join(" and ")} more`,
    hint: "correct the problems above, and run the command again",
  };
}

/** Counts things: `1 error`, `2 errors`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function isError({ severity }: Diagnostic): boolean {
  return severity === "error";
}

/**
 * Formats a diagnostic: `workflow.yaml:12:19: error unknown-dependent: "web" depends on …`, then indented lines with what helps.
 *
 * Nothing in it can move a cursor or start a line of its own: names and paths come from files that others wrote.
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

/** Returns a diagnostic whose texts are not endless, whoever wrote the names in them: compilers and libraries quote without a limit. */
export function withShortWords(diagnostic: Diagnostic): Diagnostic {
  const { message, hint } = diagnostic;
  return {
    ...diagnostic,
    message: shortenWords(message),
    ...(hint === undefined ? {} : { hint: shortenWords(hint) }),
  };
}

// Longer than the longest path of a real CRD.
const LONG_WORD = /\S{301,}/g;

/** Returns a text of which the longest words are cut. */
export function shortenWords(text: string): string {
  return text.length <= 300 ? text : text.replace(LONG_WORD, shorten);
}

/** Formats the position of something that a message refers to. */
export function formatPosition({ file, line, column }: SourcePosition): string {
  return `${file}:${line}:${column}`;
}

/** Returns the position right behind a text with which a file begins. */
export function positionAfter(file: string, text: string): SourcePosition {
  const lines = text.split("\n");
  return { file, line: lines.length, column: (lines.at(-1) ?? "").length + 1 };
}

/** Returns a path as positions name files, whatever separates its parts on this system. */
export function slashed(path: string): string {
  return path.split(sep).join("/");
}

/** Quotes a text of unknown origin for a message: one line, nothing invisible, not endless. */
export function quote(text: string): string {
  return printableLine(JSON.stringify(shorten(text)));
}

/** Returns a word of a command as a shell takes it: `'my project'`. */
export function shellWord(text: string): string {
  // On Windows a backslash separates folders; elsewhere the shell takes it away.
  return /^[\w@%+=:,./-]+$/.test(slashed(text)) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Returns the beginning of a text that is too long for a message, or all of another one. */
export function shorten(text: string): string {
  // No text has more characters than code units.
  if (text.length <= LONGEST) return text;
  const characters = [...text.slice(0, 2 * LONGEST + 2)];
  return characters.length > LONGEST ? `${characters.slice(0, LONGEST).join("")}…` : text;
}

/** How many characters of a text of unknown origin a message shows. */
const LONGEST = 100;

/** Returns a hint that names the candidate which a mistyped name most likely meant; nothing if none is near. */
export function didYouMean(name: string, candidates: Iterable<string>): { hint: string } | undefined {
  const nearest = nearestOf(name, candidates);
  return nearest === undefined ? undefined : { hint: `did you mean ${quote(nearest)}?` };
}

function nearestOf(name: string, candidates: Iterable<string>): string | undefined {
  const wanted = name.slice(0, 200).toLowerCase();
  let nearest: string | undefined;
  // About one slip in three letters is a slip; more is another word.
  let least = Math.max(2, Math.floor(wanted.length / 3)) + 0.5;
  for (const candidate of candidates) {
    // A difference in case alone counts less than any other.
    const slips = distance(wanted, candidate.toLowerCase()) + (candidate === name ? 0 : 0.1);
    if (slips >= least || slips >= Math.max(wanted.length, candidate.length)) continue;
    least = slips;
    nearest = candidate;
  }
  return nearest;
}
