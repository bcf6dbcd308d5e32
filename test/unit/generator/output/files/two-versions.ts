import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { GENERATED_HEADER, type OutputFile } from "#generator/emit/output-file.js";

const generated = (path: string, text: string): OutputFile => ({
  path,
  owner: "generator",
  content: `${GENERATED_HEADER}\n${text}`,
});
const stub = (path: string): OutputFile => ({ path, owner: "user", content: `// yours: ${path}\n` });

/** The files of a project before a change of its spec. */
export const OLD: readonly OutputFile[] = [
  generated("src/generated/index.ts", "old"),
  generated("src/generated/gone/deep/a.ts", "old"),
  generated("src/generated/gone/b.ts", "old"),
  generated("src/generated/same.ts", "same"),
  stub("src/thing/old.ts"),
];

/** The files of the project after the change: one is changed, two are gone, some are new, in folders that are new. */
export const NEW: readonly OutputFile[] = [
  generated("src/generated/index.ts", "new"),
  generated("src/generated/added/deep/c.ts", "new"),
  generated("src/generated/same.ts", "same"),
  generated("deploy/generated/rbac.yaml", "new"),
  stub("src/thing/old.ts"),
  stub("src/added/stub.ts"),
];

/** Reads a folder: the text of each file, and the empty folders, by path. */
export async function snapshot(folder: string): Promise<{ readonly [path: string]: string }> {
  const found: Record<string, string> = {};
  const visit = async (path: string): Promise<void> => {
    const entries = await readdir(join(folder, path), { withFileTypes: true });
    if (entries.length === 0) found[`${path}/`] = "empty";
    for (const entry of entries) {
      const inner = path === "" ? entry.name : `${path}/${entry.name}`;
      if (entry.isDirectory()) await visit(inner);
      else found[inner] = await readFile(join(folder, inner), "utf8");
    }
  };
  await visit("");
  return found;
}
