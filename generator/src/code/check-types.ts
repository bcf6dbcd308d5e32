// Type-checks the expressions of specs, and promises in user code, with the emitted types. The compiler is loaded only for files whose result is not
// cached.
import { readFile } from "node:fs/promises";
import { join, posix } from "node:path";
import { type Diagnostic, quote } from "../diagnostic.js";
import { conditionTypesOf, conditionsOf, filteredOf, parametersOfFilter } from "../emit/controller/conditions.js";
import { type ControllerNames, controllerNamesOf, dependentNamesOf, nameResources } from "../emit/names.js";
import { type OutputFile, isImported } from "../emit/output-file.js";
import { layOut } from "../emit/print.js";
import {
  type ConditionName,
  type ControllerModel,
  type DependentModel,
  type ExpressionModel,
  type FilterName,
  type ProjectModel,
  type SourcePosition,
  isKubernetes,
} from "../model/project-model.js";
import { type Stage, uncached } from "../stage.js";
import type { ExpressionResult, MemoryFile } from "./condition-program.js";
import type { FloatingPromise, PromiseSearch } from "./floating-promises.js";
import { FLOATING_PROMISE, WHEN_TYPE } from "./rules.js";

/** A type error in a probe, without its position in the spec, so that the result can be cached. */
interface ProbeProblem {
  readonly probe: number;
  readonly message: string;
  readonly start: number;
}

/** An expression of a spec in the file that is compiled to check it. */
interface Probe {
  readonly expression: ExpressionModel;
  readonly path: string;
  readonly start: number;
  readonly result: ExpressionResult;
}

interface ProbeFile {
  readonly path: string;
  /** Path of the types that its expressions use. */
  readonly typesPath: string;
  readonly content: string;
  readonly probes: readonly Probe[];
}

/** Options of {@link checkConditions}. */
interface ConditionOptions {
  /** Returns the position in the spec of a character of an expression. */
  locate(expression: ExpressionModel, offset: number): SourcePosition | undefined;
  /** Caches the compiler's results. Default: no cache */
  readonly stage?: Stage;
  /** User code, which may declare types of external resources. */
  readonly code: readonly { readonly file: string; readonly text: string }[];
}

/**
 * Type-checks the expressions of all conditions, references, and filters with the emitted types, in memory.
 *
 * The compiler is loaded only if the expressions of a controller, or the types that they use, have changed since the cached run.
 */
export async function checkConditions(
  model: ProjectModel,
  files: readonly OutputFile[],
  { locate, code, stage = uncached }: ConditionOptions,
): Promise<Diagnostic[]> {
  const names = nameResources(model);
  const probeFiles = model.controllers
    .map((controller) => probeFileOf(controller, controllerNamesOf(controller, names, model.controllers)))
    .filter(({ probes }) => probes.length > 0);
  const emitted = files.filter(({ isPresent }) => isPresent !== true);
  const written = code.map(({ file, text }) => ({ path: file, content: text }));
  const byPath = new Map<string, MemoryFile>([...emitted, ...written].map((file) => [file.path, file]));
  const problemsIn = stage("conditions", (...files) => files.flat().flatMap(textsOf), check);
  const found = probeFiles.map(async (file): Promise<Diagnostic[]> => {
    const problems = await problemsIn(file, filesSeenFrom([file.typesPath], byPath));
    return problems.map(({ probe, message, start }) => diagnosticOf(file.probes[probe]!, { message, start, locate }));
  });
  return (await Promise.all(found)).flat();
}

async function check(file: ProbeFile, seen: readonly MemoryFile[]): Promise<ProbeProblem[]> {
  const { createConditionProgram } = await import("./condition-program.js");
  const program = createConditionProgram([...seen, file]);
  return file.probes.flatMap(({ start, result, expression: { expression } }, probe) =>
    program
      .problemsIn(file.path, { start, end: start + expression.length }, result)
      .map((problem) => ({ probe, message: problem.message, start: problem.start - start })),
  );
}

function diagnosticOf(
  { expression, path }: Probe,
  { message, start, locate }: Omit<ProbeProblem, "probe"> & Pick<ConditionOptions, "locate">,
): Diagnostic {
  const offset = Math.min(Math.max(start, 0), expression.expression.length);
  const position = locate(expression, offset) ?? expression.position;
  return { ...WHEN_TYPE.violation, message, position, path };
}

// The names that an expression may use are parameters with the types of the values that the runtime passes.
function probeFileOf(controller: ControllerModel, names: ControllerNames): ProbeFile {
  const probes: Probe[] = [];
  let content = 'import type * as types from "./types.js";\n';
  const add = (
    expression: ExpressionModel,
    { parameters, path, result = "decision" }: { parameters: string; path: string; result?: ExpressionResult },
  ) => {
    // The name of the constant makes the expected result part of the cache key.
    content += `export const ${result}${probes.length} = ${parameters} => (\n`;
    probes.push({ expression, path, result, start: content.length });
    content += `${expression.expression}\n);\n`;
  };
  for (const dependent of controller.dependents)
    for (const [name, condition] of conditionsOf(dependent))
      if (condition.kind === "when")
        add(condition, {
          parameters: parametersOf(dependent, name, condition),
          path: `spec.dependents.${dependent.name}.${name}.when`,
        });
  for (const dependent of controller.dependents.filter(isKubernetes))
    for (const [part, expression] of Object.entries(dependent.ref ?? {}))
      if (expression.kind === "when")
        add(expression, {
          parameters: parametersOfPrimary(expression, names),
          path: `spec.dependents.${dependent.name}.ref.${part}`,
          result: "name",
        });
  for (const dependent of controller.dependents.filter(isKubernetes))
    if (dependent.again !== undefined)
      add(dependent.again, {
        parameters: parametersOfPrimary(dependent.again, names),
        path: `spec.dependents.${dependent.name}.again`,
        result: "value",
      });
  for (const { path, filters, objectType } of filteredOf(controller, names))
    for (const [name, filter] of Object.entries(filters))
      if (filter.kind === "when")
        add(filter, {
          parameters: layOut(parametersOfFilter(name as FilterName, filter.names, `types.${objectType}`)),
          path: `spec.${path}.filters.${name}.when`,
        });
  const folder = `src/generated/${names.folder}`;
  return { path: `${folder}/conditions.probe.ts`, typesPath: `${folder}/types.ts`, content, probes };
}

function parametersOfPrimary(expression: ExpressionModel, names: ControllerNames): string {
  return expression.names.length === 0 ? "()" : `({ primary }: { readonly primary: types.${names.primary} })`;
}

function parametersOf(dependent: DependentModel, condition: ConditionName, { names }: ExpressionModel): string {
  if (names.length === 0) return "()";
  return `({ ${names.join(", ")} }: types.${conditionTypesOf(dependent, condition).arguments})`;
}

/** Returns the part of the cache key for a file. */
function textsOf({ path, content, digest }: MemoryFile): string[] {
  return [path, digest ?? content];
}

/** Returns the files at the given paths, and all files that they import transitively. */
function filesSeenFrom(paths: readonly string[], files: ReadonlyMap<string, MemoryFile>): MemoryFile[] {
  const seen = new Map<string, MemoryFile>();
  const visit = (each: string): void => {
    const file = files.get(each);
    if (file === undefined || seen.has(each)) return;
    // Schemas are long and provide no types.
    const isSchema = each.startsWith("src/generated/") && each.endsWith(".schema.ts");
    seen.set(each, isSchema ? { path: each, content: "export {};" } : file);
    // A class only imports its schema, so the content of a cached class need not be generated.
    if (isSchema || (file.digest !== undefined && each.startsWith("src/generated/resources/"))) return;
    for (const [, specifier = ""] of file.content.matchAll(IMPORT))
      visit(posix.join(posix.dirname(each), specifier).replace(/\.(m?)js$/, ".$1ts"));
  };
  for (const path of paths) visit(path);
  return [...seen.values()];
}

const IMPORT = /\b(?:from|import)\s*\(?\s*["'](\.[^"'\n]*)["']/g;

/** Options of {@link checkPromises}. */
interface PromiseOptions {
  /** Folder of the project. */
  readonly root: string;
  /** User code. */
  readonly code: readonly { readonly file: string; readonly text: string }[];
  /** Caches the compiler's results. Default: no cache */
  readonly stage?: Stage;
}

/** Files that determine the types that user code imports. npm updates the second one with every installation. */
const TYPE_SOURCES = ["tsconfig.json", "node_modules/.package-lock.json"];

/**
 * Reports floating promises in the user files that generated code imports, and in the files that these import.
 *
 * Types are only checked if a file has a statement that could drop a promise, and if the files or the types that they use have changed since the
 * cached run.
 */
export async function checkPromises(
  model: ProjectModel,
  files: readonly OutputFile[],
  { root, code, stage = uncached }: PromiseOptions,
): Promise<Diagnostic[]> {
  const emitted = files.filter(({ isPresent }) => isPresent !== true);
  const present = new Map(code.map(({ file, text }) => [file, { path: file, content: text }]));
  const byPath = new Map<string, MemoryFile>([...emitted.map((file) => [file.path, file] as const), ...present]);
  const imported = files.filter(({ path, owner }) => owner === "user" && isImported(path)).map(({ path }) => path);
  const seen = filesSeenFrom(imported, byPath);
  const reached = seen.filter(({ path }) => !path.startsWith("src/generated/"));
  // Unmodified stubs contain no floating promises.
  const isWritten = reached.some(({ path }) => present.has(path));
  const candidatesIn = stage(
    "statements",
    (code) => code.flatMap(textsOf),
    (code: readonly MemoryFile[]) => (isWritten ? filesThatMayDropPromises(code) : Promise.resolve([])),
  );
  const candidates = await candidatesIn(reached);
  if (!Array.isArray(candidates)) return [candidates];
  if (candidates.length === 0) return [];
  const types = await readTypeSources(root);
  const find = stage("promises", ({ files }) => [...files.flatMap(textsOf), ...types], findPromises);
  const found = await find({ root, files: seen, imported, candidates });
  if (!Array.isArray(found)) return [found];
  return found.map((promise) => promiseDiagnostic(promise, model));
}

async function filesThatMayDropPromises(files: readonly MemoryFile[]): Promise<string[] | Diagnostic> {
  const [{ mayDropPromise }, { unlessTooDeep }] = await loadPromiseChecker();
  return unlessTooDeep(() => files.filter(mayDropPromise).map(({ path }) => path), "warning");
}

async function findPromises(search: PromiseSearch): Promise<FloatingPromise[] | Diagnostic> {
  const [{ findFloatingPromises }, { unlessTooDeep }] = await loadPromiseChecker();
  return unlessTooDeep(() => findFloatingPromises(search), "warning");
}

function loadPromiseChecker() {
  return Promise.all([import("./floating-promises.js"), import("./source-program.js")]);
}

function readTypeSources(root: string): Promise<string[]> {
  return Promise.all(TYPE_SOURCES.map((path) => readFile(join(root, path), "utf8").catch(() => "")));
}

function promiseDiagnostic(
  { expression, isList, declaration, position }: FloatingPromise,
  model: ProjectModel,
): Diagnostic {
  const about = dependentOf(position.file, declaration, model);
  return {
    ...FLOATING_PROMISE.violation,
    message: isList
      ? `the promises of ${quote(expression)} are not awaited: the operator continues before they settle, and exits if one is rejected`
      : `the promise of ${quote(expression)} is not awaited: the operator continues before it settles, and exits if it is rejected`,
    position,
    ...(about === undefined ? {} : { about }),
    hint: isList
      ? "await Promise.all of them, return that, or add void in front if they may settle later"
      : "await it, return it, or add void in front if it may settle later",
  };
}

/** Returns the dependent whose function contains a statement, as `controller/dependent`; undefined if it cannot be determined. */
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
