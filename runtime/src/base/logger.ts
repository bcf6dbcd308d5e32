import { createRequire } from "node:module";
import { inspect } from "node:util";
import pino from "pino";
import { callUnawaited } from "./promises.js";

/** Where the runtime reports what happens; a pino logger fits. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** Tells whether lines of a level are written; what nobody would read is then not put together. Default: they are. */
  isLevelEnabled?(level: string): boolean;
}

/** The levels of `createLogger`, least important first. */
export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** The level of a line. */
export type LineLevel = Exclude<LogLevel, "silent">;

/** Tells whether a logger writes the lines of a level. */
export function isWritten(logger: Logger, level: string): boolean {
  return logger.isLevelEnabled?.(level) ?? true;
}

/** Returns a logger whose lines begin with these fields; they are asked for when a line is written. */
export function withFields(logger: Logger, fieldsOf: () => object): Logger {
  const at = (level: LineLevel) => (more: object, message: string) =>
    logger[level]({ ...fieldsOf(), ...more }, message);
  const isLevelEnabled = (level: LineLevel) => isWritten(logger, level);
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error"), isLevelEnabled };
}

/** Returns a logger that writes through another one and never fails; the first failure is a warning of the process. */
export function createSafeLogger(logger: Logger): Logger {
  let hasFailed = false;
  const onFailure = (error: unknown) => {
    if (hasFailed) return;
    hasFailed = true;
    process.emitWarning(`the logger fails, and lines of the log are missing: ${messageOf(error)}`);
  };
  const at = (level: LineLevel) => (fields: object, message: string) =>
    callUnawaited(() => logger[level](fields, message), { onFailure });
  const isLevelEnabled = (level: string) => {
    try {
      return isWritten(logger, level);
    } catch (error) {
      onFailure(error);
      return true;
    }
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error"), isLevelEnabled };
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

/** How `createLogger` writes. */
export interface CreateLoggerOptions {
  /** One JSON object a line, or coloured lines for people. Default: `pretty` where standard error is a terminal */
  readonly format?: "json" | "pretty" | undefined;
  /** Takes the lines instead of standard error. */
  readonly write?: (line: string) => void;
}

/** Creates a logger on pino: JSON where a program reads it, coloured lines in a terminal. */
export function createLogger(level: LogLevel = "info", { format, write }: CreateLoggerOptions = {}): Logger {
  const isPretty = format === undefined ? write === undefined && process.stderr.isTTY : format === "pretty";
  const print = isPretty ? loadPrinter(write === undefined) : undefined;
  const writeLine = write ?? ((line: string) => void process.stderr.write(line));
  const isPlain = write === undefined && print === undefined;
  const logger = pino(
    {
      level,
      base: null,
      messageKey: "message",
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: withMessages },
    },
    // Whoever stops a process wants to see its last line, so nothing is written later than it is said.
    isPlain ? pino.destination({ dest: 2, sync: true }) : { write: (line) => writeLine(print?.(line) ?? line) },
  );
  if (format === "pretty" && print === undefined)
    logger.warn(
      {},
      "the lines of the log are JSON: format pretty needs the package pino-pretty, which is not installed",
    );
  return logger;
}

// Only somebody at a terminal needs it: a bundle comes without it.
function loadPrinter(colorize: boolean): ((line: string) => string) | undefined {
  try {
    const { prettyFactory } = createRequire(import.meta.url)("pino-pretty") as typeof import("pino-pretty");
    return prettyFactory({ colorize, messageKey: "message", translateTime: "SYS:HH:MM:ss.l" });
  } catch {
    return undefined;
  }
}

// Errors have no enumerable fields, so JSON would show them as {}.
function withMessages(fields: object): { [name: string]: unknown } {
  const written = (value: unknown) => (value instanceof Error ? messageOf(value) : value);
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, written(value)]));
}
