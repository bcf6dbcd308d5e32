// The settings file, in YAML or JSON. Only an operator with a settings file loads this module and the YAML parser.
import { readFile } from "node:fs/promises";
import { LineCounter, type Node, parseDocument } from "yaml";
import { type SettingValue, readSetting } from "./setting-types.js";
import { type Setting, type SettingValues, SettingsError, collectProblem } from "./settings.js";

// A static import: in a bundle, import() returns only the default export of a CommonJS package.

/** Reads a settings file. Throws a SettingsError with the line and column of each problem. */
export async function readSettingsFile(file: string, settings: readonly Setting[]): Promise<SettingValues> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    throw new SettingsError([`${file}: the settings cannot be read: ${(error as Error).message}`]);
  }
  return parseSettings(text, { file, settings });
}

export function parseSettings(
  text: string,
  { file, settings }: { readonly file: string; readonly settings: readonly Setting[] },
): SettingValues {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const at = (offset = 0) => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  if (document.errors.length > 0)
    throw new SettingsError(document.errors.map(({ pos, message }) => `${at(pos[0])}: ${message}`));
  const values = new Map<string, SettingValue>();
  const problems: string[] = [];
  /** Reads the node at a path: a setting, or a map of settings. */
  const read = (node: Node, path: string): void => {
    const place = at(node.range?.[0]);
    const value = node.toJS(document) as unknown;
    const setting = settings.find((each) => each.path === path);
    if (setting !== undefined)
      return collectProblem(problems, `${place}: ${path}`, () => values.set(path, readSetting(setting.type, value)));
    if (!("items" in node) || typeof value !== "object" || Array.isArray(value)) {
      // An empty map sets nothing.
      if (value !== null) problems.push(`${place}: ${path || "the file"} has to be a map of settings`);
      return;
    }
    for (const { key, value: member } of node.items as readonly { key: Node; value: Node | null }[]) {
      const memberPath = `${path === "" ? "" : `${path}.`}${String(key.toJS(document))}`;
      const isKnown = settings.some((each) => `${each.path}.`.startsWith(`${memberPath}.`));
      if (!isKnown) problems.push(`${at(key.range?.[0])}: ${unknownIn(path, memberPath, settings)}`);
      else if (member !== null) read(member, memberPath);
    }
  };
  // Throws for an unresolved alias.
  if (document.contents !== null) collectProblem(problems, `${file}:`, () => read(document.contents!, ""));
  if (problems.length > 0) throw new SettingsError(problems);
  return values;
}

function unknownIn(parent: string, path: string, settings: readonly Setting[]): string {
  const prefix = parent === "" ? "" : `${parent}.`;
  const below = settings.filter((each) => each.path.startsWith(prefix));
  const names = new Set(below.map((each) => each.path.slice(prefix.length).split(".")[0]));
  const what = parent === "controllers" ? "no controller of this operator" : "no setting";
  return `${path} is ${what}; must be one of ${[...names].join(", ")}`;
}
