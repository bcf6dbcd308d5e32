import type { AddCommand } from "./frame/command.js";
import { COMPLETION_SCRIPTS, SHELLS } from "./frame/completion-scripts.js";
import { printLines } from "./frame/output.js";

/** Adds `gen-operator completion`. */
export const addCompletionCommand: AddCommand = (parser, { summary, end }) => {
  parser.command(
    "completion <shell>",
    summary,
    (command) =>
      command
        .usage("$0 completion bash|zsh|fish\n\nPrints a script that completes commands, options and their values.")
        .positional("shell", { choices: SHELLS, demandOption: true, describe: "The shell that the script is for" })
        .example('eval "$($0 completion bash)"', "in ~/.bashrc")
        .example('eval "$($0 completion zsh)"', "in ~/.zshrc, after compinit")
        .example("$0 completion fish | source", "in ~/.config/fish/config.fish"),
    ({ shell }) => {
      printLines(COMPLETION_SCRIPTS[shell]);
      end(0);
    },
  );
};
