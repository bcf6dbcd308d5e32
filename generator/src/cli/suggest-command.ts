import type { AddCommand } from "./command.js";
import { FORMAT_OPTION, generateCommandOf, printDiagnostics, printLine, printOutcome, withProgress } from "./print.js";

/** Adds the `gen-operator suggest` command. */
export const addSuggestCommand: AddCommand = (parser, { summary, end }) => {
  parser.command(
    "suggest <what>",
    summary,
    (command) =>
      command
        .usage(
          "$0 suggest caches [--project DIR] [--dry-run] [--format FORMAT]\n\n" +
            "Reads your code and sets in workflow.yaml which fields each event source has to keep (cache), and whether it\n" +
            "needs only the objects with the label of its mapping (labelSelector). Comments are kept.",
        )
        .positional("what", { choices: ["caches"] as const, demandOption: true, describe: "What to suggest" })
        .option("project", {
          type: "string",
          requiresArg: true,
          default: ".",
          describe: "The folder with workflow.yaml",
        })
        .option("dry-run", {
          type: "boolean",
          default: false,
          describe: "Print the suggestions without writing them",
        })
        .option("format", FORMAT_OPTION)
        .example("$0 suggest caches", "once the code is written; then generate")
        .example("$0 suggest caches --dry-run", "to see what can be left out"),
    async ({ project, dryRun, format }) => {
      const { suggestCaches } = await import("../suggest/suggest-caches.js");
      const { diagnostics, report, updated } = await withProgress((onStep) =>
        suggestCaches({ project, dryRun, onStep }),
      );
      const parts = { suggestions: report, updated: dryRun ? [] : updated };
      const printText = () => {
        const exitCode = printDiagnostics(diagnostics);
        for (const line of report) printLine(line);
        if (exitCode === 0 && report.length === 0) printLine("no event source watches a kind");
        for (const file of parts.updated) printLine(`updated ${file}`);
        if (parts.updated.length > 0) printLine(`next: ${generateCommandOf(project)}`);
        return exitCode;
      };
      end(await printOutcome(format, { diagnostics, project, parts }, printText));
    },
  );
};
