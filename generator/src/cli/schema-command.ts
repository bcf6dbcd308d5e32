import type { AddCommand } from "./command.js";
import { printDiagnostics, printJson, printLines } from "./print.js";

/** Adds the `gen-operator schema` command. */
export const addSchemaCommand: AddCommand = (parser, { summary, end }) => {
  parser.command(
    "schema [kind]",
    summary,
    (command) =>
      command
        .usage(
          "$0 schema [KIND] [--project DIR]\n\n" +
            "Prints the JSON Schema of workflow.yaml, or of a kind of crds/ or of Kubernetes, for completion and validation in an editor.",
        )
        .positional("kind", {
          type: "string",
          describe: "The kind: WebPage, apps/v1/Deployment [default: the workflow spec]",
        })
        .option("project", {
          type: "string",
          requiresArg: true,
          default: ".",
          describe: "The folder with crds/",
        })
        .example("$0 schema > workflow.schema.json", "the spec")
        .example("$0 schema WebPage > webpage.schema.json", "a kind of the project, in its stored version")
        .example("$0 schema apps/v1/Deployment", "a kind of Kubernetes"),
    async ({ kind, project }) => {
      const { readKindSchema, readWorkflowSchema } = await import("../editor/read-schema.js");
      if (kind === undefined) {
        printLines(await readWorkflowSchema());
        return end(0);
      }
      const { schema, diagnostics } = await readKindSchema(project, kind);
      if (schema === undefined) return end(printDiagnostics(diagnostics, "no schema was printed"));
      printJson(schema);
      end(0);
    },
  );
};
