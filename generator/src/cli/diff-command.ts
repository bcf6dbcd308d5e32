import { type Diagnostic, formatPosition, quote } from "../diagnostic.js";
import type { Change } from "../diff/change.js";
import type { DiffResult, ProjectDiff } from "../diff/diff-project.js";
import { BREAKING_CHANGE, BROKEN_LINE, STALE_STUB, UNREADABLE_BASELINE } from "../diff/rules.js";
import type { AddCommand } from "./command.js";
import {
  FORMATS,
  FORMAT_OPTION,
  type Outcome,
  painterFor,
  printDiagnostics,
  printJson,
  printLine,
  printOutcome,
  printProblem,
  withProgress,
} from "./print.js";

const CRDIFY = "crdify";

/** Adds the `gen-operator diff` command. */
export const addDiffCommand: AddCommand = (parser, { summary, end }) => {
  parser.command(
    "diff",
    summary,
    (command) =>
      command
        .usage(
          "$0 diff [--project DIR] [--against REF|FOLDER] [--format FORMAT]\n\n" +
            "Compares the CRDs and specs of the project with an earlier state: changed fields, effects on existing objects, lines of\n" +
            "your code that stop compiling, and stubs that are no longer called. Exits with 1 if a change is breaking, and with 2 if\n" +
            "the states cannot be compared. Writes nothing.",
        )
        .option("project", {
          type: "string",
          requiresArg: true,
          default: ".",
          describe: "The folder with workflow.yaml",
        })
        .option("against", {
          type: "string",
          requiresArg: true,
          default: "HEAD",
          describe: "A commit, branch or tag of git, or a folder with the earlier state",
        })
        .option("format", {
          ...FORMAT_OPTION,
          choices: [...FORMATS, CRDIFY] as const,
          describe: `${FORMAT_OPTION.describe}; ${CRDIFY}: changes of CRDs in the format of crdify, with the names of its checks`,
        })
        .example("$0 diff", "uncommitted changes")
        .example("$0 diff --against origin/main", "in a pull request")
        .example("$0 diff --against origin/main --format github", "the same, with annotations")
        .example("$0 diff --against v1.2.0 --format json", "since a release, for a program")
        .example("$0 diff --against origin/main --format crdify", "for tools that read reports of crdify"),
    async ({ project, against, format }) => {
      const { diffProject } = await import("../diff/diff-project.js");
      const result = await withProgress((onStep) => diffProject({ project, against, onStep }));
      const outcome = outcomeOf(result, { project, against });
      if (format === CRDIFY && result.kind === "compared") {
        const { crdifyReportOf } = await import("../diff/crdify-report.js");
        printJson(crdifyReportOf(result.diff.changes));
        return end(outcome.exitCode ?? 0);
      }
      end(await printOutcome(format === CRDIFY ? "text" : format, outcome, () => printDiff(result, against)));
    },
  );
};

interface Compared {
  readonly project: string;
  readonly against: string;
}

function outcomeOf(result: DiffResult, { project, against }: Compared): Outcome {
  if (result.kind === "unreadable") {
    const message = `the project cannot be compared with ${quote(against)}: ${result.problem}`;
    return { diagnostics: [{ ...UNREADABLE_BASELINE.violation, message }], project, exitCode: 2 };
  }
  if (result.kind === "rejected") {
    // A position in the earlier state does not exist in the current files, so it becomes part of the message.
    const diagnostics = result.state === "now" ? result.diagnostics : result.diagnostics.map(withoutPosition);
    return { diagnostics, project, exitCode: 2 };
  }
  const { changes, brokenLines = [], staleStubs } = result.diff;
  const parts = {
    ...result.diff,
    changes: changes.map(({ position, ...change }) => ({ ...change, ...position })),
  };
  const breaking = changes.filter(({ effect }) => effect === "breaking");
  const annotated = [
    ...breaking.map(annotationOf),
    ...brokenLines.map(({ message, ...position }): Diagnostic => {
      return { ...BROKEN_LINE.violation, message: `stops compiling: ${message}`, position };
    }),
    ...staleStubs.map((file): Diagnostic => {
      const position = { file, line: 1, column: 1 };
      return { ...STALE_STUB.violation, message: "this stub is no longer called", position };
    }),
  ];
  return { diagnostics: [], project, exitCode: breaking.length > 0 ? 1 : 0, parts, annotated };
}

function annotationOf({ subject, path, message, position }: Change): Diagnostic {
  const text = `${subject}: ${path === undefined ? "" : `${path}: `}${message}`;
  return { ...BREAKING_CHANGE.violation, message: text, ...(position === undefined ? {} : { position }) };
}

function withoutPosition({ position, message, ...others }: Diagnostic): Diagnostic {
  return { ...others, message: position === undefined ? message : `${formatPosition(position)}: ${message}` };
}

function printDiff(result: DiffResult, against: string): number {
  if (result.kind === "unreadable") {
    printProblem(`cannot compare with ${quote(against)}: ${result.problem}`);
    return 2;
  }
  if (result.kind === "rejected") {
    const wrong = result.state === "now" ? "the project" : against;
    printDiagnostics(result.diagnostics, `nothing was compared: ${wrong} has errors`);
    return 2;
  }
  for (const line of linesOf(result.diff)) printLine(line);
  return result.diff.changes.some(({ effect }) => effect === "breaking") ? 1 : 0;
}

function paintEffect(effect: Change["effect"]): string {
  const text = effect.padEnd(11);
  return effect === "breaking" ? painterFor(process.stdout)("red", text) : text;
}

function linesOf({ changes, brokenLines, staleStubs, newStubs }: ProjectDiff): string[] {
  const subjects = [...new Set(changes.map(({ subject }) => subject))];
  const counts = (effect: string) => changes.filter((change) => change.effect === effect).length;
  return [
    ...subjects.flatMap((subject) => [
      subject,
      ...changes
        .filter((change) => change.subject === subject)
        .map(
          ({ effect, path, message }) => `  ${paintEffect(effect)}${path === undefined ? "" : `${path}: `}${message}`,
        ),
    ]),
    ...(brokenLines === undefined
      ? ["code: not compiled because the packages of the project are not installed; run npm install"]
      : []),
    ...((brokenLines ?? []).length === 0 ? [] : ["code that stops compiling"]),
    ...(brokenLines ?? []).map(({ file, line, column, message }) => `  ${file}:${line}:${column}: ${message}`),
    ...(staleStubs.length + newStubs.length === 0 ? [] : ["stubs"]),
    ...staleStubs.map((path) => `  stale      ${path}: no longer called`),
    ...newStubs.map((path) => `  new        ${path}: generate will write it`),
    changes.length === 0
      ? "no differences in CRDs or specs"
      : `${counts("breaking")} breaking, ${counts("compatible")} compatible`,
  ];
}
