import type { AddCommand } from "./command.js";
import { printResult } from "./print.js";

/** Adds `gen-operator generate`. */
export const addGenerateCommand: AddCommand = (parser, end) => {
  parser.command(
    "generate",
    "Generate code from workflow.yaml and crds/",
    (command) =>
      command
        .usage(
          "$0 generate [--project DIR] [--check] [--strict]\n\n" +
            "Reads workflow.yaml and *.workflow.yaml of the project and the CRDs below crds/, checks them, and writes\n" +
            "src/generated and missing files of yours. After an error, nothing is written.",
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
          describe: "Write nothing; fail and name the files if generated code is stale",
        })
        .option("strict", {
          type: "boolean",
          default: false,
          describe: "Treat warnings as errors",
        })
        .example("$0 generate", "after every change of a CRD or of the workflow")
        .example("$0 generate --check --strict", "in continuous integration"),
    async ({ project, check, strict }) => {
      const { generate } = await import("../generate.js");
      const folder = project === "." ? "" : ` --project ${project}`;
      end(printResult(await generate({ project, check, strict }), { update: `npx gen-operator generate${folder}` }));
    },
  );
};
