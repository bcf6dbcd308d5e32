import { messageOf, type Logger } from "../../base/logger.js";
import { settingsOf, type Setting } from "./setting-table.js";
import { mergeSettings, readEnvironment, readFlags, type SettingValues } from "./settings.js";
import { helpOf } from "./settings-help.js";

/** The settings of an operator, and how to read them again. */
export interface LoadedSettings {
  readonly values: SettingValues;
  /** What is to be printed in place of a run; absent unless it was asked for. */
  readonly help?: string;
  /** Reads the file again; absent without a file. */
  readonly reread?: () => Promise<SettingValues>;
  readonly known: readonly Setting[];
}

/** Reads the settings of an operator with these controllers; throws a SettingsError with all that is wrong in one of the places. */
export async function loadSettings(controllers: readonly string[], args: readonly string[]): Promise<LoadedSettings> {
  const { env } = process;
  const known = settingsOf(controllers);
  const flags = readFlags(known, args);
  if (flags.wantsHelp) return { values: new Map(), help: helpOf(known), known };
  const file = flags.config ?? (env["CONFIG_FILE"] || undefined);
  const environment = readEnvironment(known, env);
  const merge = (fromFile: SettingValues) => mergeSettings(fromFile, environment, flags.values);
  if (file === undefined) return { values: merge(new Map()), known };
  const { readSettingsFile } = await import("./settings-file.js");
  const reread = async () => merge(await readSettingsFile(file, known));
  return { values: await reread(), reread, known };
}

/** The time between two looks at the file; a ConfigMap takes a minute to reach a pod anyway. */
const INTERVAL_MS = 5_000;

interface FollowOptions {
  readonly logger: Logger;
  /** Takes what changed and can be taken over while the operator runs. */
  onChange(values: SettingValues): void;
}

/** Looks at the file of settings until the function that is returned is called; says what needs a restart, and what is wrong, once each. */
export function followSettings(settings: LoadedSettings, { logger, onChange }: FollowOptions): () => void {
  const { reread, known } = settings;
  if (reread === undefined) return () => {};
  let { values } = settings;
  let problem = "";
  const look = async () => {
    try {
      const now = await reread();
      problem = "";
      const changed = known.filter(({ path }) => JSON.stringify(now.get(path)) !== JSON.stringify(values.get(path)));
      values = now;
      const later = changed.filter(({ isLive }) => isLive !== true).map(({ path }) => path);
      const live = changed.filter(({ isLive }) => isLive === true).map(({ path }) => path);
      if (later.length > 0)
        logger.warn({ settings: later }, `changed in the file of settings, and need a restart: ${later.join(", ")}`);
      if (live.length === 0) return;
      onChange(now);
      logger.info({ settings: live }, `taken over from the file of settings: ${live.join(", ")}`);
    } catch (error) {
      const message = messageOf(error);
      if (message !== problem) logger.warn({}, `the settings stay as they are: ${message}`);
      problem = message;
    }
  };
  const timer = setInterval(() => void look(), INTERVAL_MS).unref();
  return () => clearInterval(timer);
}
