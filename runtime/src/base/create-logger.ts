import { createRequire } from "node:module";
import pino from "pino";
import { messageOf, type Logger, type LogLevel } from "./logger.js";

/** How `createLogger` writes. */
export interface CreateLoggerOptions {
  /** One JSON object a line, or colours and columns for people; `pretty` where standard error is a terminal unless given. */
  readonly format?: "json" | "pretty";
  /** Takes the lines instead of standard error. */
  readonly write?: (line: string) => void;
}

// Whoever stops a process wants to see its last line, so nothing is written later than it is said.
const STANDARD_ERROR = { dest: 2, sync: true } as const;

/** Creates a logger on pino: JSON where a program reads it, columns in a terminal. */
export function createLogger(level: LogLevel = "info", { format, write }: CreateLoggerOptions = {}): Logger {
  const settings = {
    level,
    base: null,
    messageKey: "message",
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  const isPretty = format === undefined ? write === undefined && process.stderr.isTTY : format === "pretty";
  const print = isPretty ? createPrinter({ colorize: write === undefined }) : undefined;
  const logger = pino(settings, destinationOf(write, print));
  return {
    debug: (fields, message) => logger.debug(plainOf(fields), message),
    info: (fields, message) => logger.info(plainOf(fields), message),
    warn: (fields, message) => logger.warn(plainOf(fields), message),
    error: (fields, message) => logger.error(plainOf(fields), message),
  };
}

type Print = (line: string) => string;

// Only somebody at a terminal needs it; an operator bundled into one file comes without it, and then writes JSON.
function createPrinter({ colorize }: { colorize: boolean }): Print | undefined {
  try {
    const { prettyFactory } = createRequire(import.meta.url)("pino-pretty") as typeof import("pino-pretty");
    return prettyFactory({ colorize, messageKey: "message", translateTime: "SYS:HH:MM:ss.l" }) as Print;
  } catch {
    return undefined;
  }
}

function destinationOf(write: ((line: string) => void) | undefined, print: Print | undefined): pino.DestinationStream {
  if (write === undefined && print === undefined) return pino.destination(STANDARD_ERROR);
  const writeLine = write ?? ((line: string) => void process.stderr.write(line));
  return { write: print === undefined ? writeLine : (line) => writeLine(print(line)) };
}

// Errors have no enumerable fields, so JSON would show them as {}.
function plainOf(fields: object): object {
  for (const value of Object.values(fields)) if (value instanceof Error) return withMessages(fields);
  return fields;
}

function withMessages(fields: object): object {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key, value instanceof Error ? messageOf(value) : value]),
  );
}
