import { access } from "node:fs/promises";
import { join, resolve } from "node:path";
import { writeSpec, type AddResult } from "./add-to-spec.js";
import { hasErrors, quote, sortDiagnostics } from "../diagnostic.js";
import { readProject } from "../input/read-project.js";

/** The controller to add. */
export interface AddControllerOptions {
  /** The folder with the workflow specs. */
  readonly project: string;
  readonly name: string;
  /** The primary: `example.com/v1/WebPage`. */
  readonly primary: string;
  /** Called with what is being done, as it begins: for somebody who waits. */
  readonly onStep?: (step: string) => void;
}

/** Adds a controller with a spec of its own, `NAME.workflow.yaml`, and generates; overwrites nothing. */
export async function addController({ project, name, primary, onStep }: AddControllerOptions): Promise<AddResult> {
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
  const { updated, ...result } = await writeSpec(root, { file, after: textOf(name, primary) }, onStep);
  return updated === undefined ? result : { ...result, created: updated };
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
