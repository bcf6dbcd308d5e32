// Patterns of schemas are in the syntax of Go's regexp (RE2): what takes them in time that grows with the text alone.
import { RE2JS, RE2JSException } from "re2js";

/** A pattern that can be understood, or what is wrong with it in Go's words. */
export type CompiledPattern = { readonly matches: (text: string) => boolean } | { readonly problem: string };

const MAX_COMPILED = 1_000;
const compiled = new Map<string, CompiledPattern>();

/** Compiles a pattern, which may match anywhere in a text. */
export function compilePattern(pattern: string): CompiledPattern {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  if (compiled.size >= MAX_COMPILED) compiled.clear();
  const result = compile(pattern);
  compiled.set(pattern, result);
  return result;
}

function compile(pattern: string): CompiledPattern {
  try {
    const expression = RE2JS.compile(pattern);
    return { matches: (text) => expression.matcher(text).find() };
  } catch (error) {
    if (error instanceof RE2JSException) return { problem: error.message };
    throw error;
  }
}
