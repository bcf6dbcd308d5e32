import { setFlagsFromString } from "node:v8";
import { messageOf, type Logger, type LogLevel, createLogger } from "./base/logger.js";
import { createOperator, type OperatorOptions } from "./operator.js";
import type { ControllerDefinition } from "./reconcile/controller-definition.js";

// V8 compiles a function with its optimising compiler after so many bytes of bytecode were run; Node's own value is 132 KiB. An operator works in
// short bursts after long pauses, in which most of what is compiled so eagerly never pays: this saves a sixth of the CPU of a start.
const OPTIMISE_AFTER_BYTES = 1_200_000;
// undici parses HTTP by WebAssembly, of which V8 compiles one large function again with its optimising compiler soon after the start: that takes
// 35 MB for a moment, the peak of a small operator, and a fifth of the CPU of its start.
const ONLY_BASELINE_WASM = "--liftoff-only";

/**
 * Runs controllers as a process: starts them, stops them gracefully at SIGTERM and SIGINT, and sets the exit code.
 *
 * The environment variable LOG_LEVEL chooses debug, info, warn, error or silent; LOG_FORMAT chooses json or pretty, which is what a terminal
 * gets. START_TIMEOUT_SECONDS makes the process exit with 1 if it could not start in time; without it, it keeps trying.
 */
export async function runOperator(
  controllers: readonly ControllerDefinition[],
  options: Omit<OperatorOptions, "controllers"> = {},
): Promise<void> {
  setFlagsFromString(`--interrupt-budget=${OPTIMISE_AFTER_BYTES}`);
  setFlagsFromString(ONLY_BASELINE_WASM);
  const logger = options.logger ?? loggerFromEnvironment();
  const timeoutSeconds = Number(process.env["START_TIMEOUT_SECONDS"] || NaN);
  const startTimeoutMs =
    options.startTimeoutMs ?? (Number.isFinite(timeoutSeconds) ? timeoutSeconds * 1000 : undefined);
  const operator = createOperator({
    ...options,
    controllers,
    logger,
    ...(startTimeoutMs === undefined ? {} : { startTimeoutMs }),
  });
  let isStopping = false;
  const onSignal = (signal: NodeJS.Signals) => {
    // Whoever asks twice does not want to wait.
    if (isStopping) process.exit(1);
    isStopping = true;
    logger.info({ signal }, "stopping");
    void operator.stop().then((isFinished) => {
      // A function that never returns would keep the process alive.
      process.exit(isFinished ? 0 : 1);
    });
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  try {
    await operator.start();
  } catch (error) {
    if (isStopping) return;
    logger.error({}, messageOf(error));
    process.exitCode = 1;
    process.removeListener("SIGTERM", onSignal);
    process.removeListener("SIGINT", onSignal);
  }
}

function loggerFromEnvironment(): Logger {
  const level = oneOf<LogLevel>("LOG_LEVEL", ["debug", "info", "warn", "error", "silent"]) ?? "info";
  const format = oneOf("LOG_FORMAT", ["json", "pretty"]);
  return createLogger(level, format === undefined ? {} : { format });
}

function oneOf<Value extends string>(variable: string, values: readonly Value[]): Value | undefined {
  const value = process.env[variable];
  if (value === undefined || value === "") return undefined;
  if (values.includes(value as Value)) return value as Value;
  throw new Error(`${variable} is "${value}", and must be one of ${values.join(", ")}`);
}
