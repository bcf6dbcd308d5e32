import { readFile, readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { slashed } from "../../diagnostic.js";

const root = new URL("./", import.meta.resolve("@gen-operator/templates/package.json"));

/** What replaces the placeholders of a template: `__Primary__` by `Primary`. */
export type Replacements = { readonly [placeholder: string]: string };

/** Reads a template and replaces its placeholders. A placeholder without a replacement is a bug. */
export async function renderTemplate(path: string, replacements: Replacements): Promise<string> {
  const text = await readFile(new URL(path, root), "utf8");
  return text.replace(/__([A-Za-z]+?)__/g, (placeholder, name: string) => {
    const value = Object.hasOwn(replacements, name) ? replacements[name] : undefined;
    if (value === undefined)
      throw new Error(`the template ${path} has the placeholder ${placeholder}, which nothing replaces`);
    return value;
  });
}

/** Returns the names of the templates in a folder. */
export async function listTemplates(folder: string): Promise<ReadonlySet<string>> {
  return new Set(await readdir(fileURLToPath(new URL(`${folder}/`, root))));
}

/** Returns the paths of all templates below a folder, beginning with its name. */
export async function listTemplatesBelow(folder: string): Promise<readonly string[]> {
  const start = fileURLToPath(root);
  const entries = await readdir(join(start, folder), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  return files.map((file) => slashed(relative(start, file))).sort();
}
