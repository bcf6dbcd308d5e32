import type { AddCommand } from "./frame/command.js";
import { printProblem } from "./frame/print.js";
import { printLines } from "./frame/output.js";

/** Adds `gen-operator explain`. */
export const addExplainCommand: AddCommand = (parser, { summary, end }) => {
  parser.command(
    "explain [rule]",
    summary,
    (command) =>
      command
        .usage(
          "$0 explain [RULE]\n\nSays what an error or a warning means, and what to do. Without RULE it lists all rules.",
        )
        .positional("rule", { type: "string", describe: "The word after error or warning in a message" })
        .example("$0 explain conditional-dependency", "")
        .example("$0 explain", "all rules"),
    async ({ rule }) => {
      const { explainRule, listRules } = await import("../explain/explain-rule.js");
      if (rule === undefined) {
        printLines(`${listRules()}\n`);
        return end(0);
      }
      const explained = explainRule(rule);
      if ("text" in explained) printLines(`${explained.text}\n`);
      else printProblem(explained.problem);
      end("text" in explained ? 0 : 2);
    },
  );
};
