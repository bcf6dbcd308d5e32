// Apart from what compiles patterns: whoever compiles an operator need not read the types of a library for them.
import { compilePattern, readPattern } from "./pattern.js";

/** Tells whether a text has a match of an RE2 pattern; undefined if RE2 cannot read the pattern. */
export function hasMatch(text: string, pattern: string): boolean | undefined {
  return compilePattern(pattern)?.test(text);
}

/** Returns why RE2 cannot read a pattern; undefined if it can. */
export function findPatternProblem(pattern: string): string | undefined {
  const found = readPattern(pattern);
  return typeof found === "string" ? found : undefined;
}
