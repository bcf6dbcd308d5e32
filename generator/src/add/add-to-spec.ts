import { isDeepStrictEqual } from "node:util";
import { existsSync, readFileSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { join, resolve } from "node:path";
import { didYouMean, hasErrors, quote, sortDiagnostics, type Diagnostic } from "../diagnostic.js";
import { generate, type GenerateResult } from "../generate.js";
import { readProjectFile } from "../input/project-files.js";
import { readProject } from "../input/read-project.js";
import { addYamlEntry } from "../input/yaml/add-yaml-entry.js";
import { writeInline } from "../input/yaml/edit-yaml.js";
import { isSystemError, reasonOf } from "../system-error.js";
import { diskOperations, writeFileAtOnce } from "../output/files/file-operations.js";
import type { OutputFile } from "../output/files/output-file.js";
import { writeFiles, type WriteReport } from "../output/files/write-files.js";
import type { NewCrdFile } from "../output/project/new-crds.js";

/** What is added to the spec of a controller. */
export interface AddOptions {
  /** The folder with the workflow specs. */
  readonly project: string;
  /** May be left out in a project with a single controller. */
  readonly controller?: string;
  readonly section: "dependents" | "eventSources";
  readonly name: string;
  readonly value: { readonly [field: string]: unknown };
  /** Called with what is being done, as it begins: for somebody who waits. */
  readonly onStep?: (step: string) => void;
}

/** What came of it. */
export interface AddResult extends GenerateResult {
  /** What became of the spec and of CRDs; absent if the spec says so already, or if something is wrong. */
  readonly written?: Pick<WriteReport, "created" | "updated" | "kept">;
  /** Whether the spec said so before. */
  readonly wasPresent?: boolean;
}

/**
 * Adds a dependent or an event source to a workflow spec, and generates.
 *
 * The spec is written only if all is well with it; comments and everything else in it stay as they are.
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
    return fail("unknown-controller", `the project has no controller ${quote(controller ?? "")}`, {
      ...didYouMean(controller ?? "", names),
    });
  if (another !== undefined)
    return fail("unknown-controller", "the project has several controllers", {
      hint: `name one with --controller: ${names.sort().join(", ")}`,
    });
  const { document } = workflow;
  const present = valueAt(document.value, ["spec", section, name]);
  if (isDeepStrictEqual(present, value)) return { ...(await generate({ project: root, onStep })), wasPresent: true };
  const place = document.valueAt(["spec", section, name]);
  if (present !== undefined)
    return fail("duplicate-name", `${section} has ${quote(name)} already, with other fields`, {
      ...place,
      hint: "edit it there",
    });
  const file = await readProjectFile(root, document.file);
  if ("rule" in file) return { diagnostics: [file] };
  const text = addYamlEntry(file.text, { document: workflow.name, section, name, value });
  if (text === undefined)
    return fail("unusual-form", `${quote(name)} cannot be added to ${section} in place`, {
      position: place.position,
      hint: `write it yourself: ${name}: ${writeInline(value)}`,
    });
  return writeSpec(root, { file: document.file, before: file.text, after: text }, onStep);
}

/** A change of a spec. */
export interface SpecChange {
  readonly file: string;
  /** What the change was made from; absent if there was no such file. */
  readonly before?: string;
  readonly after: string;
  /** The CRDs that it needs. Default: those of the project */
  readonly crdFiles?: readonly NewCrdFile[];
}

/** Writes a spec if all is well with it and nobody else has changed it, and generates. */
export async function writeSpec(
  root: string,
  { file, before, after, crdFiles = [] }: SpecChange,
  onStep: (step: string) => void = () => {},
): Promise<AddResult> {
  const texts = new Map([[file, after], ...crdFiles.map(({ path, text }) => [path, text] as const)]);
  const tried = await generate({ project: root, dryRun: true, texts, onStep });
  if (hasErrors(tried.diagnostics)) return { diagnostics: tried.diagnostics };
  const path = join(await realpath(root), file);
  // A link to a spec elsewhere stays a link.
  const target = await realpath(path).catch(() => path);
  const present = existsSync(target) ? readFileSync(target, "utf8") : undefined;
  const mark = present?.startsWith(BYTE_ORDER_MARK) === true ? BYTE_ORDER_MARK : "";
  if (present?.slice(mark.length) !== before)
    throw new Error(`refused to change ${file}: somebody else has changed it meanwhile; run the command again`);
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
