import { didYouMean } from "../diagnostic.js";
import type { AddCommand } from "./frame/command.js";
import { printDiagnostics, printProblem } from "./frame/print.js";

/** Adds `gen-operator graph`. */
export const addGraphCommand: AddCommand = (parser, { summary, end }) => {
  parser.command(
    "graph",
    summary,
    (command) =>
      command
        .usage(
          "$0 graph [--project DIR] [--controller NAME] [--output text|mermaid|dot|svg]\n\n" +
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
        .example("$0 graph", "in a terminal")
        .example("$0 graph --output mermaid", "for a README on GitHub")
        .example("$0 graph --output svg > workflow.svg", "a picture"),
    async ({ project, controller, output }) => {
      const { showGraph } = await import("../graph/show-graph.js");
      const chosen = controller === undefined ? {} : { controller };
      const { diagnostics, text, choices } = await showGraph({ project, output, ...chosen });
      if (text !== undefined) {
        process.stdout.write(text);
        return end(0);
      }
      if (choices === undefined) return end(printDiagnostics(diagnostics, "nothing is shown"));
      const problem =
        controller === undefined
          ? "a picture shows one controller; name it with --controller"
          : `there is no controller ${JSON.stringify(controller)}; ${didYouMean(controller, choices)?.hint ?? "name another one"}`;
      printProblem(`${problem}: ${choices.join(", ")}`);
      end(1);
    },
  );
};
