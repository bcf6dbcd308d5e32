import { quote, type Diagnostic } from "../../../diagnostic.js";
import { ruleOfController } from "../../build/resolved-project.js";

/** Finds dependents that need a namespace and have none, or have one and need none. */
export const checkDependentNamespace = ruleOfController(({ spec: { document }, primary, dependents }) =>
  dependents.flatMap(({ name, spec, path, resource }): Diagnostic[] => {
    const fail = (field: string, message: string, hint: string): Diagnostic[] => [
      { severity: "error", rule: "dependent-namespace", message, ...document.valueAt([...path, field]), hint },
    ];
    // Its ref says where it is.
    if (spec.ref !== undefined) return [];
    if (resource?.scope === "Cluster" && spec.namespace !== undefined)
      return fail(
        "namespace",
        `dependent ${quote(name)} has a namespace, but ${resource.kind} is cluster-scoped`,
        "remove namespace",
      );
    if (resource?.scope !== "Namespaced" || primary?.scope !== "Cluster" || spec.namespace !== undefined) return [];
    return fail(
      "resource",
      `dependent ${quote(name)} needs a namespace: ${resource.kind} is namespaced, and the primary ${primary.kind} is cluster-scoped`,
      "state namespace: with the name of the namespace",
    );
  }),
);
