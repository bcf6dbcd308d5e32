import { quote, type Diagnostic } from "../../../diagnostic.js";
import { ruleOfController, subjectOf } from "../../build/resolved-project.js";
import { constantValueOf } from "../../expression/constant-value.js";

const OWN_NAMESPACE = /^\s*primary\s*\.\s*metadata\s*\.\s*namespace\s*$/;

/** Warns of references into a namespace that the primary chooses: who may create a primary reads what only the operator may read. */
export const checkForeignNamespace = ruleOfController((controller) =>
  controller.dependents.flatMap((dependent): Diagnostic[] => {
    const { namespace } = dependent.spec.ref ?? {};
    // Who may create primaries of the cluster belongs to no tenant.
    if (namespace === undefined || controller.primary?.scope !== "Namespaced") return [];
    if (constantValueOf(namespace) !== undefined || OWN_NAMESPACE.test(namespace)) return [];
    return [
      {
        ...foreignNamespace(dependent.name, controller.primary.kind, "reads"),
        about: subjectOf(controller, dependent),
        ...controller.spec.document.valueAt([...dependent.path, "ref", "namespace"]),
      },
    ];
  }),
);

/** Returns the warning about a dependent whose namespace the primary chooses; `does` is what the operator does there. */
export function foreignNamespace(
  dependent: string,
  primary: string,
  does: "reads" | "writes",
): Pick<Diagnostic, "severity" | "rule" | "message" | "hint"> {
  return {
    ...{ severity: "warning", rule: "foreign-namespace" },
    message: `the ${primary} chooses the namespace in which the operator ${does} dependent ${quote(dependent)}: whoever may create one in their own namespace reaches into others`,
    hint: "let the other namespace grant it, and check that in a condition, or accept the warning and give a reason",
  };
}
