// How a manifest remembers dependents: one line for each, so that branches merge, and so that conflict markers leave the lines readable.
import type { RememberedDependent } from "../../model/project-memory.js";

/** The field of a manifest that remembers the dependents. */
export const MEMORY_FIELD = "dependents";

/** Renders what is remembered as the value of a field of the manifest. */
export function renderMemory(dependents: readonly RememberedDependent[]): string {
  const lines = dependents.map(({ controller, name, ...facts }) => {
    return `    ${JSON.stringify(`${controller}/${name}`)}: ${renderInline(facts)}`;
  });
  return lines.length === 0 ? "{}" : `{\n${[...new Set(lines)].sort().join(",\n")}\n  }`;
}

function renderInline(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${renderInline(each)}`);
  return `{ ${fields.join(", ")} }`;
}

/** Reads what is remembered from the text of a manifest; undefined if it has no such field. Of a text that is no JSON, lines are read. */
export function readMemory(text: string): RememberedDependent[] | undefined {
  const field = fieldOf(text);
  if (field === "damaged") return salvage(text);
  if (typeof field !== "object" || field === null) return undefined;
  return Object.entries(field).flatMap(([key, facts]) => entryOf(key, facts) ?? []);
}

function fieldOf(text: string): unknown {
  try {
    return (JSON.parse(text) as { readonly [MEMORY_FIELD]?: unknown } | null)?.[MEMORY_FIELD];
  } catch {
    return "damaged";
  }
}

// A merge that is not finished leaves lines of both branches.
function salvage(text: string): RememberedDependent[] | undefined {
  const start = text.indexOf(`"${MEMORY_FIELD}": {`);
  if (start === -1) return undefined;
  const lines = new Set(text.slice(start).split(/\r?\n/));
  return [...lines].flatMap((line) => {
    const [, key, facts] = /^\s*"([^"/]+\/[^"/]+)": (\{.*\}),?$/.exec(line) ?? [];
    try {
      return entryOf(key ?? "", JSON.parse(facts ?? "null")) ?? [];
    } catch {
      return [];
    }
  });
}

function entryOf(key: string, facts: unknown): RememberedDependent | undefined {
  const [controller, name] = key.split("/");
  const known = facts as Partial<RememberedDependent> | null;
  if (controller === undefined || name === undefined || known?.resource === undefined) return undefined;
  return { ...known, controller, name, resource: known.resource };
}
