import { existsSync, readFileSync } from "node:fs";
import { access, realpath } from "node:fs/promises";
import { join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { DUPLICATE_CONTROLLER } from "../check/rules.js";
import { type Diagnostic, didYouMean, hasErrors, quote, sortDiagnostics } from "../diagnostic.js";
import type { OutputFile } from "../emit/output-file.js";
import { type GenerateResult, generate } from "../generate.js";
import type { NewCrdFile } from "../init/new-crds.js";
import { readPresentFile, readProjectFile } from "../read/project-files.js";
import { readProject } from "../read/read-project.js";
import { NO_WORKFLOW, UNKNOWN_CONTROLLER, UNKNOWN_KIND } from "../read/rules.js";
import { addYamlEntry, writeInline } from "../read/yaml/edit-yaml.js";
import { isSystemError, reasonOf } from "../system-error.js";
import { type WriteReport, diskOperations, writeFileAtOnce, writeFiles } from "../write/write-files.js";

/** The entry to add to the spec of a controller. */
export interface AddOptions {
  /** Folder of the workflow specs. */
  readonly project: string;
  /** Name of the controller. Optional in a project with a single controller. */
  readonly controller?: string;
  readonly section: "dependents" | "eventSources";
  readonly name: string;
  readonly value: { readonly [field: string]: unknown };
  /** Called with a description of each step as it starts, for progress output. */
  readonly onStep?: (step: string) => void;
}

/** Result of {@link addToSpec} and {@link addController}. */
export interface AddResult extends GenerateResult {
  /** The spec and the CRDs that were written. Absent if the spec already has the entry, or if there are errors. */
  readonly written?: Pick<WriteReport, "created" | "updated" | "kept">;
  /** True if the spec already has the same entry. */
  readonly wasPresent?: boolean;
}

/**
 * Adds a dependent or an event source to a workflow spec and generates the project.
 *
 * The spec is written only if generating with the new entry reports no error. Comments and all other entries are preserved.
 */
export async function addToSpec(options: AddOptions): Promise<AddResult> {
  const { controller, section, name, value, onStep = () => {} } = options;
  const root = resolve(options.project);
  const input = await readProject(root);
  if (hasErrors(input.diagnostics)) return { diagnostics: sortDiagnostics(input.diagnostics) };
  const names = input.workflows.map((each) => each.name);
  const candidates = input.workflows.filter((each) => controller === undefined || each.name === controller);
  const [workflow, another] = candidates;
  if (workflow === undefined)
    return fail(UNKNOWN_CONTROLLER.id, `controller ${quote(controller ?? "")} not found in the project`, {
      ...didYouMean(controller ?? "", names),
    });
  if (another !== undefined)
    return fail(UNKNOWN_CONTROLLER.id, "the project has several controllers", {
      hint: `set --controller to one of ${names.sort().join(", ")}`,
    });
  const { document } = workflow;
  const present = valueAt(document.value, ["spec", section, name]);
  if (isDeepStrictEqual(present, value)) return { ...(await generate({ project: root, onStep })), wasPresent: true };
  const place = document.valueAt(["spec", section, name]);
  if (present !== undefined)
    return fail("duplicate-name", `${quote(name)} already exists in ${section}, with other fields`, {
      ...place,
      hint: "edit it there",
    });
  const file = await readProjectFile(root, document.file);
  if ("rule" in file) return { diagnostics: [file] };
  const text = addYamlEntry(file.text, { document: workflow.name, section, name, value });
  if (text === undefined)
    return fail("unusual-form", `cannot add ${quote(name)} to ${section} without reformatting it`, {
      position: place.position,
      hint: `add it manually: ${name}: ${writeInline(value)}`,
    });
  return writeSpec(root, { file: document.file, before: file.text, after: text }, onStep);
}

/** A change of a workflow spec. */
export interface SpecChange {
  readonly file: string;
  /** Content of the file that the change is based on; absent for a new file. */
  readonly before?: string;
  readonly after: string;
  /** CRDs to add to the project. Default: none */
  readonly crdFiles?: readonly NewCrdFile[];
}

/**
 * Writes a spec and generates the project.
 *
 * Nothing is written if generating with the new spec reports errors. Throws if the file was modified since `before` was read.
 */
export async function writeSpec(
  root: string,
  { file, before, after, crdFiles = [] }: SpecChange,
  onStep: (step: string) => void = () => {},
): Promise<AddResult> {
  const texts = new Map([[file, after], ...crdFiles.map(({ path, text }) => [path, text] as const)]);
  const tried = await generate({ project: root, dryRun: true, texts, onStep });
  if (hasErrors(tried.diagnostics)) return { diagnostics: tried.diagnostics };
  const path = join(await realpath(root), file);
  // Write through a symbolic link instead of replacing it.
  const target = await realpath(path).catch(() => path);
  const present = existsSync(target) ? readFileSync(target, "utf8") : undefined;
  const mark = present?.startsWith(BYTE_ORDER_MARK) === true ? BYTE_ORDER_MARK : "";
  if (present?.slice(mark.length) !== before)
    throw new Error(`refused to change ${file}: it was changed in the meantime; run the command again`);
  const crds = crdFiles.map(({ path, text }): OutputFile => ({ path, owner: "user", content: text }));
  const { created, kept } = await writeFiles(root, crds, { check: false });
  try {
    await writeFileAtOnce(target, mark + after, { owner: "generator", operations: diskOperations });
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw Object.assign(new Error(`cannot write ${file}: ${reasonOf(error)}`, { cause: error }), { code: error.code });
  }
  const isNew = before === undefined;
  const written = { created: isNew ? [...created, file] : created, updated: isNew ? [] : [file], kept };
  return { ...(await generate({ project: root, onStep })), written };
}

const BYTE_ORDER_MARK = "\ufeff";

function valueAt(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const step of path)
    found =
      typeof found === "object" && found !== null && Object.hasOwn(found, step) ? found[step as never] : undefined;
  return found;
}

function fail(rule: string, message: string, more: Partial<Diagnostic> = {}): AddResult {
  return { diagnostics: [{ severity: "error", rule, message, ...more }] };
}

export interface AddControllerOptions {
  /** Folder of the workflow specs. */
  readonly project: string;
  readonly name: string;
  /** Kind of the primary, for example `example.com/v1/WebPage`. Default: the kind that `crdFiles` define */
  readonly primary?: string;
  /** Files with the CRD of the primary, which are copied into the project. Default: none; the kind is built in or its CRD is in the project */
  readonly crdFiles?: readonly NewCrdFile[];
  /** Called with a description of each step as it starts, for progress output. */
  readonly onStep?: (step: string) => void;
}

/** Adds a controller with its own spec, `NAME.workflow.yaml`, and generates the project. Never overwrites a file. */
export async function addController(options: AddControllerOptions): Promise<AddResult> {
  const { project, name, crdFiles = [], onStep } = options;
  const kinds = crdFiles.flatMap((each) => each.kinds.map(({ name }) => name));
  const primary = options.primary ?? kinds[0] ?? "";
  if (options.primary === undefined && kinds.length > 1) return { diagnostics: [severalKinds(kinds)] };
  const root = resolve(project);
  const input = await readProject(root);
  const problems = input.diagnostics.filter(({ rule }) => rule !== NO_WORKFLOW.id);
  if (hasErrors(problems)) return { diagnostics: sortDiagnostics(problems) };
  const file = `${name}.workflow.yaml`;
  const existing = input.workflows.find((each) => each.name === name);
  const fail = (message: string): AddResult => ({
    diagnostics: [{ ...DUPLICATE_CONTROLLER.violation, message, ...existing?.document.valueAt([]) }],
  });
  if (existing !== undefined) return fail(`controller ${quote(name)} already exists`);
  if (await exists(join(root, file))) return fail(`refused to overwrite ${file}`);
  await refuseOtherTexts(root, crdFiles);
  return writeSpec(root, { file, after: textOf(name, primary), crdFiles }, onStep);
}

function severalKinds(kinds: readonly string[]): Diagnostic {
  const message = "the files define several kinds";
  const hint = `set --primary to the one that the controller reconciles: ${kinds.toSorted().join(", ")}`;
  return { ...UNKNOWN_KIND.violation, message, hint };
}

async function refuseOtherTexts(root: string, files: readonly NewCrdFile[]): Promise<void> {
  for (const { file, path, text } of files) {
    const present = await readPresentFile(root, path);
    if (present !== undefined && present !== text)
      throw new Error(`refused to overwrite ${path}, which differs from ${file}: delete one of the two`);
  }
}

function textOf(name: string, primary: string): string {
  return `# yaml-language-server: $schema=node_modules/gen-operator/data/workflow.schema.json
apiVersion: gen-operator.dev/v1alpha1
kind: Workflow
metadata:
  name: ${JSON.stringify(name).slice(1, -1)}
spec:
  primary: ${primary}
  dependents: {}
`;
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
