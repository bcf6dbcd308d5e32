import type { Setting } from "./setting-table.js";

/** Returns what `--help` of a compiled operator prints. */
export function helpOf(settings: readonly Setting[]): string {
  const isOfController = ({ path }: Setting) => path.startsWith("controllers.");
  const own = settings.filter((each) => !isOfController(each));
  const ofControllers = settings.filter(isOfController);
  return [
    "Settings of this operator: a flag, or a variable of the environment, or a line of the file that --config or CONFIG_FILE names.",
    "A flag has the last word, then the environment, then the file, then the code.",
    "",
    rowOf("--config", "CONFIG_FILE", "A file of settings, YAML or JSON"),
    ...own.map(({ flag, env, help }) => rowOf(`--${flag}`, env, help)),
    "",
    ...ofControllers.map(({ flag, env, help, type }) => rowOf(`--${flag}`, env, `${help}: ${type.words}`)),
    "",
  ].join("\n");
}

function rowOf(flag: string, env: string | undefined, help: string): string {
  return `  ${flag}\n      ${help}${env === undefined ? "" : ` [${env}]`}`;
}
