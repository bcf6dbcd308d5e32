import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Diagnostic, quote } from "../diagnostic.js";
import { controllerNamesOf, dependentNamesOf, nameResources } from "../emit/names.js";
import { type OutputFile, isImported } from "../emit/output-file.js";
import type { ProjectModel } from "../model/project-model.js";
import { type PartMemory, RunParts, digestOf } from "../stage.js";
import { filesSeenFrom } from "./check-conditions.js";
import type { MemoryFile } from "./condition-program.js";
import type { FloatingPromise } from "./floating-promises.js";
import { FLOATING_PROMISE } from "./rules.js";
import { unlessTooDeep } from "./source-program.js";

/** What promises are checked with. */
export interface PromiseOptions {
  /** The folder of the project. */
  readonly root: string;
  /** The code of the user's. */
  readonly code: readonly { readonly file: string; readonly text: string }[];
  /** What earlier runs came to. Default: nothing. */
  readonly parts?: PartMemory;
}

/** Files that say which types the code sees besides its own; npm writes the second one with every installation. */
const TYPE_SOURCES = ["tsconfig.json", "node_modules/.package-lock.json"];

/**
 * Reports statements that drop a promise, in the files of the user's that generated code imports, and in those that these import.
 *
 * Types are looked at only if one of the files has a statement that could drop a promise, and if the files, or the types that they see, are
 * other than in an earlier run.
 */
export async function checkPromises(
  model: ProjectModel,
  files: readonly OutputFile[],
  { root, code, parts = new RunParts() }: PromiseOptions,
): Promise<Diagnostic[]> {
  const emitted = files.filter(({ isPresent }) => isPresent !== true);
  const present = new Map(code.map(({ file, text }) => [file, { path: file, content: text }]));
  const byPath = new Map<string, MemoryFile>([...emitted.map((file) => [file.path, file] as const), ...present]);
  const imported = files.filter(({ path, owner }) => owner === "user" && isImported(path)).map(({ path }) => path);
  const seen = filesSeenFrom(imported, byPath);
  const reached = seen.filter(({ path }) => !path.startsWith("src/generated/"));
  const candidates = await parts.recallLater("statements", digestOf(...reached.flatMap(textsOf)), async () => {
    // A stub that nobody has filled in drops nothing.
    if (!reached.some(({ path }) => present.has(path))) return [];
    const { mayDropPromise } = await import("./floating-promises.js");
    return unlessTooDeep(() => reached.filter(mayDropPromise).map(({ path }) => path), "warning");
  });
  if (!Array.isArray(candidates)) return [candidates];
  if (candidates.length === 0) return [];
  const key = digestOf(...seen.flatMap(textsOf), ...(await readTypeSources(root)));
  const found = await parts.recallLater("promises", key, async () => {
    const { findFloatingPromises } = await import("./floating-promises.js");
    return unlessTooDeep(() => findFloatingPromises({ root, files: seen, imported, candidates }), "warning");
  });
  if (!Array.isArray(found)) return [found];
  return found.map((promise) => diagnosticOf(promise, model));
}

function textsOf({ path, content, digest }: MemoryFile): string[] {
  return [path, digest ?? content];
}

function readTypeSources(root: string): Promise<string[]> {
  return Promise.all(TYPE_SOURCES.map((path) => readFile(join(root, path), "utf8").catch(() => "")));
}

function diagnosticOf({ expression, isList, declaration, position }: FloatingPromise, model: ProjectModel): Diagnostic {
  const about = dependentOf(position.file, declaration, model);
  return {
    ...FLOATING_PROMISE.violation,
    message: isList
      ? `the promises of ${quote(expression)} are not awaited: the operator continues before they settle, and exits if one is rejected`
      : `the promise of ${quote(expression)} is not awaited: the operator continues before it settles, and exits if it is rejected`,
    position,
    ...(about === undefined ? {} : { about }),
    hint: isList
      ? "await Promise.all of them, return that, or add void in front if they may end later"
      : "await it, return it, or add void in front if it may end later",
  };
}

/** Returns the dependent whose function a statement is in, as `controller/dependent`; undefined if that is not plain to see. */
function dependentOf(file: string, declaration: string | undefined, model: ProjectModel): string | undefined {
  const names = nameResources(model);
  for (const controller of model.controllers) {
    const { folder } = controllerNamesOf(controller, names, model.controllers);
    const found = controller.dependents.find(
      (dependent) =>
        file === `src/${folder}/dependents/${dependentNamesOf(dependent).file}.ts` ||
        (file === `src/${folder}/conditions.ts` &&
          Object.values(dependent.conditions).some(
            (condition) => condition.kind === "function" && condition.name === declaration,
          )),
    );
    if (found !== undefined) return `${controller.name}/${found.name}`;
  }
  return undefined;
}
