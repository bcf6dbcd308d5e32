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
      ? "gen-operator generate moves your code there"
      : `gen-operator generate writes a stub of ${path}`;
    if (controller === undefined)
      return {
        ...MISSING_STUB.violation,
        message: `generated code imports ${path}, and there is no such file`,
        hint: write,
      };
    return {
      ...MISSING_RECONCILER.violation,
      message: `nothing runs the workflow of the controller ${quote(controller.name)}: with invocation: explicit its reconciler does, and there is no ${path}`,
      ...locate(controller, ["spec", "workflow", "invocation"]),
      hint: `${write}; without invocation: explicit the operator runs the workflow itself`,
    };
  });
}

function isMissing(file: OutputFile): boolean {
  return file.owner === "user" && file.isPresent !== true && isImported(file.path);
}
