// The file of settings: YAML, and so JSON as well. Only an operator with a file loads this module, and the parser with it.
import { readFile } from "node:fs/promises";
// Not by import(): in a bundle that returns nothing but the default export of a CommonJS package.
import { LineCounter, parseDocument, type Document, type Node } from "yaml";
import { SettingsError, type KnownSetting, type SettingValues } from "./settings.js";
import { readSetting, type SettingValue } from "./setting-value.js";

/** Reads a file of settings; throws a SettingsError with the line and column of everything that is wrong. */
export async function readSettingsFile(file: string, settings: readonly KnownSetting[]): Promise<SettingValues> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    throw new SettingsError([`${file}: the settings cannot be read: ${(error as Error).message}`]);
  }
  return parseSettings(text, { file, settings });
}

/** Parses what stands in a file of settings. */
export function parseSettings(
  text: string,
  { file, settings }: { readonly file: string; readonly settings: readonly KnownSetting[] },
): SettingValues {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const at = placeIn(file, lines);
  if (document.errors.length > 0)
    throw new SettingsError(document.errors.map(({ pos, message }) => `${at(pos[0])}: ${message}`));
  const reader = new FileReader(document, { settings, at });
  if (document.contents !== null) reader.read(document.contents, "");
  if (reader.problems.length > 0) throw new SettingsError(reader.problems);
  return reader.values;

  function placeIn(name: string, counter: LineCounter) {
    return (offset: number) => {
      const { line, col } = counter.linePos(offset);
      return `${name}:${line}:${col}`;
    };
  }
}

interface FileReaderOptions {
  readonly settings: readonly KnownSetting[];
  at(offset: number): string;
}

class FileReader {
  readonly values = new Map<string, SettingValue>();
  readonly problems: string[] = [];
  readonly #document: Document;
  readonly #options: FileReaderOptions;

  constructor(document: Document, options: FileReaderOptions) {
    this.#document = document;
    this.#options = options;
  }

  /** Reads a node at a path, which is a setting or leads to some. */
  read(node: Node, path: string): void {
    const { settings, at } = this.#options;
    const place = at(node.range?.[0] ?? 0);
    const value = node.toJS(this.#document) as unknown;
    const setting = settings.find(({ fullPath }) => fullPath === path);
    if (setting !== undefined) {
      try {
        this.values.set(path, readSetting(setting.type, value));
      } catch (error) {
        this.problems.push(`${place}: ${path} ${(error as Error).message}`);
      }
      return;
    }
    if (!("items" in node) || typeof value !== "object" || Array.isArray(value)) {
      // A part that is left empty sets nothing.
      if (value !== null) this.problems.push(`${place}: ${path || "the file"} has to be a map of settings`);
      return;
    }
    for (const { key, value: member } of node.items as readonly { key: Node; value: Node | null }[]) {
      const name = String(key.toJS(this.#document));
      const memberPath = path === "" ? name : `${path}.${name}`;
      const known = settings.some(({ fullPath }) => fullPath === memberPath || fullPath.startsWith(`${memberPath}.`));
      if (!known) this.problems.push(`${at(key.range?.[0] ?? 0)}: ${this.#unknown(memberPath, path)}`);
      else if (member !== null) this.read(member, memberPath);
    }
  }

  #unknown(path: string, parent: string): string {
    const prefix = parent === "" ? "" : `${parent}.`;
    const names = new Set(
      this.#options.settings.flatMap(({ fullPath }) =>
        fullPath.startsWith(prefix) ? (fullPath.slice(prefix.length).split(".")[0] ?? []) : [],
      ),
    );
    const what = parent === "controllers" ? "no controller of this operator" : "no setting";
    return `${path} is ${what}; there are ${[...names].join(", ")}`;
  }
}
