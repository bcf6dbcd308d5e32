import type { AddCommand } from "./command.js";
import { COMPLETION_SCRIPTS, SHELLS } from "./completion-scripts.js";
import { printLines } from "./print.js";

/** Adds the `gen-operator completion` command. */
export const addCompletionCommand: AddCommand = (parser, { summary, end }) => {
  parser.command(
    "completion <shell>",
    summary,
    (command) =>
      command
        .usage(
          "$0 completion bash|zsh|fish\n\n" +
            "Prints a script that completes commands, options and their values, also after npx gen-operator.",
        )
        .positional("shell", { choices: SHELLS, demandOption: true, describe: "The shell that the script is for" })
        .example("npx $0 completion bash > ~/.gen-operator.bash", "once, in a project; source the file in ~/.bashrc")
        .example("npx $0 completion zsh > ~/.gen-operator.zsh", "source the file in ~/.zshrc, after compinit")
        .example("npx $0 completion fish > ~/.config/fish/conf.d/gen-operator.fish", "")
        .example('eval "$($0 completion bash)"', "in ~/.bashrc, if gen-operator is installed globally"),
    ({ shell }) => {
      printLines(COMPLETION_SCRIPTS[shell]);
      end(0);
    },
  );
};
