import { posix } from "node:path";
import type ts from "typescript";
import { loadLibrary } from "../../model/expression/library.js";
import { isOwnPackage, typesOf, typesOfCode } from "./own-types.js";

const compiler = loadLibrary("typescript");

/** What is parsed of libraries and the runtime, which do not change while the generator runs; half the time of a check goes there. */
const libraryFiles = new Map<string, ts.SourceFile | undefined>();

/**
 * Parses a file of a library without its comments, once: they change no type, are most of its text, and cost the compiler more than a
 * regular expression.
 */
export function parseLibrary(
  path: string,
  read: () => string | undefined,
  options: ts.ScriptTarget | ts.CreateSourceFileOptions,
): ts.SourceFile | undefined {
  if (!libraryFiles.has(path)) {
    const code = read()?.replace(/^[ \t]*\/\*\*[^]*?\*\/[ \t]*$/gm, "");
    libraryFiles.set(path, code === undefined ? undefined : compiler.createSourceFile(path, code, options));
  }
  return libraryFiles.get(path);
}

/** Returns where code finds the types of a module. A class that is declared twice would be two classes. */
export function typesSeenBy(texts: Iterable<string>): (module: string) => string {
  for (const text of texts) if (OTHER_DOOR.test(text)) return typesOf;
  return typesOfCode;
}

/** An import of the runtime that is not one of generated code. */
const OTHER_DOOR = /["']@gen-operator\/runtime(?!\/codegen["'])/;

/** The files with the types of the runtime and of the built-in kinds that were imported so far. */
const ownFiles = new Set<string>();

/** Returns the file that an import of such types leads to; undefined for any other import. Looking for it would take longer than reading it. */
export function ownFileOf(module: string, from: string, typesFor: (module: string) => string): string | undefined {
  const isBeside = module.startsWith(".") && ownFiles.has(from);
  if (!isBeside && !isOwnPackage(module)) return undefined;
  const file = isBeside ? posix.join(posix.dirname(from), module.replace(/\.js$/, ".d.ts")) : typesFor(module);
  ownFiles.add(file);
  return file;
}
