import { existsSync, readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { formatDiagnostic } from "#generator/diagnostic.js";
import type { CheckedCode } from "#generator/code/check-code.js";
import { checkUserCode } from "#generator/generate.js";
import { readSources } from "#generator/read/project-files.js";
import { readProject } from "#generator/read/read-project.js";
import { acceptWarnings, buildModel } from "#generator/check/build-model.js";
import { isKubernetes, type ProjectModel } from "#generator/model/project-model.js";
import { CRDS_KUSTOMIZATION, type OutputFile } from "#generator/emit/output-file.js";
import { renderDeployFiles } from "#generator/init/init-project.js";
import type { ProjectMemory } from "#generator/model/project-memory.js";
import { emitInputs, emitProject } from "#generator/emit/emit-project.js";
import { rememberControllers, rememberDependents } from "#generator/write/manifest.js";
import { repositoryRoot } from "../repository.js";

/** A sample operator in `fixtures/samples`, which serves as an example, as golden files, and as a program for tests. */
export interface Sample {
  readonly name: string;
  readonly folder: string;
  /** Generates the files of the sample in memory. */
  generate(): Promise<OutputFile[]>;
  /** Returns the content of its manifest of the last generation. */
  remember(): Promise<Required<Pick<ProjectMemory, "controllers" | "dependents">>>;
  /** Renders the deployment manifests as in a new project with its name. */
  renderDeploy(): Promise<OutputFile[]>;
  /** Reads the user's files with the types that its spec refers to. */
  readTypes(): Promise<{ readonly path: string; readonly content: string }[]>;
}

/** Returns all samples. */
export function listSamples(): Sample[] {
  const samples = join(repositoryRoot, "fixtures/samples");
  return readdirSync(samples).map((name) => {
    const folder = join(samples, name);
    const hasReconciler = (path: string) => existsSync(join(folder, path));
    // As in a new project, all stubs are emitted, and the CRDs are installed separately from the operator.
    const isMissing = (path: string) => path !== CRDS_KUSTOMIZATION;
    const generate = async () => {
      const { model, inputs } = await readSampleOrThrow(folder);
      return emitInputs(await emitProject(model, { hasReconciler, isMissing }), model, inputs, { hasReconciler });
    };
    const remember = async () => {
      const { model } = await readSampleOrThrow(folder);
      return { controllers: rememberControllers(model), dependents: rememberDependents(model) };
    };
    return {
      name,
      folder,
      generate,
      remember,
      renderDeploy: () => renderDeployFiles(name),
      readTypes: () => readTypes(folder),
    };
  });
}

async function readTypes(folder: string): Promise<{ readonly path: string; readonly content: string }[]> {
  const { controllers } = await readModelOrThrow(folder);
  const types = controllers.flatMap(({ dependents }) =>
    dependents.flatMap((each) => (isKubernetes(each) ? [] : [each.external.type, each.external.desiredType])),
  );
  const paths = new Set(types.flatMap((type) => (type?.kind === "imported" ? [type.file] : [])));
  return Promise.all([...paths].map(async (path) => ({ path, content: await readFile(join(folder, path), "utf8") })));
}

/** Reads the model of a valid project. */
export async function readModelOrThrow(folder: string): Promise<ProjectModel> {
  return (await readSampleOrThrow(folder)).model;
}

async function readSampleOrThrow(folder: string): Promise<{ readonly model: ProjectModel } & CheckedCode> {
  const input = await readProject(folder);
  const { model, diagnostics, locate } = await buildModel(input);
  const found: CheckedCode =
    model === undefined
      ? { diagnostics: [], inputs: [] }
      : await checkUserCode(model, { code: await readSources(folder), specFiles: input.specFiles, locate });
  const problems = acceptWarnings([...input.diagnostics, ...diagnostics, ...found.diagnostics], input.workflows);
  if (model === undefined || problems.length > 0) throw new Error(problems.map(formatDiagnostic).join("\n"));
  return { model, ...found };
}
