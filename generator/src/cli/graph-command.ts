import type { AddCommand } from "./command.js";
import { FORMAT_OPTION, printDiagnostics, printLines, printOutcome } from "./print.js";

/** Adds the `gen-operator graph` command. */
export const addGraphCommand: AddCommand = (parser, { summary, end }) => {
  parser.command(
    "graph",
    summary,
    (command) =>
      command
        .usage(
          "$0 graph [--project DIR] [--controller NAME] [--output text|mermaid|dot|svg] [--format FORMAT]\n\n" +
            "Shows the dependents of each controller, what they wait for, their conditions, event sources, and the order of deletion.",
        )
        .option("project", {
          type: "string",
          requiresArg: true,
          default: ".",
          describe: "The folder with workflow.yaml",
        })
        .option("controller", {
          type: "string",
          requiresArg: true,
          describe: "The controller to show [default: all]",
        })
        .option("output", {
          alias: "o",
          choices: ["text", "mermaid", "dot", "svg"] as const,
          requiresArg: true,
          default: "text" as const,
          describe: "A tree for a terminal, or a diagram",
        })
        .option("format", FORMAT_OPTION)
        .example("$0 graph", "in a terminal")
        .example("$0 graph --output mermaid", "for a README on GitHub")
        .example("$0 graph --output svg > workflow.svg", "a picture"),
    async ({ project, controller, output, format }) => {
      const { showGraph } = await import("../graph/show-graph.js");
      const chosen = controller === undefined ? {} : { controller };
      const { diagnostics, text } = await showGraph({ project, output, ...chosen });
      const printText = () => {
        if (text === undefined) return printDiagnostics(diagnostics, "nothing was shown");
        printLines(text);
        return 0;
      };
      // With --format github, the graph is printed as text; only diagnostics become annotations.
      const isAnnotated = format === "github" && text === undefined;
      const parts = text === undefined ? {} : { graph: text };
      end(
        await printOutcome(
          format === "json" || isAnnotated ? format : "text",
          { diagnostics, project, parts },
          printText,
        ),
      );
    },
  );
};
