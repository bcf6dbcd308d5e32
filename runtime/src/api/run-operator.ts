import { printableText } from "@gen-operator/schema";
import { type LogLevel, type LogLevels, type Logger, createLeveledLogger, messageOf } from "../base/logger.js";
import { isInPod } from "../client/load-connection.js";
import { type LeaderElectionSettings, checkLeaderElection } from "../operate/lease-lock.js";
import type { SettingValue } from "../operate/setting-types.js";
import {
  CONTROLLER_SETTINGS,
  OPERATOR_SETTINGS,
  type Setting,
  type SettingValues,
  SettingsError,
  helpOf,
  mergeSettings,
  readEnvironment,
  readFlags,
  settingsOf,
} from "../operate/settings.js";
import type { RetryOptions } from "../queue/processor.js";
import type { RateLimitOptions } from "../queue/schedule-settings.js";
import type { ControllerDefinition } from "../reconcile/controller-definition.js";
import { type Operator, type OperatorOptions, createOperator } from "./operator.js";

/** Options of runOperator. */
export interface RunOperatorOptions extends Omit<OperatorOptions, "controllers" | "logLevels"> {
  /** Stops the operator when aborted, like SIGTERM. */
  readonly signal?: AbortSignal;
  /** The command-line flags. Default: those of the process */
  readonly args?: readonly string[];
}

// The process exits on its own after the stop, unless a timer or socket of user code keeps it alive for longer than this.
const EXIT_GRACE_MS = 2_000;
// The defaults of kubebuilder.
const POD_ADDRESSES = { healthProbeBindAddress: ":8081", metricsBindAddress: ":8080" };

/**
 * Runs controllers until SIGTERM, SIGINT or `signal` stops them. Resolves when all controllers have stopped; close your own resources after the call.
 * The exit code is 1 if the start failed or a reconcile did not end before the timeout. An uncaught error or unhandled rejection is logged with its
 * stack, and the process exits with code 1. A settings file, environment variables and flags override options and definitions; `--help` lists them.
 */
export async function runOperator(
  controllers: readonly ControllerDefinition[],
  options: RunOperatorOptions = {},
): Promise<void> {
  const { args = process.argv.slice(2), ...code } = options;
  const names = controllers.map(({ name }) => name);
  try {
    const settings = await loadSettings(names, args);
    if (settings.help !== undefined) return void process.stdout.write(settings.help);
    await run(controllers, code, settings);
  } catch (error) {
    // Prints all problems of the settings, one per line.
    if (!(error instanceof Error) || error.name !== "SettingsError") throw error;
    process.stderr.write(`${printableText(error.message)}\n`);
    process.exitCode = 1;
  }
}

/** Runs the controllers with the settings applied. */
async function run(
  code: readonly ControllerDefinition[],
  { signal, logger: own, ...options }: RunOperatorOptions,
  settings: LoadedSettings,
): Promise<void> {
  const controllersOf = (values: SettingValues) => code.map((each) => applyToController(values, each));
  const controllers = controllersOf(settings.values);
  const given = applyToOptions(settings.values, { ...(isInPod() ? POD_ADDRESSES : {}), ...options });
  const format = settings.values.get("logFormat") as "json" | "pretty" | undefined;
  const { logger, levels } = createLeveledLogger(own, { format });
  const first = levels.operator;
  applyToLevels(settings.values, levels, first);
  const operator = createOrReport({ ...given, controllers, logger, logLevels: levels });
  if (operator === undefined) return;
  const onChange = (values: SettingValues) => {
    applyToLevels(values, levels, first);
    for (const { name, maxConcurrentReconciles } of controllersOf(values))
      operator.controller(name).setMaxConcurrentReconciles(maxConcurrentReconciles);
  };
  const unfollow = followSettings(settings, { logger, onChange });
  const end = awaitEnd(logger, signal);
  try {
    await Promise.race([operator.start(), end.asked]);
    await end.asked;
    const finished = await operator.stop();
    logger.info({ finished }, "stopped");
    if (!finished) process.exitCode = 1;
  } catch (error) {
    logger.error({}, messageOf(error));
    process.exitCode = 1;
  } finally {
    unfollow();
    end.release();
  }
}

/** Creates an operator. If its options are invalid, logs the error and sets exit code 1. */
function createOrReport(options: OperatorOptions & { readonly logger: Logger }): Operator | undefined {
  try {
    if (options.controllers.length === 0) throw new Error("runOperator() was given no controllers; pass at least one");
    return createOperator(options);
  } catch (error) {
    options.logger.error({ stack: error instanceof Error ? error.stack : undefined }, messageOf(error));
    process.exitCode = 1;
    return undefined;
  }
}

/** Waits for a signal to stop. */
function awaitEnd(logger: Logger, signal: AbortSignal | undefined): { readonly asked: Promise<void>; release(): void } {
  let resolve = () => {};
  const asked = new Promise<void>((done) => (resolve = done));
  let isAsked = false;
  const onSignal = (name: NodeJS.Signals) => {
    // A second signal exits immediately.
    if (isAsked) process.exit(1);
    isAsked = true;
    logger.info({ signal: name }, "stopping");
    resolve();
  };
  const onAbort = () => {
    logger.info({ reason: messageOf(signal?.reason) }, "stopping");
    resolve();
  };
  const onFatal = (error: unknown) => {
    const stack = error instanceof Error ? error.stack : undefined;
    logger.error({ stack }, `uncaught error, shutting down: ${messageOf(error)}`);
    process.exit(1);
  };
  process.on("SIGTERM", onSignal).on("SIGINT", onSignal).on("uncaughtException", onFatal);
  if (signal?.aborted === true) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  return {
    asked,
    release() {
      signal?.removeEventListener("abort", onAbort);
      process.off("SIGTERM", onSignal).off("SIGINT", onSignal).off("uncaughtException", onFatal);
      // If only `signal` was aborted, the caller decides when the process exits.
      if (isAsked) setTimeout(() => process.exit(), EXIT_GRACE_MS).unref();
    },
  };
}

// Application of settings to the options of an operator and the definitions of its controllers.

type Options = Omit<OperatorOptions, "controllers">;

type StatedOptions = Partial<Omit<Options, "leaderElection">> & {
  readonly leaderElection?: LeaderElectionSettings & { readonly enabled?: boolean };
};

type StatedController = Partial<Omit<ControllerDefinition, "namespaces" | "retry" | "rateLimit">> & {
  readonly namespaces?: readonly string[];
  readonly retry?: RetryOptions;
  readonly rateLimit?: Partial<RateLimitOptions>;
};

/** Returns the options with the settings applied. */
function applyToOptions(values: SettingValues, code: Options): Options {
  const stated: StatedOptions = optionsIn(OPERATOR_SETTINGS, values);
  const { enabled, ...election } = stated.leaderElection ?? {};
  const isEnabled = enabled ?? (code.leaderElection === undefined ? isInPod() : code.leaderElection !== false);
  const leaderElection = { ...(typeof code.leaderElection === "object" && code.leaderElection), ...election };
  if (isEnabled && stated.leaderElection !== undefined) checkSettings(leaderElection);
  const watchdog = stated.watchdog && { ...code.watchdog, ...stated.watchdog };
  return { ...code, ...stated, ...(watchdog && { watchdog }), leaderElection: isEnabled && leaderElection };
}

/** Throws a SettingsError if settings and options contradict each other. */
function checkSettings(given: LeaderElectionSettings): void {
  try {
    checkLeaderElection(given);
  } catch (error) {
    throw new SettingsError([messageOf(error)]);
  }
}

/** Returns a controller with the settings applied. Throws a SettingsError if they do not fit its definition. */
function applyToController(values: SettingValues, code: ControllerDefinition): ControllerDefinition {
  const prefix = `controllers.${code.name}.`;
  const options: StatedController = optionsIn(CONTROLLER_SETTINGS, values, prefix);
  const { namespaces, retry, rateLimit, ...stated } = options;
  const watched = namespaces ?? (code.namespaces ? undefined : values.get("namespaces"));
  const limit: Partial<RateLimitOptions> = { ...(rateLimit && ownOptions(code, "rateLimit")), ...rateLimit };
  if (rateLimit !== undefined && (limit.maxReconciliations === undefined || limit.withinMs === undefined))
    throw new SettingsError([
      `${prefix}rateLimit requires both maxReconciliations and within, because the code sets neither`,
    ]);
  return {
    ...code,
    ...stated,
    ...(watched !== undefined && { namespaces: namespacesOf(watched as readonly string[]) }),
    ...(retry !== undefined && { retry: { ...ownOptions(code, "retry"), ...retry } }),
    ...(rateLimit !== undefined && { rateLimit: limit as RateLimitOptions }),
  };
}

/** Converts settings to nested options: `retry.maxInterval` becomes `{ retry: { maxIntervalMs } }`. */
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

/** Sets the log levels of the settings, and resets all others to their initial levels. */
function applyToLevels(values: SettingValues, levels: LogLevels, first: LogLevel): void {
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

/** Returns the options of `retry` or `rateLimit` in the definition. Throws if it is a custom implementation. */
function ownOptions(definition: ControllerDefinition, member: "retry" | "rateLimit"): object {
  const own: unknown = definition[member];
  const isOwn = typeof own === "function" || (typeof own === "object" && own !== null && "next" in own);
  if (isOwn)
    throw new SettingsError([
      `controllers.${definition.name}.${member} cannot be set: the code of the controller has a ${member} of its own`,
    ]);
  return own ?? {};
}

/** The settings of an operator, and how to reread them. */
interface LoadedSettings {
  readonly values: SettingValues;
  /** The output of `--help`; absent unless the flag was given. */
  readonly help?: string;
  /** Rereads the settings file; absent without a file. */
  readonly reread?: () => Promise<SettingValues>;
  readonly known: readonly Setting[];
}

/** Loads the settings of an operator from a file, the environment and flags. Throws a SettingsError with all of their problems. */
async function loadSettings(controllers: readonly string[], args: readonly string[]): Promise<LoadedSettings> {
  const { env } = process;
  const known = settingsOf(controllers);
  const flags = readFlags(known, args);
  if (flags.wantsHelp) return { values: new Map(), help: helpOf(known), known };
  const file = flags.config ?? (env["CONFIG_FILE"] || undefined);
  const environment = readEnvironment(known, env);
  const merge = (fromFile: SettingValues) => mergeSettings(fromFile, environment, flags.values);
  if (file === undefined) return { values: merge(new Map()), known };
  const { readSettingsFile } = await import("../operate/settings-file.js");
  const reread = async () => merge(await readSettingsFile(file, known));
  return { values: await reread(), reread, known };
}

/** The interval of checks for changes of the file. The kubelet takes about a minute to update a mounted ConfigMap anyway. */
const SETTINGS_INTERVAL_MS = 5_000;

interface FollowOptions {
  readonly logger: Logger;
  /** Applies changed settings that do not need a restart. */
  onChange(values: SettingValues): void;
}

/** Watches the settings file until the returned function is called. Logs changes that need a restart and invalid settings, once each. */
function followSettings(settings: LoadedSettings, { logger, onChange }: FollowOptions): () => void {
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
        logger.warn({ settings: later }, `settings changed that require a restart: ${later.join(", ")}`);
      if (live.length === 0) return;
      onChange(now);
      logger.info({ settings: live }, `applied changed settings: ${live.join(", ")}`);
    } catch (error) {
      const message = messageOf(error);
      if (message !== problem)
        logger.warn({}, `cannot reload the settings file, keeping the current settings: ${message}`);
      problem = message;
    }
  };
  const timer = setInterval(() => void look(), SETTINGS_INTERVAL_MS).unref();
  return () => clearInterval(timer);
}
