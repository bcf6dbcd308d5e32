import type { AddCommand } from "./command.js";
import { printLines, printProblem } from "./print.js";

/** Adds the `gen-operator explain` command. */
export const addExplainCommand: AddCommand = (parser, { summary, end }) => {
  parser.command(
    "explain [name]",
    summary,
    (command) =>
      command
        .usage(
          "$0 explain [RULE|FIELD]\n\nExplains an error or a warning and how to fix it, or a field of workflow.yaml. Without an argument, lists all rules.",
        )
        .positional("name", {
          type: "string",
          describe: "The rule after error or warning in a message, or a field of a spec",
        })
        .example("$0 explain conditional-dependency", "")
        .example("$0 explain onImmutable", "a field, at each of its paths")
        .example("$0 explain", "all rules"),
    async ({ name }) => {
      const [{ explainRule, listRules }, { explainField, listFieldNames }] = await Promise.all([
        import("../explain/explain-rule.js"),
        import("../editor/explain-field.js"),
      ]);
      if (name === undefined) {
        printLines(`${listRules()}\n`);
        return end(0);
      }
      const text = await explainField(name);
      const explained = text === undefined ? explainRule(name, await listFieldNames()) : { text };
      if ("text" in explained) printLines(`${explained.text}\n`);
      else printProblem(explained.problem);
      end("text" in explained ? 0 : 2);
    },
  );
};
