import type { Change } from "../diff/change.js";
import type { ProjectDiff } from "../diff/diff-project.js";
import { quote } from "../diagnostic.js";
import type { AddCommand } from "./frame/command.js";
import { FORMAT_OPTION } from "./frame/format.js";
import { printDiagnostics, printProblem } from "./frame/print.js";
import { painterFor, withProgress } from "./frame/terminal.js";

/** Adds `gen-operator diff`. */
export const addDiffCommand: AddCommand = (parser, { summary, end }) => {
  parser.command(
    "diff",
    summary,
    (command) =>
      command
        .usage(
          "$0 diff [--project DIR] [--against REF|FOLDER]\n\n" +
            "Compares the CRDs and specs of the project with an earlier state: changes of fields, effects on running objects, lines of\n" +
            "yours that stop compiling, and stubs that nothing calls any more. Exits with 1 if a change is breaking, with 2 if there is\n" +
            "nothing to compare. Writes nothing.",
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
          choices: ["text", "json"] as const,
          describe: "For people, or as one JSON document",
        })
        .example("$0 diff", "what is not committed")
        .example("$0 diff --against origin/main", "in a pull request")
        .example("$0 diff --against v1.2.0 --format json", "since a release, for a program"),
    async ({ project, against, format }) => {
      const { diffProject } = await import("../diff/diff-project.js");
      const result = await withProgress((onStep) => diffProject({ project, against, onStep }));
      if (result.kind === "unreadable") {
        printProblem(`cannot compare with ${quote(against)}: ${result.problem}`);
        return end(2);
      }
      if (result.kind === "rejected") {
        printDiagnostics(
          result.diagnostics,
          `nothing was compared: ${result.state === "now" ? "the project" : against} is wrong`,
        );
        return end(2);
      }
      const exitCode = result.diff.changes.some(({ effect }) => effect === "breaking") ? 1 : 0;
      if (format === "json") console.log(JSON.stringify({ ...result.diff, exitCode }, undefined, 2));
      else for (const line of linesOf(result.diff)) console.log(line);
      end(exitCode);
    },
  );
};

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
      ? ["code: not compiled, as the packages of the project are not installed; run npm install"]
      : []),
    ...((brokenLines ?? []).length === 0 ? [] : ["code that stops compiling"]),
    ...(brokenLines ?? []).map(({ file, line, column, message }) => `  ${file}:${line}:${column}: ${message}`),
    ...(staleStubs.length + newStubs.length === 0 ? [] : ["stubs"]),
    ...staleStubs.map((path) => `  stale      ${path}: nothing calls it any more`),
    ...newStubs.map((path) => `  new        ${path}: generate will write it`),
    changes.length === 0
      ? "no CRD and no spec differs"
      : `${counts("breaking")} breaking, ${counts("compatible")} compatible`,
  ];
}
