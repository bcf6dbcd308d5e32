import { join, posix } from "node:path";
import { ModuleKind, ModuleResolutionKind, Project, ScriptTarget, ts } from "ts-morph";
import { isOwnPackage, typesOf } from "../output/conditions/own-types.js";

/** A file of a project in memory. */
export interface CodeText {
  readonly path: string;
  readonly text: string;
}

/** Parses files with the types of the runtime and of the built-in kinds that the generator came with; nothing is written. */
export function createCodeProject(root: string, files: readonly CodeText[]): Project {
  const project = new Project({
    skipAddingFilesFromTsConfig: true,
    skipFileDependencyResolution: true,
    compilerOptions: {
      target: ScriptTarget.ES2022,
      lib: ["lib.es2023.d.ts"],
      module: ModuleKind.NodeNext,
      moduleResolution: ModuleResolutionKind.NodeNext,
      types: [],
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: true,
    },
    resolutionHost: (host, options) => ({
      resolveModuleNames: (modules, containingFile) =>
        modules.map((module) => {
          if (isOwnPackage(module)) return { resolvedFileName: typesOf(module), extension: ts.Extension.Dts };
          return ts.resolveModuleName(module, containingFile, options(), host).resolvedModule;
        }),
    }),
  });
  for (const { path, text } of files) project.createSourceFile(pathIn(root, path), text, { overwrite: true });
  return project;
}

/** Returns where a file of a project is, as the compiler names it. */
export function pathIn(root: string, path: string): string {
  return posix.normalize(join(root, path).replaceAll("\\", "/"));
}
