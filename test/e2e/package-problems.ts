import { readFile } from "node:fs/promises";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";

/** Returns what publint and "are the types wrong" say of a packed package; nothing if it is all right. */
export async function findPackageProblems(archive: string): Promise<string[]> {
  const bytes = new Uint8Array(await readFile(archive));
  const { messages, pkg } = await publint({ pack: { tarball: bytes.buffer }, level: "suggestion", strict: true });
  const result = await checkPackage(createPackageFromTarballData(bytes));
  const problems = (result.types === false ? [] : result.problems).filter(
    (problem) => !("resolutionKind" in problem && OTHER_MODULES.has(problem.resolutionKind)),
  );
  return [
    ...messages.map((message) => `publint: ${formatMessage(message, pkg, { color: false })}`),
    ...problems.map((problem) => `attw: ${JSON.stringify(problem)}`),
  ];
}

// The packages are ES modules alone: node10 knows none, and node16-cjs asks for CommonJS modules. This is the profile "esm-only" of attw.
const OTHER_MODULES: ReadonlySet<string> = new Set(["node10", "node16-cjs"]);
