// What settings mean for the options of an operator, and for the definitions of its controllers.
import { messageOf, type LogLevel } from "../../base/logger.js";
import { isInPod } from "../../client/connect/load-connection.js";
import { checkLeaderElection, type LeaderElectionSettings } from "../../operate/lease/lease-settings.js";
import type { LogLevels } from "../../operate/settings/log-levels.js";
import { CONTROLLER_SETTINGS, OPERATOR_SETTINGS, type Setting } from "../../operate/settings/setting-table.js";
import type { SettingValue } from "../../operate/settings/setting-type.js";
import { SettingsError, type SettingValues } from "../../operate/settings/settings.js";
import type { ControllerDefinition } from "../../reconcile/controller-definition.js";
import type { RetryOptions } from "../../schedule/retry.js";
import type { RateLimitOptions } from "../../schedule/rate-limiter.js";
import type { OperatorOptions } from "./operator-options.js";

type Options = Omit<OperatorOptions, "controllers">;

type StatedOptions = Partial<Omit<Options, "leaderElection">> & {
  readonly leaderElection?: LeaderElectionSettings & { readonly enabled?: boolean };
};

type StatedController = Partial<Omit<ControllerDefinition, "namespaces" | "retry" | "rateLimit">> & {
  readonly namespaces?: readonly string[];
  readonly retry?: RetryOptions;
  readonly rateLimit?: Partial<RateLimitOptions>;
};

/** Returns options with what the settings say in place of what the code says. */
export function applyToOptions(values: SettingValues, code: Options): Options {
  const stated: StatedOptions = optionsIn(OPERATOR_SETTINGS, values);
  const { enabled, ...election } = stated.leaderElection ?? {};
  const isEnabled = enabled ?? (code.leaderElection === undefined ? isInPod() : code.leaderElection !== false);
  const leaderElection = { ...(typeof code.leaderElection === "object" && code.leaderElection), ...election };
  if (isEnabled && stated.leaderElection !== undefined) checkSettings(leaderElection);
  const watchdog = stated.watchdog && { ...code.watchdog, ...stated.watchdog };
  return { ...code, ...stated, ...(watchdog && { watchdog }), leaderElection: isEnabled && leaderElection };
}

/** Throws a SettingsError for what the code and the settings together cannot be. */
function checkSettings(given: LeaderElectionSettings): void {
  try {
    checkLeaderElection(given);
  } catch (error) {
    throw new SettingsError([messageOf(error)]);
  }
}

/** Returns a controller with what the settings say in place of what the code says; throws a SettingsError for what does not fit its code. */
export function applyToController(values: SettingValues, code: ControllerDefinition): ControllerDefinition {
  const prefix = `controllers.${code.name}.`;
  const options: StatedController = optionsIn(CONTROLLER_SETTINGS, values, prefix);
  const { namespaces, retry, rateLimit, ...stated } = options;
  const watched = namespaces ?? (code.namespaces ? undefined : values.get("namespaces"));
  const limit: Partial<RateLimitOptions> = { ...(rateLimit && ownOptions(code, "rateLimit")), ...rateLimit };
  if (rateLimit !== undefined && (limit.maxReconciliations === undefined || limit.withinMs === undefined))
    throw new SettingsError([
      `${prefix}rateLimit needs both maxReconciliations and within, as the code states neither`,
    ]);
  return {
    ...code,
    ...stated,
    ...(watched !== undefined && { namespaces: namespacesOf(watched as readonly string[]) }),
    ...(retry !== undefined && { retry: { ...ownOptions(code, "retry"), ...retry } }),
    ...(rateLimit !== undefined && { rateLimit: limit as RateLimitOptions }),
  };
}

/** Returns what settings say in the words of the code: `{ retry: { maxIntervalMs } }` for `retry.maxInterval`. */
function optionsIn(settings: readonly Setting[], values: SettingValues, prefix = ""): object {
  const options: { [name: string]: SettingValue | object } = {};
  for (const { path, option } of settings) {
    const value = values.get(`${prefix}${path}`);
    if (value === undefined || option === undefined) continue;
    const [name = "", member] = option.split(".");
    options[name] = member === undefined ? value : { ...(options[name] as object | undefined), [member]: value };
  }
  return options;
}

/** Sets the levels that the settings have; what they do not have is as it was at first. */
export function applyToLevels(values: SettingValues, levels: LogLevels, first: LogLevel): void {
  levels.operator = (values.get("logLevel") as LogLevel | undefined) ?? first;
  levels.controllers.clear();
  for (const [path, value] of values) {
    const [, controller] = /^controllers\.(.+)\.logLevel$/.exec(path) ?? [];
    if (controller !== undefined) levels.controllers.set(controller, value as LogLevel);
  }
}

function namespacesOf(namespaces: readonly string[]): ControllerDefinition["namespaces"] {
  if (namespaces.length === 1 && namespaces[0] === "current") return "current";
  return namespaces.length === 1 && namespaces[0] === "all" ? undefined : namespaces;
}

/** Returns the options that the code states; a retry or a function of the user's own has none. */
function ownOptions(definition: ControllerDefinition, member: "retry" | "rateLimit"): object {
  const own: unknown = definition[member];
  const isOwn = typeof own === "function" || (typeof own === "object" && own !== null && "next" in own);
  if (isOwn)
    throw new SettingsError([
      `controllers.${definition.name}.${member} cannot be set: the code of the controller has a ${member} of its own`,
    ]);
  return own ?? {};
}
