import { inspect } from "node:util";
import { callUnawaited } from "./unawaited.js";

/** Where the runtime reports what happens; a pino logger fits. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The levels of `createLogger`, least important first. */
export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** Creates a logger that adds `fields` to everything it is given. */
export function createChildLogger(logger: Logger, fields: object): Logger {
  return {
    debug: (more, message) => logger.debug({ ...fields, ...more }, message),
    info: (more, message) => logger.info({ ...fields, ...more }, message),
    warn: (more, message) => logger.warn({ ...fields, ...more }, message),
    error: (more, message) => logger.error({ ...fields, ...more }, message),
  };
}

/**
 * Returns a logger that writes through another one and never fails: a line that cannot be written must not change what happens. The first
 * failure is a warning of the process.
 */
export function createSafeLogger(logger: Logger): Logger {
  let hasFailed = false;
  const onFailure = (error: unknown) => {
    if (hasFailed) return;
    hasFailed = true;
    process.emitWarning(`the logger fails, and lines of the log are missing: ${messageOf(error)}`);
  };
  const levelOf = (level: keyof Logger) => (fields: object, message: string) =>
    callUnawaited(() => logger[level](fields, message), { onFailure });
  return { debug: levelOf("debug"), info: levelOf("info"), warn: levelOf("warn"), error: levelOf("error") };
}

/** Returns the message of anything that was thrown, with the messages of its causes; never throws. */
export function messageOf(error: unknown): string {
  try {
    return messageFrom(error, []);
  } catch {
    return "an error that cannot be read";
  }
}

// What the user throws may be its own cause, and need not be an error.
function messageFrom(error: unknown, outer: readonly unknown[]): string {
  const inner = [...outer, error];
  if (error instanceof AggregateError && error.errors.length > 0) {
    const parts = error.errors.flatMap((part) => (inner.includes(part) ? [] : messageFrom(part, inner)));
    const message = textOf(error.message);
    // What tells its parts itself may have left out some of too many.
    if (parts[0] !== undefined && message.includes(parts[0])) return message;
    return message ? `${message}: ${parts.join("; ")}` : parts.join("; ");
  }
  if (!(error instanceof Error)) return textOf(error);
  const message = textOf(error.message) || ("code" in error ? String(error.code) : error.name);
  if (error.cause === undefined || inner.includes(error.cause)) return message;
  const cause = messageFrom(error.cause, inner);
  return message.includes(cause) ? message : `${message}: ${cause}`;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : inspect(value, { depth: 1, breakLength: Infinity });
}
