// What was set, by whom: code, then the file, the environment, and the flags, of which each has the last word over those before.
import { CONTROLLER_SETTINGS, OPERATOR_SETTINGS, type Setting } from "./setting-table.js";
import { readSetting, type SettingValue } from "./setting-value.js";

/** What was set in one place, by the paths of the settings; those of a controller begin with `controllers.NAME.`. */
export type SettingValues = ReadonlyMap<string, SettingValue>;

/** A setting that belongs to the operator, or to one of its controllers. */
export interface KnownSetting extends Setting {
  /** Its whole path. */
  readonly fullPath: string;
  readonly fullFlag: string;
  readonly fullEnv: string | undefined;
}

/** Thrown for what cannot be set: all that is wrong in one place, one line each. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
  }
}

/** Returns all settings of an operator with these controllers. */
export function settingsOf(controllers: readonly string[]): readonly KnownSetting[] {
  const ofOperator = OPERATOR_SETTINGS.map((each) => ({
    ...each,
    ...{ fullPath: each.path, fullFlag: each.flag, fullEnv: each.env },
  }));
  const ofControllers = controllers.flatMap((controller) =>
    CONTROLLER_SETTINGS.map((each) => ({
      ...each,
      fullPath: `controllers.${controller}.${each.path}`,
      fullFlag: `controllers.${controller}.${each.flag}`,
      fullEnv: `CONTROLLERS_${controller.toUpperCase().replace(/[^A-Z0-9]/g, "_")}_${each.env}`,
    })),
  );
  return [...ofOperator, ...ofControllers];
}

/** Reads what the environment sets. */
export function readEnvironment(settings: readonly KnownSetting[], env: NodeJS.ProcessEnv): SettingValues {
  const problems: string[] = [];
  const values = new Map<string, SettingValue>();
  for (const { fullPath, fullEnv, type } of settings) {
    const given = fullEnv === undefined ? undefined : env[fullEnv];
    if (fullEnv === undefined || given === undefined || given === "") continue;
    attempt(problems, fullEnv, () => void values.set(fullPath, readSetting(type, given)));
  }
  if (problems.length > 0) throw new SettingsError(problems);
  return values;
}

/** What the flags ask for besides settings. */
export interface Flags {
  readonly values: SettingValues;
  readonly config?: string;
  readonly wantsHelp: boolean;
}

/** Reads `--name=value`, `--name value`, and `--name` alone for what is true or false. */
export function readFlags(settings: readonly KnownSetting[], args: readonly string[]): Flags {
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
    const setting = settings.find(({ fullFlag }) => fullFlag === name);
    if (setting === undefined && name !== "config") {
      problems.push(
        `${name === "" ? JSON.stringify(arg) : `--${name}`} is no flag of this operator; --help lists them`,
      );
      continue;
    }
    const isSwitch = setting?.type.kind === "boolean" && !/^(true|false)$/i.test(rest[0] ?? "");
    const given = inline ?? (isSwitch ? "true" : rest.shift());
    if (given === undefined) problems.push(`--${name} needs a value`);
    else if (setting === undefined) config = given;
    else attempt(problems, `--${name}`, () => void values.set(setting.fullPath, readSetting(setting.type, given)));
  }
  if (problems.length > 0) throw new SettingsError(problems);
  return { values, wantsHelp, ...(config !== undefined && { config }) };
}

/** Returns what holds: later ones have the last word. */
export function mergeSettings(...all: readonly SettingValues[]): SettingValues {
  return new Map(all.flatMap((each) => [...each]));
}

function attempt(problems: string[], where: string, read: () => void): void {
  try {
    read();
  } catch (error) {
    problems.push(`${where} ${(error as Error).message}`);
  }
}
