import type { Diagnostic } from "../../diagnostic.js";
import type { ProjectMemory } from "../../model/project-memory.js";
import { MANIFEST_PATH, readManifest } from "./manifest.js";
import { checkManifest } from "./manifest-memory.js";
import { readPlainFile } from "./present-file.js";

/** A file of the user's. */
interface CodeText {
  readonly file: string;
  readonly text: string;
}

/**
 * Reads what the manifest of a project remembers, or returns what is wrong with it. Where it remembers nothing, stubs are looked for in the user's
 * code, which `readCode` reads.
 */
export async function readProjectMemory(
  root: string,
  readCode: () => Promise<readonly CodeText[]>,
): Promise<ProjectMemory | Diagnostic> {
  const text = await readPlainFile(root, MANIFEST_PATH);
  const problem = text === undefined ? undefined : checkManifest(MANIFEST_PATH, text);
  if (problem !== undefined) return problem;
  const { dependents, controllers, isUnfinished } = readManifest(text);
  if (dependents !== undefined) return { dependents, ...(controllers && { controllers }), stubs: [], isUnfinished };
  return { dependents: [], stubs: (await readCode()).flatMap(stubIn) };
}

// A stub imports a type that is called after its dependent; other files in the folder do not.
function stubIn({ file, text: content }: CodeText): ProjectMemory["stubs"] {
  const [, folder, name] = /^src\/([^/]+)\/dependents\/([^/]+)\.ts$/.exec(file) ?? [];
  if (folder === undefined || name === undefined) return [];
  const [, imported = ""] =
    new RegExp(`import\\s+type\\s*\\{([^}]*)\\}\\s*from\\s*["']../../generated/${folder}/types.js["']`).exec(content) ??
    [];
  const start = name.replaceAll("-", "").toLowerCase();
  const isStub = imported
    .split(",")
    .some(
      (each) =>
        /(Desired|Dependent|IdOf|Create|Update|Delete|Fetch|External)$/.test(each.trim()) &&
        each.trim().toLowerCase().startsWith(start),
    );
  return isStub ? [{ folder, name, file }] : [];
}
