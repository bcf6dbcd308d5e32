import { existsSync } from "node:fs";
import { mkdir, readFile, realpath } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { renderDeployFiles } from "../deploy/deploy-files.js";
import { mergePackage } from "./merge-package.js";
import { kebabCase, operatorNameOf } from "../naming.js";
import type { OutputFile } from "../files/output-file.js";
import { isRecord } from "../../model/schema/raw-schema.js";
import { isReservedController } from "../../model/reserved-words.js";
import { packageFile } from "../../package-file.js";
import { addDependencies, type Example } from "./examples.js";
import type { NewCrdFile, PrimaryKind } from "./new-crds.js";
import { renderTemplate, type Replacements } from "./template.js";
import { diskOperations, writeFileAtOnce } from "../files/file-operations.js";
import { readPresentFile } from "../files/present-file.js";
import { writeFiles } from "../files/write-files.js";

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
