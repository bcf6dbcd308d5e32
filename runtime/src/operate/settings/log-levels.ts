import { isWritten, type LineLevel, type Logger, type LogLevel } from "../../base/logger.js";

const ORDER: readonly LogLevel[] = ["debug", "info", "warn", "error", "silent"];

/** Which lines are written; may change at any time. */
export interface LogLevels {
  operator: LogLevel;
  /** By the names of controllers; the level of the operator for one that has none. */
  readonly controllers: Map<string, LogLevel>;
}

/** Returns a logger that writes through another one what the levels let pass. */
export function leveledLogger(logger: Logger, levels: LogLevels): Logger {
  const isAtLeast = (level: LogLevel, least: LogLevel) => ORDER.indexOf(level) >= ORDER.indexOf(least);
  const leastFor = (fields: object) => {
    const { controller } = fields as { readonly controller?: unknown };
    return (typeof controller === "string" ? levels.controllers.get(controller) : undefined) ?? levels.operator;
  };
  const at = (level: LineLevel) => (fields: object, message: string) => {
    if (isAtLeast(level, leastFor(fields))) logger[level](fields, message);
  };
  // Whoever asks does not say for which controller.
  const isLevelEnabled = (level: string) =>
    isWritten(logger, level) &&
    [levels.operator, ...levels.controllers.values()].some((least) => isAtLeast(level as LogLevel, least));
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error"), isLevelEnabled };
}
