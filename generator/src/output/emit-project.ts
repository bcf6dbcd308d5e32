import { counted } from "../diagnostic.js";
import type { ProjectModel, ResourceModel } from "../model/project-model.js";
import { usedKindsOf } from "../model/used-kinds.js";
import { controllerNamesOf } from "./controller-names.js";
import { CRDS_KUSTOMIZATION } from "./deploy/crds-kustomization.js";
import { emitDeploy } from "./deploy/emit-deploy.js";
import { controllerKeysOf, type ControllerKeys, type ControllerParts } from "./controller/controller-key.js";
import { emitController, emitIndex } from "./controller/emit-controller.js";
import { emitExternalTypes } from "./controller/emit-external.js";
import { emitResource } from "./resource/emit-resource.js";
import { emitStubs } from "./stubs/emit-stubs.js";
import { needsReconciler, reconcilerPathOf } from "./stubs/reconciler-stub.js";
import { emitWorkflow } from "./controller/emit-workflow.js";
import { emitWorkflowTypes } from "./controller/emit-workflow-types.js";
import { recallFiles, type OutputFile } from "./files/output-file.js";
import { RunParts, type PartMemory } from "../parts/part-memory.js";
import type { ControllerInputs } from "./reads/find-inputs.js";
import { hasOwnClass, nameResources } from "./resource/resource-name.js";

/** What is known of a project besides its model. */
export interface EmitOptions {
  /** Tells whether a file of the user's is not there yet. Default: none is. */
  isMissing?(path: string): boolean;
  /** Tells whether the user has a reconciler at a path. Default: if the file is not missing. */
  hasReconciler?(path: string): boolean;
  /** What earlier runs came to. Default: nothing. */
  readonly parts?: PartMemory;
  /** Called with what is being generated, as it begins: for somebody who waits. */
  readonly onStep?: (step: string) => void;
}

/** Emits all files of a project: those of the generator, and a stub for each file of the user's that may be missing. */
export async function emitProject(model: ProjectModel, options: EmitOptions = {}): Promise<OutputFile[]> {
  const { isMissing = () => true, hasReconciler = (path) => !isMissing(path), parts = new RunParts() } = options;
  const { onStep = () => {} } = options;
  const names = nameResources(model);
  const own = model.resources.filter(hasOwnClass);
  const files = own.flatMap((resource, index) => {
    onStep(`generating the types of ${resource.kind} ${resource.version} (${index + 1} of ${own.length})`);
    return recallResource(resource, parts);
  });
  const controllers = model.controllers.map((controller) => {
    const local = controllerNamesOf(controller, names, model.controllers);
    const isNeeded = needsReconciler(controller) || hasReconciler(reconcilerPathOf(local));
    const all = { controller, names: local, hasReconciler: isNeeded };
    return { ...all, keys: controllerKeysOf(all) };
  });
  onStep(`generating the code of ${counted(controllers.length, "controller")}`);
  files.push(...controllers.flatMap((each) => recallController(each, parts)));
  files.push(
    emitIndex(
      controllers.map((each) => each.names),
      names,
      [...new Set(model.controllers.flatMap(usedKindsOf))].filter(({ isUntyped }) => isUntyped === true),
    ),
  );
  files.push(
    ...emitDeploy(model, {
      parts,
      outlines: controllers.map(({ keys }) => keys.outline),
      hasCrdsFolder: !isMissing(CRDS_KUSTOMIZATION),
    }),
    ...(await emitStubs(controllers, isMissing)),
  );
  return sorted(files);
}

/** Returns the files of a project with the inputs of its controllers, which the user's code tells after it has followed the spec. */
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

function recallController(all: KeyedController, parts: PartMemory): OutputFile[] {
  const { controller, names, hasReconciler, keys } = all;
  const emit = () => [
    emitWorkflowTypes(controller, names, parts),
    ...emitExternalTypes(controller, names),
    emitWorkflow(controller, names),
    emitController(controller, names, hasReconciler),
  ];
  return keys.whole === undefined ? emit() : recallFiles(["controller", keys.whole], parts, emit);
}

function recallResource(resource: ResourceModel, parts: PartMemory): OutputFile[] {
  const { digest, version } = resource;
  const emit = () => emitResource(resource);
  return digest === undefined ? emit() : recallFiles(["resource", `${digest} ${version}`], parts, emit);
}

/** Emits the classes of resources and an index of them: typed resources without a workflow. */
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
    // Some file systems do not tell upper from lower case.
    if (paths.has(path.toLowerCase())) throw new Error(`two kinds or controllers would be written to ${path}`);
    paths.add(path.toLowerCase());
  }
  return [...files].sort((left, right) => (left.path < right.path ? -1 : 1));
}
