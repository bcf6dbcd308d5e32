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

/** What a new project is made from. */
export interface InitOptions {
  /** Created if missing. */
  readonly directory: string;
  readonly crdFiles: readonly NewCrdFile[];
  /** The name of the package. Default: that of the folder. */
  readonly name?: string;
  /** The files of an example, which bring a spec and CRDs of their own. */
  readonly example?: Example;
}

/** What became of a new project. */
export interface InitReport {
  readonly created: readonly string[];
  /** An existing package.json that lacked something. */
  readonly updated: readonly string[];
  /** Files that were there already, and stay as they are. */
  readonly kept: readonly string[];
  /** What an existing package.json was given, such as `scripts.build`. */
  readonly addedToPackage: readonly string[];
  /** What an existing package.json has otherwise than the project needs it. */
  readonly differsInPackage: readonly string[];
}

/** A new project, before it is written. */
export interface ProjectPlan {
  readonly directory: string;
  /** Those that are there already stay as they are. */
  readonly files: readonly OutputFile[];
  /** The text of its package.json; one that is there already gets what it lacks. */
  readonly packageText: string;
  /** The text of the package.json that is there. */
  readonly existing: string | undefined;
}

/** Plans a project but for what `generate` writes: the package, the container, the manifests, the CRDs and a workflow with one dependent. */
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

/** Writes a project. Overwrites nothing; in a package that exists already it adds only what is missing. */
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

// npm leaves .gitignore out of a package, so the templates of hidden files have other names.
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

/** The name of a package that is there; mergePackage leaves it as it is. */
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
    // Only the dependents of a cluster-scoped kind have to say where they live.
    return primary.scope === "Namespaced" ? text.replace(/^.* namespace: default\n/gm, "") : text;
  });
  return (await Promise.all(documents)).join("---\n");
}

/** What came of adding one package.json to another. */
interface MergedPackage {
  readonly text: string;
  /** What was missing, such as `scripts.build`. */
  readonly added: readonly string[];
  /** What is there with another value, and stays. */
  readonly different: readonly string[];
}

const MERGED = ["scripts", "dependencies", "devDependencies", "overrides"] as const;
const SINGLE = ["type", "engines"] as const;

/** Adds to a package.json the fields of a new project's that it lacks. */
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

// A package that is a dependency needs not be a development dependency as well, nor the other way round.
function isPresent(target: Record<string, unknown>, section: string, name: string): boolean {
  const sections = section.endsWith("ependencies") ? ["dependencies", "devDependencies"] : [section];
  return sections.some((key) => isRecord(target[key]) && Object.hasOwn(target[key], name));
}

function indentOf(text: string): string {
  return /^([ \t]+)"/m.exec(text)?.[1] ?? "  ";
}

/** Renders the manifests that a new project gets once, for an operator of this name: a base of kustomize, and a Helm chart. */
export async function renderDeployFiles(name: string): Promise<OutputFile[]> {
  const paths = await listTemplatesBelow("deploy");
  const fileAt = async (path: string) => ({ path, content: await renderTemplate(path, { name }) });
  return (await Promise.all(paths.map(fileAt))).map((file) => ({ ...file, owner: "user" }));
}
