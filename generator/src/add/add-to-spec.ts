import { isDeepStrictEqual } from "node:util";
import { realpath } from "node:fs/promises";
import { join, resolve } from "node:path";
import { didYouMean, hasErrors, quote, sortDiagnostics, type Diagnostic } from "../diagnostic.js";
import { generate, type GenerateResult } from "../generate.js";
import { readProjectFile } from "../input/project-files.js";
import { readProject } from "../input/read-project.js";
import { addYamlEntry } from "../input/yaml/add-yaml-entry.js";
import { writeInline } from "../input/yaml/edit-yaml.js";
import { diskOperations, writeFileAtOnce } from "../output/files/file-operations.js";

/** What is added to the spec of a controller. */
export interface AddOptions {
  /** The folder with the workflow specs. */
  readonly project: string;
  /** May be left out in a project with a single controller. */
  readonly controller?: string;
  readonly section: "dependents" | "eventSources";
  readonly name: string;
  readonly value: { readonly [field: string]: unknown };
}

/** What came of it. */
export interface AddResult extends GenerateResult {
  /** The spec that was changed; absent if it says so already, or if something is wrong. */
  readonly updated?: string;
  /** The spec that was created. */
  readonly created?: string;
  /** Whether the spec said so before. */
  readonly wasPresent?: boolean;
}

/**
 * Adds a dependent or an event source to a workflow spec, and generates.
 *
 * The spec is written only if all is well with it; comments and everything else in it stay as they are.
 */
export async function addToSpec(options: AddOptions): Promise<AddResult> {
  const { controller, section, name, value } = options;
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
  if (isDeepStrictEqual(present, value)) return { ...(await generate({ project: root })), wasPresent: true };
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
  return writeSpec(root, document.file, text);
}

/** Writes a spec if all is well with it, and generates. */
export async function writeSpec(root: string, file: string, text: string): Promise<AddResult> {
  const tried = await generate({ project: root, dryRun: true, specTexts: new Map([[file, text]]) });
  if (hasErrors(tried.diagnostics)) return { diagnostics: tried.diagnostics };
  const path = join(await realpath(root), file);
  await writeFileAtOnce(path, text, { owner: "generator", operations: diskOperations });
  return { ...(await generate({ project: root })), updated: file };
}

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
