import { type Diagnostic, quote } from "../diagnostic.js";
import { controllerNamesOf, nameResources } from "../emit/names.js";
import { type OutputFile, isImported } from "../emit/output-file.js";
import { reconcilerPathOf } from "../emit/stubs.js";
import type { ControllerModel, ProjectModel } from "../model/project-model.js";
import { MISSING_RECONCILER, MISSING_STUB } from "./rules.js";

/** Returns the position of a setting in the spec of a controller. */
export type LocateSetting = (
  controller: ControllerModel,
  path: readonly string[],
) => Pick<Diagnostic, "position" | "path">;

/** Reports missing stubs that generated code imports. `moved` lists the paths to which the next generation moves existing code. */
export function checkMissingStubs(
  model: ProjectModel,
  files: readonly OutputFile[],
  locate: LocateSetting,
  moved: ReadonlySet<string> = new Set(),
): Diagnostic[] {
  const names = nameResources(model);
  const explicit = new Map(
    model.controllers
      .filter(({ workflow }) => workflow?.invocation === "explicit")
      .map((each) => [reconcilerPathOf(controllerNamesOf(each, names, model.controllers)), each]),
  );
  return files.filter(isMissing).map(({ path }): Diagnostic => {
    const controller = explicit.get(path);
    const write = moved.has(path)
      ? "run gen-operator generate to move your code there"
      : `run gen-operator generate to write a stub of ${path}`;
    if (controller === undefined)
      return {
        ...MISSING_STUB.violation,
        message: `file ${path} not found: generated code imports it`,
        hint: write,
      };
    return {
      ...MISSING_RECONCILER.violation,
      message: `nothing runs the workflow of controller ${quote(controller.name)}: invocation: explicit requires a reconciler, and ${path} is not found`,
      ...locate(controller, ["spec", "workflow", "invocation"]),
      hint: `${write}, or remove invocation: explicit to have the operator run the workflow`,
    };
  });
}

function isMissing(file: OutputFile): boolean {
  return file.owner === "user" && file.isPresent !== true && isImported(file.path);
}
