import { printableLine } from "@gen-operator/schema";

/** What the table shows, or what no person compares. */
const OMITTED = new Set([
  "controller",
  "kind",
  "uid",
  "resourceVersion",
  "generation",
  "reasons",
  "dependent",
  "resource",
]);

/**
 * Formats a line that an operator printed: JSON of its logger becomes words. All else stays, with its controls escaped. Line feeds of a message
 * and of a stack are followed by spaces, so that no text of a custom resource can look like a line of its own.
 */
export function formatLogLine(line: string): string {
  const fields = parseFields(line);
  if (fields === undefined) return printableLine(line);
  const { level, time, message, stack, namespace, name, ...rest } = fields;
  const clock = typeof time === "string" ? `${time.slice(11, 19)} ` : "";
  const primary =
    typeof name === "string" ? printableLine(`${typeof namespace === "string" ? `${namespace}/` : ""}${name}: `) : "";
  const shown = Object.entries(rest).filter(([field]) => !OMITTED.has(field));
  const facts = shown.map(
    ([name, value]) => ` ${name}=${printableLine(typeof value === "string" ? value : JSON.stringify(value))}`,
  );
  const trace = typeof stack === "string" ? `\n${indented(stack)}` : "";
  return `${printableLine(clock)}${printableLine(String(level)).padEnd(5)} ${primary}${indented(String(message)).trimStart()}${facts.join("")}${trace}`;
}

function indented(text: string): string {
  return text
    .split("\n")
    .map((line) => `    ${printableLine(line).trimStart()}`)
    .join("\n");
}

function parseFields(line: string): { readonly [field: string]: unknown } | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    const fields = JSON.parse(line) as { readonly [field: string]: unknown };
    return "level" in fields && "message" in fields ? fields : undefined;
  } catch {
    return undefined;
  }
}
