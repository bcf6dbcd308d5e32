import type { ProjectModel, ResourceModel } from "../model/project-model.js";
import type { OutputFile } from "./output-file.js";

/**
 * Emits all files of a project: those of the generator, and a stub for each file of the user's that may be missing.
 *
 * The emitters and their libraries are loaded here, so that what does not emit starts fast.
 */
export async function emitProject(model: ProjectModel): Promise<OutputFile[]> {
  const [
    { controllerNamesOf },
    { emitController, emitIndex },
    { emitExternalTypes },
    { emitWorkflow },
    { emitWorkflowTypes },
    { emitStubs },
    { emitDeploy },
  ] = await Promise.all([
    import("./controller-names.js"),
    import("./emit-controller.js"),
    import("./emit-external.js"),
    import("./emit-workflow.js"),
    import("./emit-workflow-types.js"),
    import("./emit-stubs.js"),
    import("./deploy/emit-deploy.js"),
  ]);
  const { printers, names, files } = await emitClasses(model.resources);
  const { source } = printers;
  const controllers = model.controllers.map((controller) => ({
    controller,
    names: controllerNamesOf(controller, names, model.controllers),
  }));
  for (const { controller, names } of controllers) {
    files.push(await emitWorkflowTypes(controller, names, source));
    files.push(...(await emitExternalTypes(controller, names, printers)));
    files.push(await emitWorkflow(controller, names, source));
    files.push(await emitController(controller, names, source));
  }
  files.push(
    await emitIndex(
      controllers.map(({ names }) => names),
      names,
      source,
    ),
  );
  files.push(...emitDeploy(model), ...(await emitStubs(controllers)));
  return sorted(files);
}

/** Emits the classes of resources and an index of them: typed resources without a workflow. */
export async function emitResources(resources: readonly ResourceModel[]): Promise<OutputFile[]> {
  const { emitIndex } = await import("./emit-controller.js");
  const { printers, names, files } = await emitClasses(resources);
  return sorted([...files, await emitIndex([], names, printers.source)]);
}

async function emitClasses(resources: readonly ResourceModel[]) {
  const [{ emitResource }, { loadTypePrinter }, { loadSourcePrinter }, { nameResources }] = await Promise.all([
    import("./emit-resource.js"),
    import("./print-types.js"),
    import("./source-file.js"),
    import("./resource-name.js"),
  ]);
  const printers = { types: loadTypePrinter(), source: await loadSourcePrinter() };
  const files: OutputFile[] = [];
  for (const resource of resources) files.push(...(await emitResource(resource, printers)));
  return { printers, names: nameResources(resources), files };
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
