import { createLogger, createSafeLogger } from "../../base/logger.js";
import { createLeveledLogger, type LeveledLogger } from "../../operate/settings/log-levels.js";
import type { OperatorOptions } from "./operator-options.js";

/** Returns the logger of an operator, and the levels that its debug endpoint shows; without that endpoint no line is looked at twice. */
export function leveledLoggerOf({ logger, logLevels, debugBindAddress = "0" }: OperatorOptions): LeveledLogger {
  if (logLevels === undefined && debugBindAddress !== "0") return createLeveledLogger(logger);
  const levels = logLevels ?? { operator: "info", controllers: new Map() };
  return { logger: createSafeLogger(logger ?? createLogger()), levels };
}
