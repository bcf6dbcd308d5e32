import { posix } from "node:path";
import type ts from "typescript";
import { loadLibrary } from "../../model/expression/library.js";
import type { MemoryFile } from "../conditions/condition-program.js";
import { ownFileOf, parseLibrary, typesSeenBy } from "../conditions/library-files.js";

/** The code of a project with its types. */
export interface ProjectProgram {
  readonly checker: ts.TypeChecker;
  /** Returns a file by its path in the project. */
  fileAt(path: string): ts.SourceFile | undefined;
}

const compiler = loadLibrary("typescript");

/** How a project without tsconfig.json is compiled. */
const DEFAULTS: ts.CompilerOptions = {
  target: compiler.ScriptTarget.ES2022,
  lib: ["lib.es2023.d.ts", "lib.esnext.disposable.d.ts"],
  module: compiler.ModuleKind.NodeNext,
  strict: true,
};

/**
 * Compiles code of a project: the given files as they are after the run, the types of the runtime and of the built-in kinds that the
 * generator came with, and the packages that the project has installed. What is not installed has the type `any`.
 */
export function createProjectProgram(
  root: string,
  files: readonly MemoryFile[],
  imported: readonly string[],
): ProjectProgram {
  const folder = root.replaceAll("\\", "/").replace(/\/$/, "");
  const pathOf = (path: string) => `${folder}/${path}`;
  const options = readOptions(folder);
  const host = createHost(folder, new Map(files.map((file) => [pathOf(file.path), file])), options);
  const known = new Set(files.map(({ path }) => path));
  const program = compiler.createProgram(imported.filter((path) => known.has(path)).map(pathOf), options, host);
  return { checker: program.getTypeChecker(), fileAt: (path) => program.getSourceFile(pathOf(path)) };
}

function readOptions(folder: string): ts.CompilerOptions {
  const file = `${folder}/tsconfig.json`;
  // Which files it includes does not matter, and takes a while to find out.
  const system = { ...compiler.sys, readDirectory: () => [] };
  const stated = compiler.sys.fileExists(file)
    ? compiler.parseJsonSourceFileConfigFileContent(compiler.readJsonConfigFile(file, system.readFile), system, folder)
        .options
    : DEFAULTS;
  return { ...stated, noEmit: true, skipLibCheck: true, libReplacement: false, composite: false, incremental: false };
}

function createHost(
  folder: string,
  files: ReadonlyMap<string, MemoryFile>,
  options: ts.CompilerOptions,
): ts.CompilerHost {
  const host = compiler.createCompilerHost(options, true);
  const { fileExists, readFile, directoryExists } = host;
  const cache = compiler.createModuleResolutionCache(folder, (path) => path, options);
  const typesFor = typesSeenBy(
    [...files.values()].flatMap(({ digest, content }) => (digest === undefined ? [content] : [])),
  );
  // What is on disk there may be older than what this run writes.
  const isOutdated = (path: string) => path.startsWith(`${folder}/src/generated/`) && !files.has(path);
  const libraries = posix.dirname(host.getDefaultLibFileName(options).replaceAll("\\", "/"));
  const own = new Set<string>();
  return Object.assign(host, {
    getCurrentDirectory: () => folder,
    getModuleResolutionCache: () => cache,
    jsDocParsingMode: compiler.JSDocParsingMode.ParseNone,
    // The folders of files that are still to be written may be missing.
    directoryExists: (path: string) => path.startsWith(`${folder}/src`) || directoryExists?.(path) !== false,
    fileExists: (path: string) => files.has(path) || (!isOutdated(path) && fileExists(path)),
    readFile: (path: string) => files.get(path)?.content ?? readFile(path),
    getSourceFile: (path: string, target: ts.ScriptTarget | ts.CreateSourceFileOptions) => {
      const file = files.get(path);
      if (file !== undefined) return compiler.createSourceFile(path, file.content, target, true);
      if (isOutdated(path)) return undefined;
      if (own.has(path) || posix.dirname(path) === libraries) return parseLibrary(path, () => readFile(path), target);
      const text = readFile(path);
      return text === undefined ? undefined : compiler.createSourceFile(path, text, target);
    },
    resolveModuleNameLiterals: (
      literals: readonly ts.StringLiteralLike[],
      containingFile: string,
      ...rest: [ts.ResolvedProjectReference | undefined, ts.CompilerOptions, ts.SourceFile]
    ): ts.ResolvedModuleWithFailedLookupLocations[] =>
      literals.map((literal) => {
        const library = ownTypesOf(literal.text, containingFile);
        if (library !== undefined) {
          own.add(library);
          return { resolvedModule: { resolvedFileName: library, extension: compiler.Extension.Dts } };
        }
        const mode = compiler.getModeForUsageLocation(rest[2], literal, options);
        return compiler.resolveModuleName(literal.text, containingFile, options, host, cache, undefined, mode);
      }),
  });

  function ownTypesOf(module: string, from: string): string | undefined {
    try {
      return ownFileOf(module, from, typesFor);
    } catch {
      // A package of ours that the generator does not come with.
      return undefined;
    }
  }
}
