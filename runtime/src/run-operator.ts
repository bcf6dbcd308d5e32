import { createLogger, createSafeLogger, messageOf, type Logger, type LogLevel } from "./base/logger.js";
import type { OperatorOptions } from "./assemble/operator-options.js";
import { isInPod } from "./client/connect/load-connection.js";
import { createOperator } from "./operator.js";
import type { ControllerDefinition } from "./reconcile/controller-definition.js";

/** What a process that runs an operator may be given. */
export interface RunOperatorOptions extends Omit<OperatorOptions, "controllers"> {
  /** Stops the operator when it is aborted, as SIGTERM does. */
  readonly signal?: AbortSignal;
}

// Where kubebuilder's operators have them.
const POD_ADDRESSES = { healthProbeBindAddress: ":8081", metricsBindAddress: ":8080" };
// After the stop the process ends by itself, unless a timer or a socket of the user's code keeps it alive.
const EXIT_GRACE_MS = 2_000;

/**
 * Runs controllers as a process, until SIGTERM, SIGINT or `signal` asks for the end. Resolves when all is stopped; what follows the call
 * may close what the user opened. The exit code is 1 if the start failed or a reconcile did not end in time. An error that nobody
 * catches, such as that of a floating promise, is logged with its stack and ends the process with 1. The environment variable LOG_LEVEL
 * chooses debug, info, warn, error or silent; LOG_FORMAT chooses json or pretty, which is what a terminal gets. START_TIMEOUT_SECONDS gives
 * up a start that takes longer; without it, the operator keeps trying.
 */
export async function runOperator(
  controllers: readonly ControllerDefinition[],
  options: RunOperatorOptions = {},
): Promise<void> {
  const { signal, ...rest } = options;
  const logger = createSafeLogger(rest.logger ?? loggerFromEnvironment());
  const timeoutSeconds = Number(process.env["START_TIMEOUT_SECONDS"] || NaN);
  const startTimeoutMs = rest.startTimeoutMs ?? (Number.isFinite(timeoutSeconds) ? timeoutSeconds * 1000 : undefined);
  const addresses = isInPod() ? POD_ADDRESSES : {};
  const operator = createOperator({ ...addresses, ...rest, controllers, logger, startTimeoutMs });
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
    end.release();
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

function loggerFromEnvironment(): Logger {
  const level = oneOf<LogLevel>("LOG_LEVEL", ["debug", "info", "warn", "error", "silent"]);
  return createLogger(level, { format: oneOf("LOG_FORMAT", ["json", "pretty"]) });
}

function oneOf<Value extends string>(variable: string, values: readonly Value[]): Value | undefined {
  const value = process.env[variable];
  if (value === undefined || value === "") return undefined;
  if (values.includes(value as Value)) return value as Value;
  throw new Error(`${variable} is "${value}", and must be one of ${values.join(", ")}`);
}
