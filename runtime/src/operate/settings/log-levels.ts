import { createLogger, createSafeLogger, isWritten } from "../../base/logger.js";
import type { CreateLoggerOptions, LineLevel, Logger, LogLevel } from "../../base/logger.js";

/** The levels of lines, least important first. */
export const LOG_LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error", "silent"];

/** Which lines are written; may change at any time. */
export interface LogLevels {
  operator: LogLevel;
  /** By the names of controllers; the level of the operator for one that has none. */
  readonly controllers: Map<string, LogLevel>;
  /** Tells whether the logger behind them writes the lines of a level. Default: it does. */
  isWritten?(level: LogLevel): boolean;
}

/**
 * Returns the logger of an operator with levels that may change: at first `info`. What a logger of the user's writes is its own affair: all of
 * that is written, unless a level says less. Levels that are given are obeyed by that logger already.
 */
export function createLeveledLogger(
  own: Logger | undefined,
  { levels: given, format }: Pick<CreateLoggerOptions, "format"> & { readonly levels?: LogLevels | undefined } = {},
): { readonly logger: Logger; readonly levels: LogLevels } {
  if (given !== undefined) return { logger: createSafeLogger(own ?? createLogger()), levels: given };
  const behind = own ?? createLogger("debug", { format });
  const operator: LogLevel = own === undefined ? "info" : "debug";
  const isWrittenBehind = (level: LogLevel) => level === "silent" || isWritten(createSafeLogger(behind), level);
  const levels: LogLevels = { operator, controllers: new Map(), isWritten: isWrittenBehind };
  return { logger: createSafeLogger(leveledLogger(behind, levels)), levels };
}

/** Returns a logger that writes through another one what the levels let pass. */
function leveledLogger(logger: Logger, levels: LogLevels): Logger {
  const isAtLeast = (level: LogLevel, least: LogLevel) => LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(least);
  const leastFor = (fields: object) => {
    const { controller } = fields as { readonly controller?: unknown };
    return (typeof controller === "string" ? levels.controllers.get(controller) : undefined) ?? levels.operator;
  };
  // What the logger returns is passed on: a promise may be rejected.
  const at = (level: LineLevel) => (fields: object, message: string) =>
    isAtLeast(level, leastFor(fields)) ? logger[level](fields, message) : undefined;
  // Whoever asks does not say for which controller.
  const isLevelEnabled = (level: string) =>
    isWritten(logger, level) &&
    [levels.operator, ...levels.controllers.values()].some((least) => isAtLeast(level as LogLevel, least));
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error"), isLevelEnabled };
}
