import type { AddCommand } from "./command.js";
import {
  FORMAT_OPTION,
  generateCommandOf,
  generateOutcome,
  printChanges,
  printOutcome,
  printResult,
  withProgress,
} from "./print.js";

/** Adds the `gen-operator generate` command. */
export const addGenerateCommand: AddCommand = (parser, { summary, end }) => {
  parser.command(
    "generate",
    summary,
    (command) =>
      command
        .usage(
          "$0 generate [--project DIR] [--check | --dry-run | --watch] [--strict]\n\n" +
            "Reads workflow.yaml and *.workflow.yaml of the project and the CRDs below crds/, checks them, and writes\n" +
            "src/generated and missing stubs. After an error, nothing is written.",
        )
        .option("project", {
          type: "string",
          requiresArg: true,
          default: ".",
          describe: "The folder with workflow.yaml",
        })
        .option("check", {
          type: "boolean",
          default: false,
          describe: "Write nothing; exit with 1 and name the files if generated code is stale or a stub is missing",
        })
        .option("dry-run", {
          type: "boolean",
          default: false,
          describe: "Write nothing; print what would change as a unified diff",
        })
        .option("watch", {
          type: "boolean",
          default: false,
          describe: "Generate again after every change, until Ctrl+C",
        })
        .option("strict", {
          type: "boolean",
          default: false,
          describe: "Treat warnings as errors",
        })
        .option("forget", {
          type: "string",
          array: true,
          requiresArg: true,
          default: [] as string[],
          describe:
            "A controller, or CONTROLLER/DEPENDENT, that was removed from the spec and has no objects, or whose objects are kept",
        })
        .option("format", FORMAT_OPTION)
        .check(({ check, watch, "dry-run": dryRun, format, forget }) => {
          const modes = [check && "--check", dryRun && "--dry-run", watch && "--watch"].filter(Boolean);
          if (format !== "text" && (watch || dryRun))
            return `--format ${format} cannot be combined with --watch or --dry-run`;
          if (watch && forget.length > 0) return "--forget cannot be combined with --watch";
          return modes.length < 2 || `${modes.join(" and ")} are mutually exclusive`;
        })
        .example("$0 generate", "after every change of a CRD or of the workflow")
        .example("$0 generate --watch", "while you write the workflow")
        .example("$0 generate --dry-run | less", "to see what a new CRD changes")
        .example("$0 generate --check --strict", "in continuous integration")
        .example("$0 generate --check --format github", "the same, with annotations in a pull request"),
    async ({ project, check, dryRun, watch, strict, forget, format }) => {
      if (watch) {
        const { watchGenerate } = await import("./watch-generate.js");
        return end(await watchGenerate({ project, strict }));
      }
      const { generate } = await import("../generate.js");
      const result = await withProgress((onStep) => generate({ project, check, dryRun, strict, forget, onStep }));
      if (dryRun) return end(await printChanges(result));
      const printText = () => printResult(result, { update: generateCommandOf(project) });
      end(await printOutcome(format, generateOutcome(result, project), printText));
    },
  );
};
