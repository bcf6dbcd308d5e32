import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { formatDiagnostic } from "#generator/diagnostic.js";
import { generate } from "#generator/generate.js";
import { readNewCrdFiles } from "../kinds/new-crds.js";
import { repositoryRoot } from "../repository.js";
import { createTemporaryFolder } from "../temporary-folder.js";
import { fastCompiler, writeProject } from "./compile.js";
import { fencesOf, type Fence } from "./fences.js";
import { initProject } from "./new-project.js";

/** A how-to guide; the name is that of its file without `.md`. */
export interface Guide {
  readonly name: string;
  readonly text: string;
}

/** A code block whose info string contains a path in the reader's project, such as `ts src/shop/page.ts`. */
export interface GuideFile extends Fence {
  readonly language: string;
  readonly path: string;
}

/** Returns the code blocks of a guide that are files. A block without a path contains a command or its output. */
export function filesOf({ name, text }: Guide): GuideFile[] {
  return fencesOf(name, text).flatMap((fence) => {
    const [language = "", path] = fence.info.split(" ");
    return path === undefined ? [] : [{ ...fence, language, path }];
  });
}

/**
 * Follows guides, each in its own project that `init` creates for the CRD, and returns the errors of the generator and the compiler. If a guide shows
 * a file again, that is a later state of the project, and each state is checked.
 */
export async function checkGuides(guides: readonly Guide[], crd: string): Promise<string[]> {
  await using folder = await createTemporaryFolder();
  await writeProject(folder.path, [], { noUnusedLocals: false, noUnusedParameters: false });
  const base = join(folder.path, "base");
  await initProject({
    directory: base,
    crdFiles: await readNewCrdFiles(join(repositoryRoot, crd)),
    name: "shop",
  });
  const problems = await generateIn(base, "base");
  for (const guide of guides) {
    const states = statesOf(filesOf(guide));
    for (const [index, files] of states.entries()) {
      const state = `${guide.name}-${index + 1}`;
      await cp(index === 0 ? base : join(folder.path, `${guide.name}-${index}`), join(folder.path, state), {
        recursive: true,
      });
      for (const file of files) problems.push(...(await applyFile(join(folder.path, state), state, file)));
      problems.push(...(await generateIn(join(folder.path, state), state)));
    }
  }
  const compiled = fastCompiler.compile(folder.path);
  return [...problems, ...compiled.split("\n").filter((line) => line !== "")];
}

/** Splits the files of a guide into states; a state ends before a file that it already contains. */
function statesOf(files: readonly GuideFile[]): GuideFile[][] {
  const states: GuideFile[][] = [[]];
  for (const file of files) {
    const current = states.at(-1)!;
    if (current.some(({ path }) => path === file.path)) states.push([file]);
    else current.push(file);
  }
  return states;
}

async function generateIn(project: string, name: string): Promise<string[]> {
  const { diagnostics } = await generate({ project });
  return diagnostics.map((diagnostic) => `${name}/${formatDiagnostic(diagnostic)}`);
}

async function applyFile(project: string, state: string, { language, path, code }: GuideFile): Promise<string[]> {
  const file = join(project, path);
  await mkdir(dirname(file), { recursive: true });
  if (language !== "diff") {
    await writeFile(file, code);
    return [];
  }
  const text = await readFile(file, "utf8");
  const lines = code.split("\n").filter((line) => line !== "");
  const sideOf = (other: string) =>
    lines
      .filter((line) => !line.startsWith(other))
      .map((line) => line.slice(1))
      .join("\n");
  const [before, after] = [sideOf("+"), sideOf("-")];
  if (!text.includes(before)) return [`${state}: ${path} has no such lines:\n${before}`];
  await writeFile(
    file,
    text.replace(before, () => after),
  );
  return [];
}
