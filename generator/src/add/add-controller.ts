import { access } from "node:fs/promises";
import { join, resolve } from "node:path";
import { writeSpec, type AddResult } from "./add-to-spec.js";
import { hasErrors, quote, sortDiagnostics, type Diagnostic } from "../diagnostic.js";
import { readProject } from "../input/read-project.js";
import { readPresentFile } from "../output/files/present-file.js";
import type { NewCrdFile } from "../output/project/new-crds.js";

/** The controller to add. */
export interface AddControllerOptions {
  /** The folder with the workflow specs. */
  readonly project: string;
  readonly name: string;
  /** The primary: `example.com/v1/WebPage`. Default: the kind of `crdFiles`. */
  readonly primary?: string;
  /** Files with its CRD, which the project gets. Default: none; the project has it, or it is a kind of Kubernetes. */
  readonly crdFiles?: readonly NewCrdFile[];
  /** Called with what is being done, as it begins: for somebody who waits. */
  readonly onStep?: (step: string) => void;
}

/** Adds a controller with a spec of its own, `NAME.workflow.yaml`, and generates; overwrites nothing. */
export async function addController(options: AddControllerOptions): Promise<AddResult> {
  const { project, name, crdFiles = [], onStep } = options;
  const kinds = crdFiles.flatMap((each) => each.kinds.map(({ name }) => name));
  const primary = options.primary ?? kinds[0] ?? "";
  if (options.primary === undefined && kinds.length > 1) return { diagnostics: [severalKinds(kinds)] };
  const root = resolve(project);
  const input = await readProject(root);
  const problems = input.diagnostics.filter(({ rule }) => rule !== "no-workflow");
  if (hasErrors(problems)) return { diagnostics: sortDiagnostics(problems) };
  const file = `${name}.workflow.yaml`;
  const existing = input.workflows.find((each) => each.name === name);
  const fail = (message: string): AddResult => ({
    diagnostics: [{ severity: "error", rule: "duplicate-controller", message, ...existing?.document.valueAt([]) }],
  });
  if (existing !== undefined) return fail(`the project has a controller ${quote(name)} already`);
  if (await exists(join(root, file))) return fail(`refused to overwrite ${file}`);
  await refuseOtherTexts(root, crdFiles);
  return writeSpec(root, { file, after: textOf(name, primary), crdFiles }, onStep);
}

function severalKinds(kinds: readonly string[]): Diagnostic {
  const message = "the files define several kinds";
  const hint = `name the one that the controller reconciles with --primary: ${kinds.toSorted().join(", ")}`;
  return { severity: "error", rule: "unknown-kind", message, hint };
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
