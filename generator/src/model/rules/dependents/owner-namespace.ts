import { quote, type Diagnostic } from "../../../diagnostic.js";
import {
  isCollected,
  ruleOfController,
  type ResolvedController,
  type ResolvedDependent,
} from "../../build/resolved-project.js";

/**
 * Finds owner references across namespaces, which Kubernetes' garbage collector takes for references to nothing: it deletes the dependent.
 *
 * https://kubernetes.io/docs/concepts/architecture/garbage-collection/#owners-dependents
 */
export const checkOwnerNamespace = ruleOfController((controller) => {
  const { spec, primary, dependents } = controller;
  if (primary?.scope !== "Namespaced") return [];
  return dependents.flatMap((dependent): Diagnostic[] => {
    if (!isCollected(dependent.spec)) return [];
    const problem = problemOf(dependent, controller);
    if (problem === undefined) return [];
    return [
      {
        severity: "error",
        rule: "owner-namespace",
        message: `a ${primary.kind} cannot own dependent ${quote(dependent.name)}: ${problem}`,
        ...spec.document.valueAt([
          ...dependent.path,
          dependent.spec.namespace === undefined ? "resource" : "namespace",
        ]),
        hint: "state deletion: ordered, and the operator deletes it before the primary; or deletion: orphan, and it stays",
      },
    ];
  });
});

function problemOf(
  { resource, spec }: ResolvedDependent,
  { spec: { controller } }: ResolvedController,
): string | undefined {
  if (resource?.scope === "Cluster") return `${resource.kind} is cluster-scoped, and the primary is namespaced`;
  const { namespace } = spec;
  const { namespaces = [] } = controller;
  const isOnlyOne = Array.isArray(namespaces) && namespaces.length === 1 && namespaces[0] === namespace;
  if (namespace === undefined || isOnlyOne) return undefined;
  return `the dependent is in namespace ${quote(namespace)}, and the primary may be in another`;
}
