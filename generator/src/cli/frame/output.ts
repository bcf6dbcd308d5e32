// The only file of the generator that writes to a terminal. What commands print has names, messages and answers of servers in it, which other
// people wrote, so every control and invisible character is escaped, but for the styles that commands paint with.
import { inspect } from "node:util";
import { printableJson, printableLine, printableText } from "@gen-operator/schema";

/** How a text stands out. */
export const STYLES = ["red", "green", "yellow", "cyan", "dim", "bold"] as const;

const SEQUENCES = STYLES.flatMap((style) => inspect.colors[style] ?? []).map((code) => `\u001b[${code}m`);
const STYLED = new RegExp(`(${[...new Set(SEQUENCES)].map((text) => text.replace("[", "\\[")).join("|")})`);

/** Writes a line to standard output; a line feed in it is escaped. */
export function printLine(text: string): void {
  process.stdout.write(`${escapeBetweenStyles(text, printableLine)}\n`);
}

/** Writes lines to standard output as they are: a text, a patch, a diagram. */
export function printLines(text: string): void {
  process.stdout.write(escapeBetweenStyles(text, printableText));
}

/** Writes a value to standard output as JSON. */
export function printJson(value: unknown): void {
  process.stdout.write(`${printableJson(JSON.stringify(value, undefined, 2))}\n`);
}

/** Writes lines to standard error. Lines of a message that belong together are indented by those who format it. */
export function printErrorLines(text: string): void {
  process.stderr.write(`${escapeBetweenStyles(text, printableText)}\n`);
}

/** Writes to the terminal of `dev`, whose table moves the cursor and escapes what it shows. */
export function writeTable(text: string): void {
  process.stdout.write(text);
}

function escapeBetweenStyles(text: string, escape: (text: string) => string): string {
  // Every second part is a style.
  return text
    .split(STYLED)
    .map((part, index) => (index % 2 === 1 ? part : escape(part)))
    .join("");
}
