// Patterns of a CRD are RE2, as the API server reads them: no pattern and no text takes more than linear time, whatever V8 would make of it.
import { createRequire } from "node:module";
import type { RE2JS } from "re2js";

type Library = { readonly RE2JS: typeof RE2JS };

let library: Library | undefined;
const read = new Map<string, RE2JS | string>();

// A schema has few patterns, but a rule may take patterns from the objects that it checks.
const MOST_KEPT = 1000;

/** Returns a pattern ready to match, or why RE2 cannot read it. */
export function readPattern(pattern: string): RE2JS | string {
  const known = read.get(pattern);
  if (known !== undefined) return known;
  const found = compile(pattern);
  if (read.size >= MOST_KEPT) read.clear();
  read.set(pattern, found);
  return found;
}

/** Returns a pattern ready to match; undefined if RE2 cannot read the pattern. */
export function compilePattern(pattern: string): RE2JS | undefined {
  const found = readPattern(pattern);
  return typeof found === "string" ? undefined : found;
}

/** Returns a pattern ready to match; throws in Go's words if RE2 cannot read the pattern. */
export function patternOrThrow(pattern: string): RE2JS {
  const found = readPattern(pattern);
  if (typeof found === "string") throw new Error(`error parsing regexp: ${found}`);
  return found;
}

function compile(pattern: string): RE2JS | string {
  library ??= loadLibrary();
  try {
    return library.RE2JS.compile(pattern);
  } catch (error) {
    return (error as Error).message.replace("error parsing regexp: ", "");
  }
}

// An operator that never checks a pattern does not load the library. A bundler follows `require` alone, which a module of Node lacks.
function loadLibrary(): Library {
  return (typeof require === "function" ? require("re2js") : createRequire(import.meta.url)("re2js")) as Library;
}
