import type { ControllerModel } from "../../model/project-model.js";
import type { ControllerNames } from "../controller-names.js";
import { renderTemplate } from "../project/template.js";
import type { NamedController, Stub } from "./stub.js";

/** Returns where the user's reconciler of a controller is, if there is one. */
export function reconcilerPathOf({ folder }: Pick<ControllerNames, "folder">): string {
  return `src/${folder}/reconciler.ts`;
}

/** Tells whether nothing would happen without a reconciler: it runs the workflow itself, or there is none to run. */
export function needsReconciler({ dependents, workflow, settings }: ControllerModel): boolean {
  return dependents.length === 0 || workflow?.invocation === "explicit" || settings.onAllEvents === true;
}

/** Returns the file of the reconciler, if the controller needs one or has one. */
export function reconcilerStub({ controller, names, hasReconciler }: NamedController): Stub[] {
  if (!hasReconciler) return [];
  const template = controller.workflow?.invocation === "explicit" ? "explicit-reconciler" : "reconciler";
  const replacements = { Primary: names.primary, controller: names.folder };
  return [{ path: reconcilerPathOf(names), render: () => renderTemplate(`stubs/${template}.ts`, replacements) }];
}
