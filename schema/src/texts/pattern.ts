// Patterns of a CRD are RE2, as the API server reads them: no pattern and no text takes more than linear time, whatever V8 would make of it.
import { createRequire } from "node:module";
import type { RE2JS } from "re2js";

type Library = { readonly RE2JS: typeof RE2JS };

let library: Library | undefined;
const compiled = new Map<string, RE2JS | undefined>();

// A schema has few patterns, but a rule may take patterns from the objects that it checks.
const MOST_KEPT = 1000;

/** Tells whether a text has a match of an RE2 pattern; undefined if RE2 cannot read the pattern. */
export function hasMatch(text: string, pattern: string): boolean | undefined {
  return compilePattern(pattern)?.test(text);
}

/** Returns a pattern ready to match; undefined if RE2 cannot read the pattern. */
export function compilePattern(pattern: string): RE2JS | undefined {
  if (!compiled.has(pattern)) {
    if (compiled.size >= MOST_KEPT) compiled.clear();
    compiled.set(pattern, compile(pattern));
  }
  return compiled.get(pattern);
}

/** Returns why RE2 cannot read a pattern; undefined if it can. */
export function findPatternProblem(pattern: string): string | undefined {
  if (compilePattern(pattern) !== undefined) return undefined;
  try {
    library?.RE2JS.compile(pattern);
    return undefined;
  } catch (error) {
    return (error as Error).message.replace("error parsing regexp: ", "");
  }
}

function compile(pattern: string): RE2JS | undefined {
  library ??= loadLibrary();
  try {
    return library.RE2JS.compile(pattern);
  } catch {
    // The API server would not have accepted the CRD.
    return undefined;
  }
}

// An operator that never checks a pattern does not load the library. A bundler follows `require` alone, which a module of Node lacks.
function loadLibrary(): Library {
  return (typeof require === "function" ? require("re2js") : createRequire(import.meta.url)("re2js")) as Library;
}
