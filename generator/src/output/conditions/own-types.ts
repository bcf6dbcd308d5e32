import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { packageFile } from "../../package-file.js";
import { codegenModule } from "../runtime-symbols.js";

/** Tells whether a module is of the runtime or of the built-in kinds, as opposed to a file of the project. */
export function isOwnPackage(module: string): boolean {
  return module.startsWith("@gen-operator/");
}

const found = new Map<string, string>();

/** Returns the file with the types of such a module: it is where Node finds it for the generator. */
export function typesOf(module: string): string {
  const known = found.get(module) ?? findTypes(module);
  found.set(module, known);
  return known;
}

function findTypes(module: string): string {
  const file = fileURLToPath(import.meta.resolve(module))
    .replaceAll("\\", "/")
    .replace(/\.js$/, ".d.ts");
  if (!existsSync(file)) throw new Error(`${module} has no types in ${dirname(file)}`);
  return file;
}

/** What generated code sees of the runtime, in one file: the compiler reads it in less time than eighty. The published program has it. */
const inOneFile = fileURLToPath(packageFile("dist/codegen.d.ts"));

/** Returns the file with the types of a module for code that sees nothing else of the runtime than generated code does. */
export function typesOfCode(module: string): string {
  return module === codegenModule && existsSync(inOneFile) ? inOneFile : typesOf(module);
}
