import { quote, type Diagnostic } from "../../diagnostic.js";
import {
  isGarbageCollected,
  ruleOfController,
  type ResolvedController,
  type ResolvedDependent,
} from "../build/resolved-project.js";

/**
 * Finds owner references across namespaces, which Kubernetes' garbage collector takes for references to nothing: it deletes the dependent.
 *
 * https://kubernetes.io/docs/concepts/architecture/garbage-collection/#owners-dependents
 */
export const checkOwnerNamespace = ruleOfController((controller) => {
  const { spec, primary, dependents } = controller;
  if (primary?.scope !== "Namespaced") return [];
  return dependents.flatMap((dependent): Diagnostic[] => {
    if (!isGarbageCollected(dependent.spec) || dependent.spec.mode === "readOnly") return [];
    const problem = problemOf(dependent, controller);
    if (problem === undefined) return [];
    return [
      {
        severity: "error",
        rule: "owner-namespace",
        message: `${quote(dependent.name)} cannot be owned by a ${primary.kind}: ${problem}`,
        ...spec.document.valueAt([
          ...dependent.path,
          dependent.spec.namespace === undefined ? "resource" : "namespace",
        ]),
        hint: "state garbageCollected: false; the operator then deletes it when the primary is deleted",
      },
    ];
  });
});

function problemOf(
  { resource, spec }: ResolvedDependent,
  { spec: { controller } }: ResolvedController,
): string | undefined {
  if (resource?.scope === "Cluster") return `${resource.kind} is cluster-scoped, and the primary is in a namespace`;
  const { namespace } = spec;
  const { namespaces = [] } = controller;
  const isOnlyOne = Array.isArray(namespaces) && namespaces.length === 1 && namespaces[0] === namespace;
  if (namespace === undefined || isOnlyOne) return undefined;
  return `it is in the namespace ${quote(namespace)}, and the primary may be in another`;
}
