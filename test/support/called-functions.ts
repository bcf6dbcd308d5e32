import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { repositoryRoot } from "./repository.js";

/** V8's coverage of a script (precise coverage). */
export interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly {
    readonly functionName: string;
    readonly ranges: readonly { readonly count: number }[];
  }[];
}

const PACKAGES = /^(?:apiserver|generator|kinds|runtime|schema|templates)\/(?:dist|bin)\//;

/**
 * Returns the names of the called functions of our packages, by compiled file relative to `root`. The names of anonymous functions and of the module
 * itself are empty.
 */
export function calledFunctions(
  scripts: readonly ScriptCoverage[],
  root = repositoryRoot,
): ReadonlyMap<string, readonly string[]> {
  const files = new Map<string, readonly string[]>();
  for (const { url, functions } of scripts) {
    const file = url.startsWith("file:") ? relative(root, fileURLToPath(url)) : "";
    if (!PACKAGES.test(file)) continue;
    const called = functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0);
    if (called.length === 0) continue;
    files.set(file, [...(files.get(file) ?? []), ...called.map(({ functionName }) => functionName)]);
  }
  return files;
}
