import { createRequire } from "node:module";
import { inspect } from "node:util";
import { printableJson, printableLine, truncateText } from "@gen-operator/schema";
import pino from "pino";
import { callUnawaited } from "./user-calls.js";

/** The logger that the runtime writes to. A pino logger can be used. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** Returns whether lines of a level are written, so that the others need not be built. Default: all lines are written. */
  isLevelEnabled?(level: string): boolean;
}

/** The log levels of `createLogger`, in increasing severity. */
export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** All log levels, in increasing severity. */
export const LOG_LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error", "silent"];

/** The level of a single log line. */
export type LineLevel = Exclude<LogLevel, "silent">;

/** Returns whether a logger writes lines of a level. */
export function isWritten(logger: Logger, level: string): boolean {
  return logger.isLevelEnabled?.(level) ?? true;
}

/** Returns a logger that adds fields to the start of each line. `fieldsOf` is called when a line is written. */
export function withFields(logger: Logger, fieldsOf: () => object): Logger {
  const at = (level: LineLevel) => (more: object, message: string) =>
    logger[level]({ ...fieldsOf(), ...more }, message);
  const isLevelEnabled = (level: LineLevel) => isWritten(logger, level);
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error"), isLevelEnabled };
}

/**
 * Returns a logger that writes through another one and never throws; the first failure is reported as a process warning. Messages and strings of more
 * than 4096 characters are truncated at any depth of the fields, and so are lines with too many fields: otherwise, anyone who can write a custom
 * resource could fill up the log.
 */
export function createSafeLogger(logger: Logger): Logger {
  let hasFailed = false;
  const onFailure = (error: unknown) => {
    if (hasFailed) return;
    hasFailed = true;
    process.emitWarning(`logger failed, log lines are lost: ${messageOf(error)}`);
  };
  const at = (level: LineLevel) => (fields: object, message: string) =>
    callUnawaited(() => logger[level](new Truncation().of(fields) as object, truncateText(message)), { onFailure });
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

const MOST_ITEMS = 100;
// A pod template is about ten levels deep. Deeper values are not Kubernetes objects.
const MOST_DEPTH = 20;
const MOST_VALUES = 5_000;
const MOST_CHARACTERS = 16 * 4096;

/** Copies the fields of one log line, with truncated strings and lists. Both the total size of the line and the time to copy it are limited. */
class Truncation {
  #values = MOST_VALUES;
  #characters = MOST_CHARACTERS;

  /** Returns the truncated value of a field, or the same value if nothing in it is too long. */
  of(value: unknown, outer: readonly object[] = []): unknown {
    this.#values--;
    if (typeof value === "string") return this.#text(value);
    if (typeof value !== "object" || value === null) return value;
    if (value instanceof Error) return messageOf(value).length < value.message.length ? messageOf(value) : value;
    if (ArrayBuffer.isView(value)) return value.byteLength > MOST_SHORT ? `… ${value.byteLength} bytes` : value;
    // Values that serialize themselves, such as dates.
    if ("toJSON" in value) return value;
    if (outer.includes(value)) return "[Circular]";
    if (outer.length > MOST_DEPTH || this.#values <= 0) return "…";
    const inner = [...outer, value];
    if (Array.isArray(value)) {
      const items: unknown[] = value.slice(0, MOST_ITEMS).map((item) => this.of(item, inner));
      if (value.length > MOST_ITEMS) return [...items, `… ${value.length - MOST_ITEMS} more`];
      return items.every((item, index) => item === value[index]) ? value : items;
    }
    return this.#object(value, inner);
  }

  #object(value: object, inner: readonly object[]): unknown {
    const entries = Object.entries(value);
    const members: (readonly [string, unknown])[] = [];
    for (const [key, member] of entries) {
      if (this.#values <= 0) break;
      members.push([key, this.of(member, inner)]);
    }
    const isSame = members.length === entries.length && members.every(([, now], at) => now === entries[at]![1]);
    if (isSame) return value;
    const left = entries.length - members.length;
    return Object.fromEntries(left === 0 ? members : [...members, ["…", `${left} more`]]);
  }

  #text(text: string): string {
    if (this.#characters <= 0 && text.length > MOST_SHORT) return `… ${text.length} more`;
    this.#characters -= text.length;
    return truncateText(text);
  }
}

/** Strings up to this length, such as names and numbers, are kept even if the line exceeds its limit. */
const MOST_SHORT = 64;

/** Returns the message of any thrown value, including the messages of its causes, truncated to 4096 characters. Never throws. */
export function messageOf(error: unknown): string {
  try {
    return truncateText(messageFrom(error, []));
  } catch {
    return "an error that cannot be read";
  }
}

// A value that user code throws may be its own cause and need not be an Error.
function messageFrom(error: unknown, outer: readonly unknown[]): string {
  const inner = [...outer, error];
  if (error instanceof AggregateError && error.errors.length > 0) {
    const parts = error.errors.flatMap((part) => (inner.includes(part) ? [] : messageFrom(part, inner)));
    const message = textOf(error.message);
    // A message that already lists its parts may have omitted some of them on purpose.
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
  return truncateText(typeof value === "string" ? value : inspect(value, { depth: 1, breakLength: Infinity }));
}

/** Options of createLogger. */
export interface CreateLoggerOptions {
  /** One JSON object per line, or colored lines for people. Default: `pretty` if standard error is a terminal */
  readonly format?: "json" | "pretty" | undefined;
  /** Receives the lines instead of standard error. */
  readonly write?: (line: string) => void;
}

/** Creates a pino logger: JSON lines for programs, colored lines for a terminal. */
export function createLogger(level: LogLevel = "info", { format, write }: CreateLoggerOptions = {}): Logger {
  const isPretty = format === undefined ? write === undefined && process.stderr.isTTY : format === "pretty";
  const print = isPretty ? loadPrinter(write === undefined) : undefined;
  // Unbuffered, so that the last line before the process exits is written.
  const destination =
    write === undefined && print === undefined ? pino.destination({ dest: 2, sync: true }) : undefined;
  const writeLine =
    write ?? ((line: string) => void (destination === undefined ? process.stderr : destination).write(line));
  const logger = pino(
    {
      level,
      base: null,
      messageKey: "message",
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: withMessages },
    },
    { write: (line) => writeLine(print?.(printableFields(line)) ?? printableJson(line)) },
  );
  if (format === "pretty" && print === undefined)
    logger.warn(
      {},
      "the lines of the log are JSON: format pretty needs the package pino-pretty, which is not installed",
    );
  return logger;
}

/** Returns a JSON line that is safe to print on a terminal. Text after a line feed is indented, so that it cannot look like a line of its own. */
function printableFields(line: string): string {
  return JSON.stringify(printable(JSON.parse(line)));
}

function printable(value: unknown): unknown {
  if (typeof value === "string") return value.split("\n").map(printableLine).join("\n    ");
  if (Array.isArray(value)) return value.map(printable);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [printableLine(key), printable(member)]));
}

// Only needed on a terminal, so it is not part of a bundle.
function loadPrinter(colorize: boolean): ((line: string) => string) | undefined {
  try {
    const { prettyFactory } = createRequire(import.meta.url)("pino-pretty") as typeof import("pino-pretty");
    return prettyFactory({ colorize, messageKey: "message", translateTime: "SYS:HH:MM:ss.l" });
  } catch {
    return undefined;
  }
}

// The properties of errors are not enumerable, so JSON would print them as {}.
function withMessages(fields: object): { [name: string]: unknown } {
  const written = (value: unknown) => (value instanceof Error ? messageOf(value) : value);
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, written(value)]));
}

/** Log levels. They can be changed at any time. */
export interface LogLevels {
  operator: LogLevel;
  /** By name of the controller. Other controllers use the level of the operator. */
  readonly controllers: Map<string, LogLevel>;
  /** Returns whether the underlying logger writes lines of a level. Default: it writes all. */
  isWritten?(level: LogLevel): boolean;
}

/**
 * Returns the logger of an operator, with levels that can be changed. The initial level is `info`; with a logger of the user it is `debug`, so that
 * this logger decides which lines are written. If levels are given, the user's logger already applies them.
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

/** Returns a logger that passes on the lines that the levels permit. */
function leveledLogger(logger: Logger, levels: LogLevels): Logger {
  const isAtLeast = (level: LogLevel, least: LogLevel) => LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(least);
  const leastFor = (fields: object) => {
    const { controller } = fields as { readonly controller?: unknown };
    return (typeof controller === "string" ? levels.controllers.get(controller) : undefined) ?? levels.operator;
  };
  // Returns the result of the user's logger, which may be a promise that rejects.
  const at = (level: LineLevel) => (fields: object, message: string) =>
    isAtLeast(level, leastFor(fields)) ? logger[level](fields, message) : undefined;
  // The caller does not pass a controller, so a line may be written if any controller permits its level.
  const isLevelEnabled = (level: string) =>
    isWritten(logger, level) &&
    [levels.operator, ...levels.controllers.values()].some((least) => isAtLeast(level as LogLevel, least));
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error"), isLevelEnabled };
}
