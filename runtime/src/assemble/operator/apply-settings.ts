// What settings mean for the options of an operator, and for the definitions of its controllers.
import { messageOf, type LogLevel } from "../../base/logger.js";
import { isInPod } from "../../client/connect/load-connection.js";
import { checkLeaderElection, type LeaderElectionSettings } from "../../operate/lease/lease-settings.js";
import type { LogLevels } from "../../operate/settings/log-levels.js";
import { SettingsError, type SettingValues } from "../../operate/settings/settings.js";
import type { SettingValue } from "../../operate/settings/setting-value.js";
import type { ControllerDefinition } from "../../reconcile/controller-definition.js";
import type { RetryOptions } from "../../schedule/retry.js";
import type { RateLimitOptions } from "../../schedule/rate-limiter.js";
import type { OperatorOptions } from "./operator-options.js";

type Options = Omit<OperatorOptions, "controllers">;
type Mutable<Type> = { -readonly [Member in keyof Type]: Type[Member] };

/** Returns options with what the settings say in place of what the code says. */
export function applyToOptions(values: SettingValues, code: Options): Options {
  const options: Mutable<Options> = { ...code };
  const take = <Value extends SettingValue>(path: string, put: (value: Value) => void) => {
    const value = values.get(path);
    if (value !== undefined) put(value as Value);
  };
  take<string>("kubeconfig", (value) => (options.kubeconfig = value));
  take<string>("healthProbeBindAddress", (value) => (options.healthProbeBindAddress = value));
  take<string>("metricsBindAddress", (value) => (options.metricsBindAddress = value));
  take<boolean>("metricsAuthentication", (value) => (options.metricsAuthentication = value));
  take<string>("debugBindAddress", (value) => (options.debugBindAddress = value));
  take<string>("debugTokenFile", (value) => (options.debugTokenFile = value));
  take<boolean>("checkCrds", (value) => (options.checksCrds = value));
  take<number>("requestTimeout", (value) => (options.requestTimeoutMs = value));
  take<number>("maxConnections", (value) => (options.maxConnections = value));
  take<number>("startTimeout", (value) => (options.startTimeoutMs = value));
  take<number>("stopTimeout", (value) => (options.stopTimeoutMs = value));
  options.leaderElection = leaderElectionOf(values, code.leaderElection);
  return options;
}

function leaderElectionOf(values: SettingValues, code: Options["leaderElection"]): Options["leaderElection"] {
  const given: Mutable<LeaderElectionSettings> = typeof code === "object" ? { ...code } : {};
  const of = <Value>(name: string) => values.get(`leaderElection.${name}`) as Value | undefined;
  given.name = of("name") ?? given.name;
  given.namespace = of("namespace") ?? given.namespace;
  given.leaseDurationMs = of("leaseDuration") ?? given.leaseDurationMs;
  given.renewDeadlineMs = of("renewDeadline") ?? given.renewDeadlineMs;
  given.retryPeriodMs = of("retryPeriod") ?? given.retryPeriodMs;
  given.onLoss = of("onLoss") ?? given.onLoss;
  const isEnabled = of<boolean>("enabled") ?? (code === undefined ? isInPod() : code !== false);
  if (isEnabled && [...values.keys()].some((path) => path.startsWith("leaderElection."))) checkSettings(given);
  return isEnabled && given;
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
  const definition: Mutable<ControllerDefinition> = { ...code };
  const of = <Value extends SettingValue>(name: string) =>
    values.get(`controllers.${code.name}.${name}`) as Value | undefined;
  const namespaces = of<readonly string[]>("namespaces") ?? (code.namespaces ? undefined : values.get("namespaces"));
  if (namespaces !== undefined) definition.namespaces = namespacesOf(namespaces as readonly string[]);
  const labelSelector = of<string>("labelSelector");
  if (labelSelector !== undefined) definition.labelSelector = labelSelector;
  const fieldSelector = of<string>("fieldSelector");
  if (fieldSelector !== undefined) definition.fieldSelector = fieldSelector;
  const atOnce = of<number>("maxConcurrentReconciles");
  if (atOnce !== undefined) definition.maxConcurrentReconciles = atOnce;
  const resyncMs = of<number>("maxReconciliationInterval");
  if (resyncMs !== undefined) definition.maxReconciliationIntervalMs = resyncMs;
  const timeoutMs = of<number>("reconcileTimeout");
  if (timeoutMs !== undefined) definition.reconcileTimeoutMs = timeoutMs;
  const retry = definedIn({
    maxRetries: of<number>("retry.maxRetries"),
    initialIntervalMs: of<number>("retry.initialInterval"),
    multiplier: of<number>("retry.multiplier"),
    maxIntervalMs: of<number>("retry.maxInterval"),
    jitter: of<number>("retry.jitter"),
  });
  if (Object.keys(retry).length > 0)
    definition.retry = { ...ownOptions<RetryOptions>(code, "retry", "next"), ...retry } as RetryOptions;
  const limit = definedIn({
    maxReconciliations: of<number>("rateLimit.maxReconciliations"),
    withinMs: of<number>("rateLimit.within"),
  });
  if (Object.keys(limit).length > 0) {
    const rateLimit = { ...ownOptions<RateLimitOptions>(code, "rateLimit", "call"), ...limit };
    if (rateLimit.maxReconciliations === undefined || rateLimit.withinMs === undefined)
      throw new SettingsError([
        `controllers.${code.name}.rateLimit needs both maxReconciliations and within, as the code states neither`,
      ]);
    definition.rateLimit = rateLimit as RateLimitOptions;
  }
  return definition;
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

/** Returns the options that the code states; a function of the user's own has none. */
function ownOptions<Own>(definition: ControllerDefinition, member: "retry" | "rateLimit", mark: string): Partial<Own> {
  const own: unknown = definition[member];
  const isOwn = typeof own === "function" || (typeof own === "object" && own !== null && mark in own);
  if (isOwn)
    throw new SettingsError([
      `controllers.${definition.name}.${member} cannot be set: the code of the controller has a ${member} of its own`,
    ]);
  return (own ?? {}) as Partial<Own>;
}

function definedIn<Given extends object>(given: Given): Partial<Given> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Partial<Given>;
}
