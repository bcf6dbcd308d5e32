import { posix } from "node:path";
import type { MemoryFile } from "./condition-program.js";

/** Returns the files whose types the files of some paths can see, and those files themselves. */
export function filesSeenFrom(paths: readonly string[], files: ReadonlyMap<string, MemoryFile>): MemoryFile[] {
  const seen = new Map<string, MemoryFile>();
  const visit = (each: string): void => {
    const file = files.get(each);
    if (file === undefined || seen.has(each)) return;
    // Schemas are long, and no type comes from them.
    const isSchema = each.startsWith("src/generated/") && each.endsWith(".schema.ts");
    seen.set(each, isSchema ? { path: each, content: "export {};" } : file);
    // A class sees nothing but its schema, so that of an earlier run need not be made.
    if (isSchema || (file.digest !== undefined && each.startsWith("src/generated/resources/"))) return;
    for (const [, specifier = ""] of file.content.matchAll(IMPORT))
      visit(posix.join(posix.dirname(each), specifier).replace(/\.(m?)js$/, ".$1ts"));
  };
  for (const path of paths) visit(path);
  return [...seen.values()];
}

const IMPORT = /\b(?:from|import)\s*\(?\s*["'](\.[^"'\n]*)["']/g;
