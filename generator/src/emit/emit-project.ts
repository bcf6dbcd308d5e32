import type { ControllerInputs } from "../code/check-code.js";
import { counted } from "../diagnostic.js";
import { type ControllerModel, type ProjectModel, type ResourceModel, usedKindsOf } from "../model/project-model.js";
import { type Stage, digestOf, uncached } from "../stage.js";
import { emitExternalTypes } from "./controller/dependent-types.js";
import { emitController, emitIndex, emitWorkflow } from "./controller/emit-controller.js";
import { emitWorkflowTypes, statusFactsOf } from "./controller/emit-types.js";
import { emitCrd, emitDeploy, emitInstallation } from "./deploy/emit-deploy.js";
import { type ControllerNames, controllerNamesOf, hasOwnClass, nameResources } from "./names.js";
import { CRDS_KUSTOMIZATION, type OutputFile, stageOfFiles } from "./output-file.js";
import { emitResource } from "./resource/emit-resource.js";
import { emitStubs, needsReconciler, reconcilerPathOf } from "./stubs.js";

/** Options of {@link emitProject}. */
interface EmitOptions {
  /** Returns whether a user file does not exist. Default: every file is missing */
  isMissing?(path: string): boolean;
  /** Returns whether the user has a reconciler at a path. Default: if the file is not missing */
  hasReconciler?(path: string): boolean;
  /** Caches emitted files. Default: no cache */
  readonly stage?: Stage;
  /** Called with a description of each step as it starts, for progress output. */
  readonly onStep?: (step: string) => void;
}

/** Emits all files of a project: generated files, and a stub for each user file. */
export async function emitProject(model: ProjectModel, options: EmitOptions = {}): Promise<OutputFile[]> {
  const { isMissing = () => true, hasReconciler = (path) => !isMissing(path), stage = uncached } = options;
  const { onStep = () => {} } = options;
  const names = nameResources(model);
  const own = model.resources.filter(hasOwnClass);
  const emitResourceOf = stageOfFiles(stage, "resource", versionKeyOf, emitResource);
  const files = own.flatMap((resource, index) => {
    onStep(`generating the types of ${resource.kind} ${resource.version} (${index + 1} of ${own.length})`);
    return emitResourceOf(resource);
  });
  const controllers = model.controllers.map((controller) => {
    const local = controllerNamesOf(controller, names, model.controllers);
    const isNeeded = needsReconciler(controller) || hasReconciler(reconcilerPathOf(local));
    const all = { controller, names: local, hasReconciler: isNeeded };
    return { ...all, keys: controllerKeysOf(all) };
  });
  onStep(`generating the code of ${counted(controllers.length, "controller")}`);
  const statusOf = stage("status", versionKeyOf, statusFactsOf);
  const emitParts = ({ controller, names, hasReconciler }: KeyedController) => [
    emitWorkflowTypes(controller, names, statusOf),
    ...emitExternalTypes(controller, names),
    emitWorkflow(controller, names),
    emitController(controller, names, hasReconciler),
  ];
  const keyOf = ({ keys: { whole } }: KeyedController) => (whole === undefined ? undefined : [whole]);
  files.push(...controllers.flatMap(stageOfFiles(stage, "controller", keyOf, emitParts)));
  files.push(
    emitIndex(
      controllers.map((each) => each.names),
      names,
      [...new Set(model.controllers.flatMap(usedKindsOf))].filter(({ isUntyped }) => isUntyped === true),
    ),
  );
  files.push(
    ...emitDeploy(model, {
      hasCrdsFolder: !isMissing(CRDS_KUSTOMIZATION),
      crdOf: stageOfFiles(stage, "manifest", ({ digest }) => (digest === undefined ? undefined : [digest]), emitCrd),
      // The manifests do not depend on the fields of kinds.
      installationOf: stageOfFiles(
        stage,
        "deploy",
        ({ packageName }, lists) => [JSON.stringify([packageName, lists, controllers.map(({ keys }) => keys.outline)])],
        emitInstallation,
      ),
    }),
    ...(await emitStubs(controllers, isMissing)),
  );
  return sorted(files);
}

/** Adds the inputs of controllers to emitted files. They are only known after the analysis of user code. */
export function emitInputs(
  files: readonly OutputFile[],
  model: ProjectModel,
  inputs: readonly ControllerInputs[],
  { isMissing = () => true, hasReconciler = (path) => !isMissing(path) }: EmitOptions = {},
): OutputFile[] {
  if (inputs.length === 0) return [...files];
  const names = nameResources(model);
  const changed = new Map(
    inputs.flatMap((found) => {
      const controller = model.controllers.find(({ name }) => name === found.controller);
      if (controller === undefined) return [];
      const local = controllerNamesOf(controller, names, model.controllers);
      const isNeeded = needsReconciler(controller) || hasReconciler(reconcilerPathOf(local));
      const file = emitController(controller, local, isNeeded, found.inputs);
      return [[file.path, file] as const];
    }),
  );
  return files.map((file) => changed.get(file.path) ?? file);
}

interface KeyedController extends ControllerParts {
  readonly keys: ControllerKeys;
}

function versionKeyOf({ digest, version }: ResourceModel): readonly string[] | undefined {
  return digest === undefined ? undefined : [digest, version];
}

/** Emits the classes of kinds and their index, without a workflow. */
export function emitResources(
  resources: readonly ResourceModel[],
  onKind?: (resource: ResourceModel) => void,
): OutputFile[] {
  const emitted = resources.flatMap((resource) => {
    onKind?.(resource);
    return emitResource(resource);
  });
  return sorted([...emitted, emitIndex([], nameResources({ resources }))]);
}

function sorted(files: readonly OutputFile[]): OutputFile[] {
  const paths = new Set<string>();
  for (const { path } of files) {
    // Some file systems are case-insensitive.
    if (paths.has(path.toLowerCase())) throw new Error(`two kinds or controllers would be written to ${path}`);
    paths.add(path.toLowerCase());
  }
  return [...files].sort((left, right) => (left.path < right.path ? -1 : 1));
}

/** Everything that determines the files of a controller. */
interface ControllerParts {
  readonly controller: ControllerModel;
  readonly names: ControllerNames;
  readonly hasReconciler: boolean;
}

/** Cache keys of a controller. */
interface ControllerKeys {
  /** Key of the whole controller; undefined if it uses a kind of the project without a digest. */
  readonly whole: string | undefined;
  /** Key of the controller without the fields of its kinds, which most changes of a CRD leave unchanged. */
  readonly outline: string;
}

/** Returns the cache keys of a controller. */
function controllerKeysOf({ controller, names, hasReconciler }: ControllerParts): ControllerKeys {
  const { resources, ...rest } = names;
  const digests: string[] = [];
  const shortened = (_key: string, value: unknown) => {
    if (!isResource(value)) return value;
    digests.push(value.digest ?? "");
    return outlineOf(value);
  };
  const outline = JSON.stringify([controller, rest, [...resources], hasReconciler], shortened);
  const isKnown = [...resources.keys()].every(isKnownByName);
  return { whole: isKnown ? digestOf(outline, ...digests) : undefined, outline: digestOf(outline) };
}

/** Returns whether a kind is identified by its digest, or by its name because it is built in. */
function isKnownByName({ digest, isCustom, isDescribed }: ResourceModel): boolean {
  return digest !== undefined || (!isCustom && isDescribed !== true);
}

function isResource(value: unknown): value is ResourceModel {
  return typeof value === "object" && value !== null && "listKind" in value && "schema" in value;
}

/** Returns a kind without its fields, which are long, and are read from a CRD only on access. */
function outlineOf(resource: ResourceModel): object {
  const names = Object.keys(resource).filter((name) => !["schema", "definitions", "crd", "digest"].includes(name));
  return Object.fromEntries(names.map((name) => [name, resource[name as keyof ResourceModel]]));
}
