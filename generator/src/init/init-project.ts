import { existsSync } from "node:fs";
import { mkdir, readFile, realpath } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { kebabCase, operatorNameOf } from "../emit/names.js";
import type { OutputFile } from "../emit/output-file.js";
import { type Replacements, listTemplatesBelow, renderTemplate } from "../emit/stubs.js";
import { isRecord } from "../model/schema.js";
import { isReservedController } from "../model/typescript.js";
import { packageFile } from "../package-file.js";
import { readPresentFile } from "../read/project-files.js";
import { diskOperations, writeFileAtOnce, writeFiles } from "../write/write-files.js";
import { type Example, addDependencies } from "./examples.js";
import type { NewCrdFile, PrimaryKind } from "./new-crds.js";

/** Options of {@link planProject}. */
export interface InitOptions {
  /** Folder of the project. Created if it does not exist. */
  readonly directory: string;
  readonly crdFiles: readonly NewCrdFile[];
  /** Name of the package. Default: the name of the folder */
  readonly name?: string;
  /** The example to start from, which has its own spec and CRDs. */
  readonly example?: Example;
}

/** Result of writing a new project. */
export interface InitReport {
  readonly created: readonly string[];
  /** An existing package.json to which fields were added. */
  readonly updated: readonly string[];
  /** Files that already existed and were not changed. */
  readonly kept: readonly string[];
  /** Fields added to an existing package.json, for example `scripts.build`. */
  readonly addedToPackage: readonly string[];
  /** Fields of an existing package.json that differ from those that the project needs. */
  readonly differsInPackage: readonly string[];
}

/** A new project that is not written yet. */
export interface ProjectPlan {
  readonly directory: string;
  /** Files of the project. Existing files are not overwritten. */
  readonly files: readonly OutputFile[];
  /** Text of the package.json. Missing fields are merged into an existing one. */
  readonly packageText: string;
  /** Text of the existing package.json. */
  readonly existing: string | undefined;
}

/** Plans the files of a project that `generate` does not write: package, container, manifests, CRDs, and a workflow with one dependent. */
export async function planProject({ directory, crdFiles, name, example }: InitOptions): Promise<ProjectPlan> {
  const packageName = name ?? (kebabCase(basename(resolve(directory))) || "operator");
  const version = await versionOfGenerator();
  const template = await renderTemplate("project/package.json", { name: packageName, version });
  const packageText = example === undefined ? template : addDependencies(template, example);
  const existing = existsSync(directory) ? await readPresentFile(await realpath(directory), "package.json") : undefined;
  if (existing !== undefined && !isJsonObject(existing))
    throw new Error("refused to change package.json: it is not a JSON object");
  const operator = operatorNameOf(nameIn(existing) ?? packageName);
  const files = [
    ...(await Promise.all(
      TEMPLATES.map(([template, path]) => fileOf(template, path, { name: packageName, operator })),
    )),
    ...(await renderDeployFiles(operator)),
    ...crdFiles.map(({ path, text }): OutputFile => ({ path, owner: "user", content: text })),
    ...(example?.files ?? [
      {
        path: "workflow.yaml",
        owner: "user" as const,
        content: await renderWorkflows(crdFiles.flatMap((file) => file.kinds)),
      },
    ]),
  ];
  if (existing === undefined) files.push({ path: "package.json", owner: "user", content: packageText });
  return { directory, files, packageText, existing };
}

/** Writes a project. Overwrites no file, and only adds missing fields to an existing package.json. */
export async function writeProject({ directory, files, packageText, existing }: ProjectPlan): Promise<InitReport> {
  await mkdir(directory, { recursive: true });
  const { created, kept } = await writeFiles(directory, files, { check: false });
  if (existing === undefined) return { created, updated: [], kept, addedToPackage: [], differsInPackage: [] };
  const { text, added, different } = mergePackage(existing, packageText);
  const merged = { created, addedToPackage: added, differsInPackage: different };
  if (added.length === 0) return { ...merged, updated: [], kept: [...kept, "package.json"].sort() };
  const path = join(await realpath(directory), "package.json");
  await writeFileAtOnce(path, text, { owner: "generator", operations: diskOperations });
  return { ...merged, updated: ["package.json"], kept };
}

// npm does not publish .gitignore files, so the templates of hidden files have other names.
const TEMPLATES = [
  ["tsconfig.json", "tsconfig.json"],
  ["bundle.js", "bundle.js"],
  ["Dockerfile", "Dockerfile"],
  ["README.md", "README.md"],
  ["_gitignore", ".gitignore"],
  ["_dockerignore", ".dockerignore"],
  ["ci.yaml", ".github/workflows/ci.yaml"],
] as const;

async function fileOf(template: string, path: string, replacements: Replacements): Promise<OutputFile> {
  return { path, owner: "user", content: await renderTemplate(`project/${template}`, replacements) };
}

function isJsonObject(text: string): boolean {
  try {
    return isRecord(JSON.parse(text));
  } catch {
    return false;
  }
}

/** Returns the name in an existing package.json, which mergePackage preserves. */
function nameIn(packageText: string | undefined): string | undefined {
  const { name } = packageText === undefined ? {} : (JSON.parse(packageText) as { name?: unknown });
  return typeof name === "string" ? name : undefined;
}

async function versionOfGenerator(): Promise<string> {
  const text = await readFile(packageFile("package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

async function renderWorkflows(kinds: readonly PrimaryKind[]): Promise<string> {
  const names = new Set<string>();
  const documents = kinds.map(async (primary, index) => {
    const lower = primary.kind.toLowerCase();
    const free = isReservedController(lower) ? `${lower}-controller` : lower;
    const controller = names.has(free) ? `${free}-${index + 1}` : free;
    names.add(controller);
    const text = await renderTemplate("project/workflow.yaml", {
      controller,
      primary: primary.name,
      namespace: "namespace",
    });
    // Only dependents of a cluster-scoped primary must set their namespace.
    return primary.scope === "Namespaced" ? text.replace(/^.* namespace: default\n/gm, "") : text;
  });
  return (await Promise.all(documents)).join("---\n");
}

/** Result of merging a package.json into another. */
interface MergedPackage {
  readonly text: string;
  /** Fields that were added, for example `scripts.build`. */
  readonly added: readonly string[];
  /** Fields that have another value, which was preserved. */
  readonly different: readonly string[];
}

const MERGED = ["scripts", "dependencies", "devDependencies", "overrides"] as const;
const SINGLE = ["type", "engines"] as const;

/** Adds the missing fields of a new project to an existing package.json. */
export function mergePackage(existing: string, wanted: string): MergedPackage {
  const target = JSON.parse(existing) as Record<string, unknown>;
  const source = JSON.parse(wanted) as Record<string, unknown>;
  const added: string[] = [];
  const different: string[] = [];
  for (const name of SINGLE) {
    if (target[name] === undefined) {
      target[name] = source[name];
      added.push(name);
    } else if (name === "type" && target[name] !== source[name]) different.push(name);
  }
  for (const section of MERGED) {
    const entries = isRecord(source[section]) ? source[section] : {};
    const present = isRecord(target[section]) ? target[section] : {};
    const missing = Object.entries(entries).filter(([name]) => !isPresent(target, section, name));
    for (const [name, value] of Object.entries(entries))
      if (Object.hasOwn(present, name) && present[name] !== value) different.push(`${section}.${name}`);
    if (missing.length > 0) target[section] = { ...present, ...Object.fromEntries(missing) };
    added.push(...missing.map(([name]) => `${section}.${name}`));
  }
  return { text: `${JSON.stringify(target, undefined, indentOf(existing))}\n`, added, different };
}

// A package may be listed under dependencies or devDependencies.
function isPresent(target: Record<string, unknown>, section: string, name: string): boolean {
  const sections = section.endsWith("ependencies") ? ["dependencies", "devDependencies"] : [section];
  return sections.some((key) => isRecord(target[key]) && Object.hasOwn(target[key], name));
}

function indentOf(text: string): string {
  return /^([ \t]+)"/m.exec(text)?.[1] ?? "  ";
}

/** Renders the deployment manifests that init writes once, for an operator of the given name: a kustomize base and a Helm chart. */
export async function renderDeployFiles(name: string): Promise<OutputFile[]> {
  const paths = await listTemplatesBelow("deploy");
  const fileAt = async (path: string) => ({ path, content: await renderTemplate(path, { name }) });
  return (await Promise.all(paths.map(fileAt))).map((file) => ({ ...file, owner: "user" }));
}
