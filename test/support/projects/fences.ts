import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../repository.js";

/** A fenced code block of a document. */
export interface Fence {
  /** The path of the document. */
  readme: string;
  /** The line number of the first line of code. */
  line: number;
  /** The info string after the opening backticks; may be empty. */
  info: string;
  code: string;
}

/** Returns the fenced code blocks of a document, in order. */
export function fencesOf(readme: string, text: string): Fence[] {
  const fences: Fence[] = [];
  let open: Fence | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    if (open === undefined) {
      const info = /^```(.*)$/.exec(line)?.[1];
      if (info !== undefined) open = { readme, line: index + 2, info: info.trim(), code: "" };
    } else if (line.startsWith("```")) {
      fences.push(open);
      open = undefined;
    } else {
      open.code += `${line}\n`;
    }
  }
  return fences;
}

/** Returns the paths of the READMEs and of the pages of all packages. */
export function findDocuments(): string[] {
  const folders = readdirSync(repositoryRoot, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== "node_modules" && !entry.name.startsWith("."))
    .map(({ name }) => name);
  const readmes = ["README.md", "CONTRIBUTING.md", ...folders.map((name) => `${name}/README.md`)];
  return [...readmes.filter((path) => existsSync(join(repositoryRoot, path))), ...folders.flatMap(findGuides)];
}

function findGuides(folder: string): string[] {
  const path = join(repositoryRoot, folder, "docs");
  const names = existsSync(path) ? readdirSync(path) : [];
  return names.filter((name) => name.endsWith(".md")).map((name) => `${folder}/docs/${name}`);
}
