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

/** Formats a line that an operator printed: JSON of its logger becomes words, and everything else stays. */
export function formatLogLine(line: string): string {
  const fields = parseFields(line);
  if (fields === undefined) return line;
  const { level, time, message, stack, namespace, name, ...rest } = fields;
  const clock = typeof time === "string" ? `${time.slice(11, 19)} ` : "";
  const primary = typeof name === "string" ? `${typeof namespace === "string" ? `${namespace}/` : ""}${name}: ` : "";
  const shown = Object.entries(rest).filter(([field]) => !OMITTED.has(field));
  const facts = shown.map(([name, value]) => ` ${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  const trace = typeof stack === "string" ? `\n${stack}` : "";
  return `${clock}${String(level).padEnd(5)} ${primary}${String(message)}${facts.join("")}${trace}`;
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
