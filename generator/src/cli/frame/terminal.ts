import { inspect } from "node:util";
import { printableLine } from "@gen-operator/schema";
import type { STYLES } from "./output.js";

/** A stream that may be a terminal. */
export interface Output {
  readonly isTTY?: boolean;
}

/** How a text stands out. */
export type Style = (typeof STYLES)[number];

/** Returns a function that paints texts for a stream, or leaves them as they are where colours are not wanted. */
export function painterFor(stream: Output): (style: Style, text: string) => string {
  if (!showsColours(stream)) return (_, text) => text;
  return (style, text) => {
    const [start, end] = inspect.colors[style] ?? [0, 0];
    return `\u001b[${start}m${text}\u001b[${end}m`;
  };
}

/**
 * Tells whether a stream gets colours: if it is a terminal, unless `NO_COLOR` is set; in any case if `FORCE_COLOR` is set, but for `0` and `false`.
 *
 * https://no-color.org and https://nodejs.org/api/cli.html#force_color1-2-3
 */
export function showsColours({ isTTY = false }: Output, env: NodeJS.ProcessEnv = process.env): boolean {
  const { FORCE_COLOR: forced, NO_COLOR: refused = "", TERM: terminal } = env;
  if (forced !== undefined) return forced !== "0" && forced !== "false";
  return isTTY && refused === "" && terminal !== "dumb";
}

/** A line on a terminal that says what a command is doing. */
export interface ProgressLine {
  /** Shows a step in place of the one before. */
  report(step: string): void;
  /** Removes the line, so that something else can be printed. */
  clear(): void;
}

// Whatever is faster needs no line that flickers.
const QUIET_MS = 200;

/** Creates a line of progress; it writes nothing where standard error is no terminal, and nothing about what is done in a moment. */
export function createProgressLine(
  stream: Output & { write(text: string): unknown } = process.stderr,
  now: () => number = () => performance.now(),
): ProgressLine {
  const isShown = stream.isTTY === true && process.env["TERM"] !== "dumb";
  const startedAt = now();
  let isWritten = false;
  return {
    report(step) {
      if (!isShown || now() - startedAt < QUIET_MS) return;
      isWritten = true;
      stream.write(`\r\u001b[K${printableLine(step)} …`);
    },
    clear() {
      if (isWritten) stream.write("\r\u001b[K");
      isWritten = false;
    },
  };
}

/** Runs what may take long with a line of progress, which is gone when this returns. */
export async function withProgress<Result>(run: (onStep: (step: string) => void) => Promise<Result>): Promise<Result> {
  const line = createProgressLine();
  try {
    return await run(line.report);
  } finally {
    line.clear();
  }
}
