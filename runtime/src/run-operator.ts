import { printableText } from "@gen-operator/schema";
import { applyToController, applyToLevels, applyToOptions } from "./assemble/operator/apply-settings.js";
import type { OperatorOptions } from "./assemble/operator/operator-options.js";
import { messageOf, type Logger } from "./base/logger.js";
import { isInPod } from "./client/connect/load-connection.js";
import { createOperator, type Operator } from "./operator.js";
import { followSettings, loadSettings, type LoadedSettings } from "./operate/settings/load-settings.js";
import { createLeveledLogger } from "./operate/settings/log-levels.js";
import type { SettingValues } from "./operate/settings/settings.js";
import type { ControllerDefinition } from "./reconcile/controller-definition.js";

/** What a process that runs an operator may be given. */
export interface RunOperatorOptions extends Omit<OperatorOptions, "controllers" | "logLevels"> {
  /** Stops the operator when it is aborted, as SIGTERM does. */
  readonly signal?: AbortSignal;
  /** The flags. Default: those of the process. */
  readonly args?: readonly string[];
}

// After the stop the process ends by itself, unless a timer or a socket of the user's code keeps it alive.
const EXIT_GRACE_MS = 2_000;
// Where kubebuilder's operators have them.
const POD_ADDRESSES = { healthProbeBindAddress: ":8081", metricsBindAddress: ":8080" };

/**
 * Runs controllers as a process, until SIGTERM, SIGINT or `signal` asks for the end. Resolves when all is stopped; what follows the call
 * may close what the user opened. The exit code is 1 if the start failed or a reconcile did not end in time. An error that nobody
 * catches, such as that of a floating promise, is logged with its stack and ends the process with 1. What the options and the definitions say
 * is changed by a file of settings, the environment and flags, which `--help` lists.
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
    // Whoever set it wrong reads every line of it.
    if (!(error instanceof Error) || error.name !== "SettingsError") throw error;
    process.stderr.write(`${printableText(error.message)}\n`);
    process.exitCode = 1;
  }
}

/** Runs what the code has with what the settings say in its place. */
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

/** Creates an operator. What its code states and cannot be is one line of the log, and the exit code is 1. */
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

/** Waits for whoever ends the process. */
function awaitEnd(logger: Logger, signal: AbortSignal | undefined): { readonly asked: Promise<void>; release(): void } {
  let resolve = () => {};
  const asked = new Promise<void>((done) => (resolve = done));
  let isAsked = false;
  const onSignal = (name: NodeJS.Signals) => {
    // Whoever asks twice does not want to wait.
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
    logger.error({ stack }, `nobody caught an error, which ends the operator: ${messageOf(error)}`);
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
      // The process belongs to somebody else if only `signal` was aborted.
      if (isAsked) setTimeout(() => process.exit(), EXIT_GRACE_MS).unref();
    },
  };
}
