import { cp, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import fc from "../../../support/fast-check.js";

/** A change of a project that numbers choose. */
export interface Edit {
  readonly kind: (typeof KINDS)[number];
  /** Which file. */
  readonly file: number;
  /** Where in it. */
  readonly at: number;
  readonly insert: string;
}

const KINDS = [
  ...["insert", "insert", "insert", "cut", "word", "word", "line ends", "empty", "undo", "undo"],
  ...["delete", "copy", "rename", "folder", "link", "link outside", "add", "memory"],
] as const;

/** What means something in the files of a project, and by what it is replaced. */
const WORDS = [
  ["true", "false"],
  ["=== true", "!== true"],
  ["exposed", "exposd"],
  ["integer", "string"],
  ["required", "nullable"],
  ["dependsOn", "itemsDependOn"],
  ["ConfigMap", "Secret"],
  ["configMap", "config"],
  ["secondary", "primary"],
  ["description", "title"],
  ["webpage", "page"],
] as const;

/** A random edit. */
export const edit: fc.Arbitrary<Edit> = fc.record({
  kind: fc.constantFrom(...KINDS),
  file: fc.nat(),
  at: fc.nat(),
  insert: fc.constantFrom("x", " ", "\n", "\n\n", "}", "# ", "// ", "\u00e9", "\ufeff", "---\n", "import './x.js';\n"),
});

const MEMORY = "node_modules/.cache/gen-operator";

/** Lists the files of a project, without what it remembers. */
export async function filesOf(project: string): Promise<string[]> {
  const entries = await readdir(project, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(project, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .filter((file) => !file.startsWith("node_modules/"))
    .sort();
}

/** Changes a project; `original` is how it was at first. */
export async function applyEdit({ kind, file, at, insert }: Edit, project: string, original: string): Promise<void> {
  const files = await filesOf(project);
  const path = files[file % files.length] ?? "workflow.yaml";
  const other = files[at % files.length] ?? path;
  const absolute = join(project, path);
  const text = await readFile(absolute, "utf8").catch(() => "");
  const offset = at % (text.length + 1);
  switch (kind) {
    case "insert":
      return writeFile(absolute, text.slice(0, offset) + insert + text.slice(offset));
    case "cut":
      return writeFile(absolute, text.slice(0, offset) + text.slice(offset + 7));
    case "word": {
      const specs = files.filter((each) => /^(?:crds\/|workflow\.yaml|src\/(?!generated))/.test(each));
      const spec = join(project, specs[file % specs.length] ?? "workflow.yaml");
      const [from = "", to = ""] = WORDS[at % WORDS.length] ?? [];
      return writeFile(spec, (await readFile(spec, "utf8").catch(() => "")).replace(from, to));
    }
    case "line ends":
      return writeFile(absolute, text.replaceAll(/\r?\n/g, "\r\n"));
    case "empty":
      return writeFile(absolute, "");
    case "undo":
      await rm(absolute, { recursive: true, force: true });
      return cp(join(original, path), absolute, { recursive: true }).catch(() => undefined);
    case "delete":
      return rm(absolute);
    case "copy":
      return writeFile(absolute, await readFile(join(project, other), "utf8").catch(() => ""));
    case "rename":
      return rename(absolute, join(dirname(absolute), `renamed-${path.slice(path.lastIndexOf("/") + 1)}`));
    case "folder":
      await rm(absolute);
      return void (await mkdir(absolute));
    case "link":
      await rm(absolute);
      return symlink(relative(dirname(absolute), join(project, other)), absolute);
    case "link outside":
      await rm(absolute);
      return symlink(join(original, path), absolute);
    case "add":
      return writeFile(join(dirname(absolute), `added-${path.slice(path.lastIndexOf("/") + 1)}`), text);
    case "memory":
      return spoilMemory(join(project, MEMORY), { file, at, insert });
  }
}

async function spoilMemory(folder: string, { file, at, insert }: Omit<Edit, "kind">): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  const name = names[file % Math.max(names.length, 1)];
  if (name === undefined) return;
  const text = await readFile(join(folder, name), "utf8");
  const offset = at % (text.length + 1);
  await writeFile(join(folder, name), text.slice(0, offset) + insert + text.slice(offset + insert.length));
}
