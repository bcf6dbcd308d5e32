import { quote, type Diagnostic } from "../../../diagnostic.js";
import type { DependentSpec } from "../../../input/workflow-spec.js";
import { isDeletedByOperator, ruleOfController, subjectOf } from "../../build/resolved-project.js";

/** Reports dependents whose cleanup reads its primary, in a controller that cleans up after its primaries are gone. */
export const checkCleanupPolicy = ruleOfController((controller) => {
  if (controller.spec.controller.cleanupPolicy !== "sweep") return [];
  return controller.dependents.flatMap((dependent): Diagnostic[] => {
    const needs = neededBy(dependent.spec);
    if (needs === undefined) return [];
    return [
      {
        severity: "error",
        rule: "cleanup-policy",
        message: `${needs.what} of dependent ${quote(dependent.name)} needs the finalizer: with cleanupPolicy: sweep, the primary is gone when its objects are deleted`,
        about: subjectOf(controller, dependent),
        ...controller.spec.document.valueAt(["spec", "dependents", dependent.name, ...needs.path]),
        hint: `remove cleanupPolicy: sweep, or ${needs.what} of the dependent`,
      },
    ];
  });
});

function neededBy(spec: DependentSpec): { readonly what: string; readonly path: readonly string[] } | undefined {
  if (spec.heldForCleanup === true) return { what: "heldForCleanup", path: ["heldForCleanup"] };
  if (spec.operations?.delete === "own") return { what: "the own delete", path: ["operations", "delete"] };
  return spec.external !== undefined && isDeletedByOperator(spec) ? { what: "delete", path: ["external"] } : undefined;
}
