// How a manifest remembers controllers and dependents: one line for each, so that branches merge, and so that conflict markers leave the lines readable.
import type { Diagnostic } from "../../diagnostic.js";
import type { RememberedController, RememberedDependent } from "../../model/project-memory.js";
import { isRecord } from "../../model/schema/raw-schema.js";

/** The field of a manifest that remembers the dependents. */
export const MEMORY_FIELD = "dependents";

/** The field of a manifest that remembers the controllers. */
export const CONTROLLERS_FIELD = "controllers";

/** Renders what is remembered as the value of a field of the manifest. */
export function renderMemory(dependents: readonly RememberedDependent[]): string {
  const lines = dependents.map(({ controller, name, ...facts }) => {
    return `    ${JSON.stringify(`${controller}/${name}`)}: ${renderInline(facts)}`;
  });
  return renderLines(lines);
}

/** Renders the controllers as the value of a field of the manifest. */
export function renderControllers(controllers: readonly RememberedController[]): string {
  return renderLines(controllers.map(({ name, primary }) => `    ${JSON.stringify(name)}: ${JSON.stringify(primary)}`));
}

function renderLines(lines: readonly string[]): string {
  return lines.length === 0 ? "{}" : `{\n${[...new Set(lines)].sort().join(",\n")}\n  }`;
}

function renderInline(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${renderInline(each)}`);
  return `{ ${fields.join(", ")} }`;
}

/** Reads what is remembered from the text of a manifest; undefined if it has no such field. Of a text that is no JSON, lines are read. */
export function readMemory(text: string): RememberedDependent[] | undefined {
  return entriesIn(text, MEMORY_FIELD)?.flatMap(([key, facts]) => entryOf(key, facts) ?? []);
}

/** Reads the controllers that are remembered, as `readMemory` reads the dependents. */
export function readControllers(text: string): RememberedController[] | undefined {
  return entriesIn(text, CONTROLLERS_FIELD)?.flatMap(([name, primary]) => controllerOf(name, primary) ?? []);
}

function entriesIn(text: string, field: string): [key: string, value: unknown][] | undefined {
  const value = fieldOf(text, field);
  if (value === "damaged") return salvage(text, field);
  return typeof value !== "object" || value === null ? undefined : Object.entries(value);
}

function fieldOf(text: string, field: string): unknown {
  try {
    return (JSON.parse(text) as { readonly [field: string]: unknown } | null)?.[field];
  } catch {
    return "damaged";
  }
}

// A merge that is not finished leaves lines of both branches.
function salvage(text: string, field: string): [key: string, value: unknown][] | undefined {
  const start = text.indexOf(`"${field}": {`);
  if (start === -1) return undefined;
  const lines = new Set(text.slice(start).split(/\r?\n/));
  return [...lines].flatMap((line) => {
    const [, key = "", value = ""] = /^\s*"([^"]+)": (\{.*\}|"[^"]*"),?$/.exec(line) ?? [];
    try {
      return [[key, JSON.parse(value)] satisfies [string, unknown]];
    } catch {
      return [];
    }
  });
}

/** Says where a manifest is damaged, so that it may have lost entries, or has some that cannot be read. Of a merge that is not finished, the lines can be read. */
export function checkManifest(file: string, text: string): Diagnostic | undefined {
  const line = damagedLineOf(text);
  if (line === undefined) return undefined;
  return {
    severity: "error",
    rule: "damaged-record",
    message: "the file is damaged, which records the dependents of the last generation",
    position: { file, line, column: 1 },
    hint:
      "restore it from version control, or correct this line; if that is not possible, delete the file:\n" +
      "then only the stubs in src tell which dependents have left the spec",
  };
}

function damagedLineOf(text: string): number | undefined {
  try {
    return damagedEntryLineOf(text, JSON.parse(text));
  } catch {
    const lines = text.trimEnd().split("\n");
    const damaged = lines.findIndex((line) => !isWholeLine(line));
    if (damaged !== -1) return damaged + 1;
    return /^(?:\}|>{7})/.test(lines.at(-1) ?? "") ? undefined : lines.length;
  }
}

function damagedEntryLineOf(text: string, manifest: unknown): number | undefined {
  if (!isRecord(manifest)) return 1;
  const readers = [
    [CONTROLLERS_FIELD, controllerOf],
    [MEMORY_FIELD, entryOf],
  ] as const;
  const damaged = readers.flatMap(([field, read]) => {
    const memory = manifest[field];
    if (memory === undefined) return [];
    if (!isRecord(memory)) return field;
    return Object.entries(memory).find((entry) => read(...entry) === undefined)?.[0] ?? [];
  });
  const [key] = damaged;
  if (key === undefined) return undefined;
  return text.slice(0, text.lastIndexOf(`${JSON.stringify(key)}:`)).split("\n").length;
}

// A bracket, a path, an entry, or a mark of the merge.
function isWholeLine(line: string): boolean {
  if (/^\s*(?:"\w+": )?(?:[[\]{}]*|true|"[^"]*"),?\s*$|^([<|=>])\1{6}/.test(line)) return true;
  try {
    return isRecord(JSON.parse(`{${line.replace(/,\s*$/, "")}}`));
  } catch {
    return false;
  }
}

function entryOf(key: string, facts: unknown): RememberedDependent | undefined {
  const [controller, name] = key.split("/");
  if (!controller || !name || !isRecord(facts)) return undefined;
  const { resource } = facts;
  if (typeof resource !== "string" && !isRecord(resource)) return undefined;
  return { ...facts, controller, name, resource: resource as RememberedDependent["resource"] };
}

function controllerOf(name: string, primary: unknown): RememberedController | undefined {
  return name === "" || typeof primary !== "string" || !primary.includes("/") ? undefined : { name, primary };
}
