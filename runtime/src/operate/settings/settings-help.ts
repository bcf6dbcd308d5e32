import type { KnownSetting } from "./settings.js";
import { wordsOf } from "./setting-value.js";

/** Returns what `--help` of a compiled operator prints. */
export function helpOf(settings: readonly KnownSetting[]): string {
  const own = settings.filter(({ fullPath, path }) => fullPath === path);
  const lines = own.map((each) => rowOf(`--${each.fullFlag}`, each.fullEnv, each.help));
  const ofControllers = settings.filter(({ fullPath, path }) => fullPath !== path);
  const controllers = ofControllers.map((each) =>
    rowOf(`--${each.fullFlag}`, each.fullEnv, `${each.help}: ${wordsOf(each.type)}`),
  );
  return [
    "Settings of this operator: a flag, or a variable of the environment, or a line of the file that --config or CONFIG_FILE names.",
    "A flag has the last word, then the environment, then the file, then the code.",
    "",
    rowOf("--config", "CONFIG_FILE", "A file of settings, YAML or JSON"),
    ...lines,
    "",
    ...controllers,
    "",
  ].join("\n");
}

function rowOf(flag: string, env: string | undefined, help: string): string {
  return `  ${flag}\n      ${help}${env === undefined ? "" : ` [${env}]`}`;
}
