import { type Diagnostic, didYouMean, quote } from "../diagnostic.js";
import { GENERATED_HEADER, type OutputFile } from "../emit/output-file.js";
import {
  EXTERNAL,
  type ProjectMemory,
  type RememberedController,
  type RememberedDependent,
} from "../model/project-memory.js";
import { type DependentModel, type ProjectModel, type ResourceModel, isKubernetes } from "../model/project-model.js";
import { isRecord } from "../model/schema.js";
import type { UntypedKindSpec, WorkflowSpec } from "../read/workflow-spec.js";
import { readPlainFile } from "../read/project-files.js";
import { DAMAGED_RECORD, UNKNOWN_FORGET } from "./rules.js";

/** The manifest, which lists the generated files, so that those that are no longer generated can be deleted. */
export const MANIFEST_PATH = "src/generated/.gen-operator.json";

/** Content of the manifest. */
export interface Manifest {
  readonly generatedFiles: readonly string[];
  /** Stubs of earlier runs, so that unused stubs can be reported. */
  readonly stubs: readonly string[];
  /** Dependents of the last generation, which may have objects in clusters. Absent if unknown. */
  readonly dependents?: readonly RememberedDependent[] | undefined;
  /** Controllers of the last generation. Absent if unknown. */
  readonly controllers?: readonly RememberedController[] | undefined;
  /** True if the run that wrote the manifest did not finish: any file may be old, new, or missing. */
  readonly isUnfinished: boolean;
}

const NOTHING: Manifest = { generatedFiles: [], stubs: [], isUnfinished: false };

/** Returns the manifest for the files, controllers, and dependents of a project. */
export function manifestOf(
  files: readonly OutputFile[],
  { dependents, controllers }: Pick<Manifest, "dependents" | "controllers">,
): Manifest {
  const pathsOf = (wanted: OutputFile["owner"]) => files.flatMap(({ path, owner }) => (owner === wanted ? [path] : []));
  return { generatedFiles: pathsOf("generator"), stubs: pathsOf("user"), dependents, controllers, isUnfinished: false };
}

/** Returns the dependents to record for the next generation. */
export function rememberDependents({ controllers }: ProjectModel): RememberedDependent[] {
  return controllers.flatMap(({ name: controller, dependents }) =>
    dependents.map((dependent) => ({ controller, name: dependent.name, ...factsOf(dependent) })),
  );
}

/** Returns the controllers to record for the next generation. */
export function rememberControllers({ controllers }: ProjectModel): RememberedController[] {
  return controllers.map(({ name, primary: { group, version, kind } }) => ({
    name,
    primary: group === "" ? `${version}/${kind}` : `${group}/${version}/${kind}`,
  }));
}

function factsOf(dependent: DependentModel): Omit<RememberedDependent, "controller" | "name"> {
  if (!isKubernetes(dependent)) {
    const { state, capabilities } = dependent.external;
    const place = state && ("path" in state ? `${state.kind} ${state.path.join(".")}` : state.kind);
    return {
      resource: EXTERNAL,
      ...(capabilities.length === 0 ? { isReadOnly: true as const } : {}),
      ...(place === undefined ? {} : { state: place }),
    };
  }
  const { resource, mode, namespace, cluster, labelSelector, fieldSelector, deletion } = dependent;
  return {
    resource: statedKindOf(resource),
    ...(mode === "readOnly" ? { isReadOnly: true as const } : {}),
    ...(namespace === undefined ? {} : { namespace }),
    ...(cluster === undefined ? {} : { cluster }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    ...(deletion === "garbageCollected" ? {} : { deletion }),
  };
}

function statedKindOf({ group, version, kind, plural, scope, isUntyped }: ResourceModel): string | UntypedKindSpec {
  const apiVersion = group === "" ? version : `${group}/${version}`;
  return isUntyped === true ? { apiVersion, kind, plural, scope } : `${apiVersion}/${kind}`;
}

/** Returns the manifest of a running generation. It also lists the contents of the previous manifest, so that a crash loses no information. */
export function unfinishedManifest(before: Manifest, after: Manifest): Manifest {
  return {
    generatedFiles: [...before.generatedFiles, ...after.generatedFiles],
    stubs: [...before.stubs, ...after.stubs],
    dependents: joined(before.dependents, after.dependents),
    controllers: joined(before.controllers, after.controllers),
    isUnfinished: true,
  };
}

function joined<Entry>(before: readonly Entry[] | undefined, after: readonly Entry[] | undefined) {
  return before === undefined && after === undefined ? undefined : [...(before ?? []), ...(after ?? [])];
}

export function renderManifest({ generatedFiles, stubs, dependents, controllers, isUnfinished }: Manifest): string {
  const manifest = {
    ...(isUnfinished ? { unfinished: true } : {}),
    generatedFiles: sorted(generatedFiles),
    ...(stubs.length > 0 ? { stubs: sorted(stubs) } : {}),
  };
  const text = JSON.stringify(manifest, undefined, 2);
  const memory = [
    ...(controllers === undefined ? [] : [`"${CONTROLLERS_FIELD}": ${renderControllers(controllers)}`]),
    ...(dependents === undefined ? [] : [`"${MEMORY_FIELD}": ${renderMemory(dependents)}`]),
  ];
  return memory.length === 0 ? `${text}\n` : `${text.slice(0, -2)},\n  ${memory.join(",\n  ")}\n}\n`;
}

/** Reads a manifest. A missing or damaged manifest lists no files. */
export function readManifest(text: string | undefined): Manifest {
  const [dependents, controllers] = text === undefined ? [] : [readMemory(text), readControllers(text)];
  try {
    const read = JSON.parse(text ?? "{}") as { readonly [K in "generatedFiles" | "stubs" | "unfinished"]?: unknown };
    return {
      generatedFiles: pathsIn(read.generatedFiles),
      stubs: pathsIn(read.stubs),
      dependents,
      controllers,
      isUnfinished: read.unfinished === true,
    };
  } catch {
    return { ...NOTHING, dependents, controllers };
  }
}

function pathsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((path) => typeof path === "string") : [];
}

function sorted(paths: readonly string[]): string[] {
  return [...new Set(paths)].sort();
}

/** Returns whether a text contains the header of generated files. The comment syntax depends on the language. */
export function isGenerated(text: string): boolean {
  return text.slice(0, 200).includes(GENERATED_HEADER.slice("// ".length));
}

// The manifest records controllers and dependents on one line each, so that branches can be merged, and lines remain readable between conflict
// markers.

/** Field of the manifest with the dependents. */
const MEMORY_FIELD = "dependents";

/** Field of the manifest with the controllers. */
const CONTROLLERS_FIELD = "controllers";

/** Renders the dependents as the value of a field of the manifest. */
function renderMemory(dependents: readonly RememberedDependent[]): string {
  const lines = dependents.map(({ controller, name, ...facts }) => {
    return `    ${JSON.stringify(`${controller}/${name}`)}: ${renderInline(facts)}`;
  });
  return renderLines(lines);
}

/** Renders the controllers as the value of a field of the manifest. */
function renderControllers(controllers: readonly RememberedController[]): string {
  return renderLines(controllers.map(({ name, primary }) => `    ${JSON.stringify(name)}: ${JSON.stringify(primary)}`));
}

function renderLines(lines: readonly string[]): string {
  return lines.length === 0 ? "{}" : `{\n${[...new Set(lines)].sort().join(",\n")}\n  }`;
}

function renderInline(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${renderInline(each)}`);
  return `{ ${fields.join(", ")} }`;
}

/**
 * Reads the dependents from the text of a manifest; undefined if it does not have the field. If the text is not valid JSON, single lines are read.
 */
function readMemory(text: string): RememberedDependent[] | undefined {
  return entriesIn(text, MEMORY_FIELD)?.flatMap(([key, facts]) => entryOf(key, facts) ?? []);
}

/** Reads the controllers, like `readMemory` the dependents. */
function readControllers(text: string): RememberedController[] | undefined {
  return entriesIn(text, CONTROLLERS_FIELD)?.flatMap(([name, primary]) => controllerOf(name, primary) ?? []);
}

function entriesIn(text: string, field: string): [key: string, value: unknown][] | undefined {
  const value = fieldOf(text, field);
  if (value === "damaged") return salvage(text, field);
  return typeof value !== "object" || value === null ? undefined : Object.entries(value);
}

function fieldOf(text: string, field: string): unknown {
  try {
    return (JSON.parse(text) as { readonly [field: string]: unknown } | null)?.[field];
  } catch {
    return "damaged";
  }
}

// An unresolved merge contains the lines of both branches.
function salvage(text: string, field: string): [key: string, value: unknown][] | undefined {
  const start = text.indexOf(`"${field}": {`);
  if (start === -1) return undefined;
  const lines = new Set(text.slice(start).split(/\r?\n/));
  return [...lines].flatMap((line) => {
    const [, key = "", value = ""] = /^\s*"([^"]+)": (\{.*\}|"[^"]*"),?$/.exec(line) ?? [];
    try {
      return [[key, JSON.parse(value)] satisfies [string, unknown]];
    } catch {
      return [];
    }
  });
}

/**
 * Reports a damaged manifest, which may have lost entries or contain unreadable ones. Conflict markers are tolerated, because the lines between them
 * can be read.
 */
function checkManifest(file: string, text: string): Diagnostic | undefined {
  const line = damagedLineOf(text);
  if (line === undefined) return undefined;
  return {
    ...DAMAGED_RECORD.violation,
    message: "the record of the dependents of the last generation is damaged",
    position: { file, line, column: 1 },
    hint:
      "restore it from version control, or correct this line; if that is not possible, delete the file:\n" +
      "then the stubs in src are the only record of removed dependents",
  };
}

function damagedLineOf(text: string): number | undefined {
  try {
    return damagedEntryLineOf(text, JSON.parse(text));
  } catch {
    const lines = text.trimEnd().split("\n");
    const damaged = lines.findIndex((line) => !isWholeLine(line));
    if (damaged !== -1) return damaged + 1;
    return /^(?:\}|>{7})/.test(lines.at(-1) ?? "") ? undefined : lines.length;
  }
}

function damagedEntryLineOf(text: string, manifest: unknown): number | undefined {
  if (!isRecord(manifest)) return 1;
  const readers = [
    [CONTROLLERS_FIELD, controllerOf],
    [MEMORY_FIELD, entryOf],
  ] as const;
  const damaged = readers.flatMap(([field, read]) => {
    const memory = manifest[field];
    if (memory === undefined) return [];
    if (!isRecord(memory)) return field;
    return Object.entries(memory).find((entry) => read(...entry) === undefined)?.[0] ?? [];
  });
  const [key] = damaged;
  if (key === undefined) return undefined;
  return text.slice(0, text.lastIndexOf(`${JSON.stringify(key)}:`)).split("\n").length;
}

// A line with a bracket, a path, an entry, or a conflict marker.
function isWholeLine(line: string): boolean {
  if (/^\s*(?:"\w+": )?(?:[[\]{}]*|true|"[^"]*"),?\s*$|^([<|=>])\1{6}/.test(line)) return true;
  try {
    return isRecord(JSON.parse(`{${line.replace(/,\s*$/, "")}}`));
  } catch {
    return false;
  }
}

function entryOf(key: string, facts: unknown): RememberedDependent | undefined {
  const [controller, name] = key.split("/");
  if (!controller || !name || !isRecord(facts)) return undefined;
  const { resource } = facts;
  if (typeof resource !== "string" && !isRecord(resource)) return undefined;
  return { ...facts, controller, name, resource: resource as RememberedDependent["resource"] };
}

function controllerOf(name: string, primary: unknown): RememberedController | undefined {
  return name === "" || typeof primary !== "string" || !primary.includes("/") ? undefined : { name, primary };
}

/** A file of user code. */
interface CodeText {
  readonly file: string;
  readonly text: string;
}

/**
 * Reads the previous generation from the manifest of a project, or returns why the manifest cannot be used. If it records no dependents, looks for
 * stubs in the user code that `readCode` reads.
 */
export async function readProjectMemory(
  root: string,
  readCode: () => Promise<readonly CodeText[]>,
): Promise<ProjectMemory | Diagnostic> {
  const text = await readPlainFile(root, MANIFEST_PATH);
  const problem = text === undefined ? undefined : checkManifest(MANIFEST_PATH, text);
  if (problem !== undefined) return problem;
  const { dependents, controllers, isUnfinished } = readManifest(text);
  if (dependents !== undefined) return { dependents, ...(controllers && { controllers }), stubs: [], isUnfinished };
  return { dependents: [], stubs: (await readCode()).flatMap(stubIn) };
}

// A stub imports a type that is named after its dependent; other files in the folder do not.
function stubIn({ file, text: content }: CodeText): ProjectMemory["stubs"] {
  const [, folder, name] = /^src\/([^/]+)\/dependents\/([^/]+)\.ts$/.exec(file) ?? [];
  if (folder === undefined || name === undefined) return [];
  const [, imported = ""] =
    new RegExp(`import\\s+type\\s*\\{([^}]*)\\}\\s*from\\s*["']../../generated/${folder}/types.js["']`).exec(content) ??
    [];
  const start = name.replaceAll("-", "").toLowerCase();
  const isStub = imported
    .split(",")
    .some(
      (each) =>
        /(Desired|Dependent|IdOf|Create|Update|Delete|Fetch|External)$/.test(each.trim()) &&
        each.trim().toLowerCase().startsWith(start),
    );
  return isStub ? [{ folder, name, file }] : [];
}

/** Returns the previous generation with the current names of controllers that list their former names under `formerNames`. */
export function followRenames(memory: ProjectMemory, workflows: readonly WorkflowSpec[]): ProjectMemory {
  const present = new Map(
    workflows.flatMap(({ name, controller: { formerNames = [] } }) => formerNames.map((each) => [each, name] as const)),
  );
  const nameOf = (name: string) => present.get(name) ?? name;
  const { dependents, controllers } = memory;
  return {
    ...memory,
    dependents: distinct(dependents.map((each) => ({ ...each, controller: nameOf(each.controller) }))),
    ...(controllers && { controllers: distinct(controllers.map((each) => ({ ...each, name: nameOf(each.name) }))) }),
  };
}

// An unfinished run has recorded a renamed controller under both names.
function distinct<Entry>(entries: readonly Entry[]): Entry[] {
  return [...new Map(entries.map((each) => [JSON.stringify(each), each])).values()];
}

/** Returns the previous generation without the given controllers and dependents. */
export function forgetNames(memory: ProjectMemory, forget: readonly string[]): ProjectMemory {
  const { dependents, controllers } = memory;
  return {
    ...memory,
    dependents: dependents.filter((each) => !isForgotten(each, forget)),
    ...(controllers && { controllers: controllers.filter(({ name }) => !forget.includes(name)) }),
  };
}

/** Returns whether a dependent is in the list, by its controller or as `controller/dependent`. */
function isForgotten({ controller, name }: RememberedDependent, forget: readonly string[]): boolean {
  return forget.includes(controller) || forget.includes(`${controller}/${name}`);
}

/** Reports names to forget that the previous generation does not contain. */
export function checkForgotten(
  { dependents, controllers = [] }: ProjectMemory,
  forget: readonly string[],
): Diagnostic[] {
  const names = [
    ...controllers.map(({ name }) => name),
    ...dependents.flatMap(({ controller, name }) => [controller, `${controller}/${name}`]),
  ];
  const known = [...new Set(names)].sort();
  return forget
    .filter((name) => !known.includes(name))
    .map((name): Diagnostic => {
      const meant = didYouMean(name, known);
      const all = `known names: ${known.length === 0 ? "none" : known.join(", ")}`;
      return {
        ...UNKNOWN_FORGET.violation,
        message: `controller or dependent ${quote(name)} of --forget not found in the last generation`,
        hint: meant === undefined ? all : `${meant.hint} ${all}`,
      };
    });
}
