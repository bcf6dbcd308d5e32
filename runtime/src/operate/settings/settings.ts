// What was set, by whom: code, then the file, the environment, and the flags, of which each has the last word over those before.
import type { Setting } from "./setting-table.js";
import { boolean, readSetting, type SettingValue } from "./setting-type.js";

/** What was set in one place, by the paths of the settings; those of a controller begin with `controllers.NAME.`. */
export type SettingValues = ReadonlyMap<string, SettingValue>;

/** Thrown for what cannot be set: all that is wrong in one place, one line each. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
  }
}

/** Reads what the environment sets. */
export function readEnvironment(settings: readonly Setting[], env: NodeJS.ProcessEnv): SettingValues {
  const problems: string[] = [];
  const values = new Map<string, SettingValue>();
  for (const { path, env: name = "", type } of settings) {
    const given = env[name];
    if (given) attempt(problems, name, () => values.set(path, readSetting(type, given)));
  }
  if (problems.length > 0) throw new SettingsError(problems);
  return values;
}

/** Reads `--name=value`, `--name value`, and `--name` alone for what is true or false. */
export function readFlags(settings: readonly Setting[], args: readonly string[]) {
  const problems: string[] = [];
  const values = new Map<string, SettingValue>();
  const rest = [...args];
  let config: string | undefined;
  let wantsHelp = false;
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    const [, name = "", inline] = /^--?([^=]+)(?:=([^]*))?$/.exec(arg) ?? [];
    if (name === "help" || name === "h") {
      wantsHelp = true;
      continue;
    }
    const setting = settings.find(({ flag }) => flag === name);
    if (setting === undefined && name !== "config") {
      problems.push(
        `${name === "" ? JSON.stringify(arg) : `--${name}`} is no flag of this operator; --help lists them`,
      );
      continue;
    }
    const isSwitch = setting?.type === boolean && !/^(true|false)$/i.test(rest[0] ?? "");
    const given = inline ?? (isSwitch ? "true" : rest.shift());
    if (given === undefined || (setting === undefined && given === "")) problems.push(`--${name} needs a value`);
    else if (setting === undefined) config = given;
    else attempt(problems, `--${name}`, () => values.set(setting.path, readSetting(setting.type, given)));
  }
  if (problems.length > 0) throw new SettingsError(problems);
  return { values: values as SettingValues, wantsHelp, config };
}

/** Returns what holds: later ones have the last word. */
export function mergeSettings(...all: readonly SettingValues[]): SettingValues {
  return new Map(all.flatMap((each) => [...each]));
}

/** Reads a setting; what is wrong with it is one problem more. */
export function attempt(problems: string[], where: string, read: () => unknown): void {
  try {
    read();
  } catch (error) {
    problems.push(`${where} ${(error as Error).message}`);
  }
}
