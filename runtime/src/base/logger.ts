import { inspect } from "node:util";

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

/** Returns the message of anything that was thrown, with the messages of its causes. */
export function messageOf(error: unknown): string {
  return messageFrom(error, []);
}

// What the user throws may be its own cause, and need not be an error.
function messageFrom(error: unknown, outer: readonly unknown[]): string {
  const inner = [...outer, error];
  if (error instanceof AggregateError && error.errors.length > 0) {
    const parts = error.errors.flatMap((part) => (inner.includes(part) ? [] : messageFrom(part, inner)));
    // What tells its parts itself may have left out some of too many.
    if (parts[0] !== undefined && error.message.includes(parts[0])) return error.message;
    return error.message ? `${error.message}: ${parts.join("; ")}` : parts.join("; ");
  }
  if (!(error instanceof Error))
    return typeof error === "string" ? error : inspect(error, { depth: 1, breakLength: Infinity });
  const message = error.message || ("code" in error ? String(error.code) : error.name);
  if (error.cause === undefined || inner.includes(error.cause)) return message;
  const cause = messageFrom(error.cause, inner);
  return message.includes(cause) ? message : `${message}: ${cause}`;
}
